"""Anybody's texts: text files, folders of them, and JSONL with a `text` field, read strictly and named by place."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from gates.errors import InputError, Problem, UsageError
from gates.spec.source import MAX_PROBLEMS, located, printable, shown

MAX_BRACKETS = 1_000_000
"""Lists and objects of one line of JSONL that are still read: empty ones take twenty times their bytes in memory."""

NUL = ("b'\\x00'", "a NUL byte has no place in a text", "is this a text, in UTF-8?")
"""What is wrong with UTF-16 and with archives that happen to be valid UTF-8: value, rule, suggestion."""

JSON_LINES = (".jsonl", ".ndjson")


class NamedText(NamedTuple):
    """A text, where it stands (FILE, or FILE:LINE in JSONL), and its prompt where the line has one."""

    name: str
    text: str
    prompt: str | None


def read_texts(paths: Sequence[Path]) -> tuple[NamedText, ...]:
    """The texts of files and folders (read through, by name, hidden files passed over) in the order given.

    A text file is one text; a line of JSONL is one text, with the fields `text` and, if it has one, `prompt`; a
    recorded generation's prompt is taken from its request. Raises InputError listing every file that is missing,
    empty or not UTF-8, and every line that is not as it should be.
    """
    problems: list[Problem] = []
    found = [text for file in text_files(paths, problems) for text in _texts(file, problems)]
    if problems:
        raise unusable(problems)
    return tuple(found)


def read_prompts(path: Path, count: int) -> tuple[str, ...]:
    """As many prompts as there are texts, or one for all: lines of a text file, `prompt` or `text` of JSONL, files.

    Lines of a text file stay as they are: an empty one stands for a text without a prompt. Raises InputError as
    `read_texts`, and UsageError for any other number of prompts.
    """
    problems: list[Problem] = []
    if path.is_file() and path.suffix.lower() not in JSON_LINES:
        content = _decoded(path, problems)
        if problems:
            raise unusable(problems)
        prompts = content.removesuffix("\n").split("\n")
    else:
        prompts = [text.text if text.prompt is None else text.prompt for text in read_texts([path])]
    if len(prompts) not in (1, count):
        raise UsageError(
            f"{printable(str(path))}: {len(prompts)} prompts for {count} texts",
            next_step="give one prompt for each text, in the same order, or one for all",
        )
    return tuple(prompts) if len(prompts) == count else tuple(prompts * count)


def text_files(paths: Iterable[Path], problems: list[Problem]) -> Iterator[Path]:
    """The files of files and folders (read through, by name, hidden files passed over); what is missing is added."""
    for path in paths:
        kind = _kind(path, problems)
        if kind == stat.S_IFREG:
            yield path
        elif kind == stat.S_IFDIR:
            before = len(problems)
            inside = sorted(_inside(path, problems))
            if not inside and len(problems) == before:
                problems.append(located(path, 0, "folder", "", "there is no text in it", "name a folder with texts"))
            yield from (file for file in inside if _kind(file, problems) == stat.S_IFREG)


def _kind(path: Path, problems: list[Problem]) -> int:
    """What a path leads to; 0 where that is no file and no folder, which is added to the problems."""
    try:
        kind = stat.S_IFMT(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        gone = "the link leads nowhere" if path.is_symlink() else "there is no such file or folder"
        problems.append(located(path, 0, "path", "", gone, "check the path"))
    except OSError as error:
        problems.append(located(path, 0, "path", "", f"cannot be read: {error.strerror}", "check the path"))
    else:
        if kind in (stat.S_IFREG, stat.S_IFDIR):
            return kind
        problems.append(located(path, 0, "path", "", "this is not a regular file", "write it into one"))
    return 0


def _inside(folder: Path, problems: list[Problem]) -> Iterator[Path]:
    """What stands in a folder and those below it, but for hidden files; nothing is left out without a word."""

    def lost(error: OSError) -> None:
        problems.append(located(error.filename, 0, "folder", "", f"cannot be read: {error.strerror}"))

    for place, folders, files in os.walk(folder, onerror=lost):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(place, name) for name in files if not name.startswith("."))
        # Path.is_symlink raises where a path is too long; such a folder cannot be read and is told as that.
        for link in (path for path in (Path(place, name) for name in folders) if os.path.islink(path)):  # noqa: PTH114
            rule = "a link to a folder is not followed"
            problems.append(located(link, 0, "path", "", rule, "name the folder itself as well, or take the link out"))


def _texts(file: Path, problems: list[Problem]) -> Iterator[NamedText]:
    before = len(problems)
    content = _decoded(file, problems)
    if len(problems) > before:
        return
    if not content.strip():
        problems.append(located(file, 0, "file", "", "the file is empty", "leave it out"))
    elif file.suffix.lower() not in JSON_LINES and "\0" in content:
        problems.append(located(file, content.count("\n", 0, content.index("\0")) + 1, "byte", *NUL))
    elif file.suffix.lower() in JSON_LINES:
        # Only a newline ends a line: JSON strings may hold other line separators.
        for number, line in enumerate(content.split("\n"), 1):
            if line.strip():
                found = read_line(file.as_posix(), number, line, problems)
                if found is not None:
                    yield found
    else:
        yield NamedText(file.as_posix(), content, None)


_MEANT = frozenset({"text", "prompt", "request"})


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """A JSON object, in which nothing that is read stands twice: which of the two was meant?"""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs if name in _MEANT]
        if len(names) > len(set(names)):
            raise ValueError("one of its keys stands twice")
    return found


_JSON = json.JSONDecoder(object_pairs_hook=_once)


def read_line(file: str, number: int, line: str, problems: list[Problem]) -> NamedText | None:
    """The text of a line of JSONL; None where it is not as it should be, which is added to the problems."""

    def wrong(place: str, value: str, rule: str, hint: str = "") -> None:
        problems.append(located(file, number, place, value, rule, hint))

    if len(line) > MAX_BRACKETS and line.count("[") + line.count("{") > MAX_BRACKETS:
        wrong("line", shown(line), f"more than {MAX_BRACKETS:,} brackets are no text", "keep one text in a line")
        return None
    try:
        document = _JSON.decode(line)
    except (ValueError, RecursionError) as error:
        said = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        wrong("line", shown(line), f"this is no JSON: {said}", "write one JSON object a line")
        return None
    if not isinstance(document, dict):
        wrong("line", shown(line), "must be a JSON object", 'write {"text": "..."}')
    elif not isinstance(document.get("text"), str):
        wrong("text", shown(document["text"]) if "text" in document else "", "must be there, and a string")
    elif "request" in document:
        return NamedText(f"{file}:{number}", document["text"], _asked(document["request"]))
    elif not isinstance(document.get("prompt", ""), str):
        wrong("prompt", shown(document["prompt"]), "must be a string")
    else:
        return NamedText(f"{file}:{number}", document["text"], document.get("prompt"))
    return None


def _asked(request: object) -> str | None:
    """All that the request of a recorded generation showed the model."""
    if not isinstance(request, dict):
        return None
    messages = request.get("messages")
    if isinstance(messages, list):
        return "\n\n".join(str(message.get("content")) for message in messages if isinstance(message, dict))
    prompt = request.get("prompt")
    return prompt if isinstance(prompt, str) else None


def _decoded(file: Path, problems: list[Problem]) -> str:
    try:
        data = file.read_bytes()
        return data.decode("utf-8").removeprefix("\ufeff").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        bad = shown(error.object[error.start : error.start + 1])
        problems.append(located(file, line, "byte", bad, "the file is not UTF-8 here", "save it as UTF-8"))
    except OSError as error:
        problems.append(located(file, 0, "file", "", f"cannot be read: {error.strerror or error}"))
    return ""


def unusable(problems: list[Problem]) -> InputError:
    """The error that lists the problems of texts, the first ones where they are many."""
    more = f", the first {MAX_PROBLEMS} of them" if len(problems) > MAX_PROBLEMS else ""
    count = f"{len(problems)} problem{'s' if len(problems) != 1 else ''}"
    return InputError(f"the texts cannot be used: {count}{more}:", tuple(problems[:MAX_PROBLEMS]))
