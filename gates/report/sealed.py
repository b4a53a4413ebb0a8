"""A seal for people to read: every field of its gate, defaults included, and everything that it binds."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping

import yaml

from gates.record.seal import Seal, SealOnDisk
from gates.records import canonical
from gates.report.operating import operating_sentences
from gates.report.wording import one_line
from gates.spec.operating import OperatingCharacteristics


def readable(sealed: SealOnDisk) -> str:
    """The seal as plain text; nothing in it is mark-up."""
    seal = sealed.seal
    return "\n".join(
        [
            f"seal {sealed.sha256}",
            f"gate {seal.gate.name}, from {one_line(seal.gate_file)}",
            f"{'imported' if seal.imported else 'sealed'} {one_line(seal.sealed_at)} by {one_line(seal.sealed_by)}, "
            f"{_before(seal)}",
            *_amendment(seal),
            *_section("The gate, every default written out", _yaml(seal.gate.as_json())),
            *_section("What this size can prove", _operating(seal)),
            *_section("Binding: a change is refused", _yaml(seal.binding.as_json())),
            *_section("Context: a change is shown as a deviation", _yaml(seal.context)),
            "",
            f"order of requests from seed {seal.order_seed}; after ledger record {', '.join(seal.previous) or '–'}",
        ]
    )


def _before(seal: Seal) -> str:
    if seal.imported is not None:
        return f"after its texts: {one_line(seal.imported.file)} ({seal.imported.sha256})"
    if not seal.runs_before:
        return "before any generation of this gate"
    return f"after {seal.runs_before} run(s) of this gate had begun: post-hoc"


def _amendment(seal: Seal) -> list[str]:
    if seal.amendment is None:
        return []
    changes = [f"  {one_line(change)}" for change in seal.amendment.changes]
    return [f"amends {seal.amends}", f"because: {one_line(seal.amendment.reason)}", "what differs:", *changes]


def _operating(seal: Seal) -> list[str]:
    if not seal.operating:
        return ["not recorded"]
    found = OperatingCharacteristics.parse(canonical(seal.operating), where="the seal's operating characteristics")
    return [*operating_sentences(found), *(f"note: {warning}" for warning in found.warnings), found.signature]


def _yaml(document: Mapping[str, object]) -> list[str]:
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=110).splitlines()


def _section(title: str, lines: Iterable[str]) -> list[str]:
    return ["", f"{title}:", *textwrap.indent("\n".join(lines), "  ").split("\n")]
