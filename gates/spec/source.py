"""From a file to its text: the one way in for gate files, manifests and beats, and the shape of messages about them."""

from __future__ import annotations

import re
from pathlib import Path

from gates.errors import InputError, Problem

MAX_BYTES = 1_000_000
MAX_PROBLEMS = 100

_FORBIDDEN = re.compile(
    "\r(?!\n)|[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)

REDACTED = "[api key]"
"""What stands in the place of an API key wherever somebody repeats it."""

_USER = re.compile(r"://[^/\s]*@")
_QUERY = re.compile(r"(://[^\s?#]*[?#])[^\s'\"]+")
_KEY = re.compile(r"(?<![\w-])sk-[\w-]{6,}")
"""API keys as OpenAI and LiteLLM make them."""


def read_text(path: Path) -> str:
    r"""The text of a small UTF-8 file, line ends as `\n`.

    Raises InputError for a file that is missing, a folder or device, over 1 MB, not UTF-8, or that holds a byte-order
    mark, control characters or exotic line separators; each with its line.
    """
    data = read_bytes(path)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise unreadable(path, 1, shown(data[:2]), "the file is UTF-16", "save it as UTF-8")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        bad = data[error.start : error.start + 1]
        raise unreadable(path, line, shown(bad), "the file is not UTF-8 here", "save it as UTF-8") from None
    wrong: list[Problem] = []
    for number, line_text in enumerate(text.split("\n"), 1):
        match = _FORBIDDEN.search(line_text + "\n")
        if match and len(wrong) < MAX_PROBLEMS:
            wrong.append(located(path, number, "character", shown(match[0]), *_why_forbidden(match[0])))
        elif match:
            wrong.append(wrong[-1])  # counted, never shown
    if wrong:
        raise listed(path, wrong)
    return text.replace("\r\n", "\n")


def read_bytes(path: Path, most: int = MAX_BYTES) -> bytes:
    """The bytes of a regular file of at most `most`. Raises InputError for anything else, a pipe or device included."""
    try:
        if path.is_dir():
            raise unreadable(path, 0, "", "this is a folder", "name the file in it")
        if path.exists() and not path.is_file():
            raise unreadable(path, 0, "", "this is not a regular file")
        with path.open("rb") as file:
            data = file.read(most + 1)
    except FileNotFoundError:
        raise unreadable(path, 0, "", "there is no such file", "check the path") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise unreadable(path, 0, "", f"the file cannot be read: {reason}") from None
    if len(data) > most:
        raise unreadable(path, 0, "", f"the file is larger than {most:,} bytes", "is this the right file?")
    return data


def _why_forbidden(char: str) -> tuple[str, str]:
    if char == "\ufeff":
        return "a byte-order mark has no place in the file", "save it as UTF-8 without BOM"
    if char == "\0":
        return "a NUL byte has no place in a text", "is this a text file?"
    if char in "\r\u0085\u2028\u2029":
        return "lines must end with a plain newline", "convert the line ends"
    return "control characters are not allowed", "remove it"


def located(path: Path | str, line: int, place: str, value: str, rule: str, suggestion: str = "") -> Problem:
    """A problem at a line of a file, counted from 1; line 0 means the file as a whole."""
    where = printable(str(path))
    return Problem(f"{where}:{line}" if line else where, place, value, printable(rule), printable(suggestion))


def unreadable(path: Path, line: int, value: str, rule: str, suggestion: str = "") -> InputError:
    """The error for a file that has one mistake behind which nothing more can be read."""
    return listed(path, [located(path, line, "document", value, rule, suggestion)])


def listed(path: Path, problems: list[Problem]) -> InputError:
    """The error that lists the problems of a file: all of them, or the first hundred and how many there are."""
    count = f"{len(problems)} problem{'s' if len(problems) != 1 else ''}"
    first = f", the first {MAX_PROBLEMS} of them" if len(problems) > MAX_PROBLEMS else ""
    return InputError(
        f"{printable(str(path))}: {count}{first}:",
        tuple(problems[:MAX_PROBLEMS]),
        next_step="correct the file and try again",
    )


def shown(value: object) -> str:
    """A value for a message: on one line, at most about 60 characters, control characters escaped.

    API keys are left out, and what stands before the `@` of an address or in its query, for it may be a password.
    """
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    value = without_secrets(value) if isinstance(value, str) else value
    text = without_secrets(printable(repr(value[:80] if isinstance(value, str | bytes | list) else value)))
    return text if len(text) <= 60 else text[:57] + "..."


def without_keys(text: str) -> str:
    """`text` without anything that looks like an API key, whoever's: people paste them, servers repeat them."""
    return _KEY.sub(REDACTED, text)


def without_secrets(text: str) -> str:
    """`text` without API keys, and without what stands before the `@` of an address or in its query."""
    return _QUERY.sub(r"\1...", _USER.sub("://...@", without_keys(text)))


def printable(text: str) -> str:
    """`text` with everything that is not printable written as an escape."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
