"""The reference pages of the documentation, made from the code when the site is built (mkdocs calls `on_files`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from gates.cli import cli
from gates.spec.load import json_schema


def commands() -> str:
    """Every command with its help, as the terminal shows it."""
    lines = ["# Commands", "", "Made from the commands' own help. Exit codes are the same everywhere:", ""]
    lines += ["", "```text", str(cli.epilog), "```", ""]
    for path, command in _walk((), cli):
        if path:
            context = click.Context(command, info_name="gates " + " ".join(path), max_content_width=100)
            lines += [f"## gates {' '.join(path)}", "", "```text", command.get_help(context), "```", ""]
    return "\n".join(lines).rstrip() + "\n"


def _walk(path: tuple[str, ...], command: click.Command) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name="gates")
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            if found is not None:
                yield from _walk((*path, name), found)


def gate() -> str:
    """Every key of a gate file: type, default, meaning."""
    schema = json_schema()
    lines = [
        "# Gate files",
        "",
        "Made from the schema that `gates schema` prints. A key without a default is required.",
        "",
    ]
    parts = {"gate": schema, **schema.get("$defs", {})}
    for name, part in parts.items():
        if part.get("type") != "object" or not part.get("properties"):
            continue
        lines += [f"## {name}", "", " ".join(str(part.get("description", "")).split()), ""]
        lines += ["| key | type | default | meaning |", "| --- | --- | --- | --- |"]
        for key, about in part["properties"].items():
            required = key in part.get("required", ())
            default = "required" if required else f"`{about.get('default', '–')}`".replace("|", "¦")
            meaning = " ".join(str(about.get("description", "")).split()).replace("|", "¦")
            lines.append(f"| `{key}` | {_type(about)} | {default} | {meaning} |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _type(about: dict[str, Any]) -> str:
    if "$ref" in about:
        name = about["$ref"].split("/")[-1]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in about:
        return " or ".join(dict.fromkeys(_type(one) for one in about["anyOf"]))
    if "enum" in about or "const" in about:
        return ", ".join(f"`{one}`" for one in about.get("enum", [about.get("const")]))
    if about.get("type") == "array":
        return f"list of {_type(about.get('items', {}))}"
    limits = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    bounds = ", ".join(f"{sign} {about[key]:g}" for key, sign in limits.items() if key in about)
    return f"{about.get('type', 'any')}{f' {bounds}' if bounds else ''}"


PAGES = {"reference/commands.md": commands, "reference/gate.md": gate}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages to the site."""
    for name, page in PAGES.items():
        files.append(File.generated(config, name, content=page()))
    return files
