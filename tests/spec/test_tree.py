"""Strict YAML: what scalars mean, and what is refused, at which line."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from gates.errors import InputError
from gates.spec.source import read_text
from gates.spec.tree import dotted, read_tree

FILE = Path("gate.yaml")

# By hand from the YAML 1.2.2 specification, section 10.3.2 (core schema), less octal, hexadecimal and leading zeros.
SCALARS = [
    ("1e-3", 0.001),
    ("1E3", 1000.0),
    ("400", 400),
    ("-7", -7),
    ("+7", 7),
    ("0", 0),
    (".5", 0.5),
    ("1.", 1.0),
    ("-0.25", -0.25),
    ("9007199254740991", 2**53 - 1),
    ("true", True),
    ("FALSE", False),
    ("null", None),
    ("~", None),
    ("", None),
    (".inf", math.inf),
    ("-.INF", -math.inf),
    ("no", "no"),
    ("on", "on"),
    ("yes", "yes"),
    ("off", "off"),
    ("nUll", "nUll"),
    ("010", "010"),
    ("-010", "-010"),
    ("010.5", "010.5"),
    ("0x1f", "0x1f"),
    ("0o17", "0o17"),
    ("0b11", "0b11"),
    ("1_000", "1_000"),
    ("1,000", "1,000"),
    ("12:30:00", "12:30:00"),
    ("2026-01-01", "2026-01-01"),
    ("1e", "1e"),
    (".", "."),
    ("inf", "inf"),
    ("nan", "nan"),
    ("=", "="),
    ("<<", "<<"),
    ("٣", "٣"),
    ("'400'", "400"),
    ('"true"', "true"),
    ("''", ""),
    ('"\\u00e9"', "é"),
]


@pytest.mark.parametrize(("written", "meant"), SCALARS)
def test_a_scalar_means_what_it_says(written: str, meant: object) -> None:
    tree = read_tree(f"key: {written}\n", FILE)
    assert tree.value == {"key": meant}
    assert isinstance(tree.value, dict)
    assert type(tree.value["key"]) is type(meant)
    assert tree.problems == []


def test_not_a_number_is_read_so_that_it_can_be_refused_by_name() -> None:
    tree = read_tree("key: .nan", FILE)
    assert isinstance(tree.value, dict)
    value = tree.value["key"]
    assert isinstance(value, float)
    assert math.isnan(value)


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("a: 1\nb: 2\na: 3\n", ["gate.yaml:3: a: the key is repeated: it stands in line 1 already"]),
        (
            "a:\n  b: 1\n  c: 2\n  b: {x: [1]}\n  b: 3",
            [f"gate.yaml:{line}: a.b: the key is repeated: it stands in line 2 already" for line in (4, 5)],
        ),
        ("a: &x 1\nb: *x\n", ["gate.yaml:1: a = '&x': anchors are not read", "gate.yaml:2: b = '*x': aliases are not"]),
        ("a: !!python/object/apply:os.system [ls]\n", ["gate.yaml:1: a = 'tag:yaml.org,2002:python/object/apply:os"]),
        ("a: 1\nb: !!str 5\n", ["gate.yaml:2: b = 'tag:yaml.org,2002:str': tags are not read"]),
        ("a:\n  475: x\n", ["gate.yaml:2: a = '475': a key must be text (put it in quotes)"]),
        ("true: x\n", ["gate.yaml:1: document = 'true': a key must be text"]),
        ("? [a, b]\n: x\nc: 1\n", ["gate.yaml:1: document: a key must be text"]),
        ("a: 1\n---\nb: 1\n", ["gate.yaml:2: document: a second document starts here"]),
        ('a: "\\ud800"\n', ["gate.yaml:1: a = '\\ud800': '\\ud800' is not text"]),
        ('a: "x\\0"\n', ["gate.yaml:1: a = 'x\\x00': '\\x00' is not text"]),
        ("a: 9007199254740992\n", ["gate.yaml:1: a = '9007199254740992': a whole number past 2^53"]),
        (f"a: {'9' * 9000}\n", ["gate.yaml:1: a = '99999999"]),
        ("a: [1, 1e999]\n", ["gate.yaml:1: a[1] = '1e999': the number is out of the range"]),
        ("a: 1e-999\n", ["gate.yaml:1: a = '1e-999': the number is out of the range"]),
    ],
)
def test_what_is_not_read_is_a_problem_at_its_line_and_the_rest_is_still_read(text: str, problems: list[str]) -> None:
    found = [str(problem) for _, problem in read_tree(text, FILE).problems]
    assert len(found) == len(problems)
    for whole, start in zip(found, problems, strict=True):
        assert whole.startswith(start)


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        ("a:\n\tb: 1\n", "gate.yaml:2", "a tab cannot indent YAML"),
        ("question: does it: work?\n", "gate.yaml:1", "a second `: ` in one line (put the text in quotes)"),
        ("a: 1\nb: [1, 2\nc: 3\n", "gate.yaml:3", "a bracket is not closed"),
        ("a:\n    b: 1\n  c: 2\n", "gate.yaml:3", "the indentation does not fit"),
        ('a: "open\n', "gate.yaml:2", "a quotation mark is not closed"),
        ("a: 1\njust words\n", "gate.yaml:3", "neither `key: value` nor `- item`"),
        ("a: @home\n", "gate.yaml:1", "a text may not start with this character"),
        ('a: "\\q"\n', "gate.yaml:1", "an unknown escape"),
        ('\na: "\\U00110000"\n', "gate.yaml:2", "out of range"),
        ("%YAML " + "9" * 5000 + ".1\n---\na: 1", "gate.yaml:1", "out of range"),
        ("", "gate.yaml:1", "the file is empty"),
        ("# nothing\n", "gate.yaml:1", "the file is empty"),
        ("---\n...\n", "gate.yaml:1", "the file is empty"),
        ("a: " + "[" * 100_000, "gate.yaml:1", "values nest deeper than 40 levels"),
        ("- " * 100_000, "gate.yaml:1", "values nest deeper than 40 levels"),
        ("{" * 30_000, "gate.yaml:1", "values nest deeper than 40 levels"),
        ("a: [" + "1," * 60_000 + "]", "gate.yaml:1", "the file holds more than 50,000 values"),
        ("? [" + "1," * 60_000 + "]\n: 1", "gate.yaml:1", "the file holds more than 50,000 values"),
    ],
)
def test_broken_yaml_is_one_problem_with_its_line(text: str, where: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_tree(text, FILE)
    (problem,) = caught.value.problems
    assert problem.where == where
    assert message in str(problem)


@pytest.mark.parametrize(
    ("data", "where", "message"),
    [
        (b"a: 1\nb: \xff\n", ":2", "not UTF-8"),
        (b"a: \xed\xa0\x80\n", ":1", "not UTF-8"),
        (b"\xef\xbb\xbfa: 1\n", ":1", "byte-order mark"),
        ("a: 1".encode("utf-16"), ":1", "UTF-16"),
        (b"a: 1\n\nb: \0\n", ":3", "NUL"),
        (b"a: \x1b[31m\n", ":1", "control characters"),
        (b"a: 1\rb: 2\n", ":1", "plain newline"),
        ("a: x\u2028y\n".encode(), ":1", "plain newline"),
        (b"a" * 1_000_001, "", "larger than 1,000,000 bytes"),
    ],
)
def test_bytes_that_are_no_text_are_refused_with_their_line(
    tmp_path: Path, data: bytes, where: str, message: str
) -> None:
    path = tmp_path / "gate.yaml"
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        read_text(path)
    (problem,) = caught.value.problems
    assert problem.where == f"{path}{where}"
    assert message in problem.rule
    assert "\x1b" not in str(caught.value)


def test_every_line_with_a_bad_character_is_named(tmp_path: Path) -> None:
    path = tmp_path / "gate.yaml"
    path.write_bytes(b"a: \x01\nb: 1\nc: \x02\n")
    with pytest.raises(InputError) as caught:
        read_text(path)
    assert [problem.where for problem in caught.value.problems] == [f"{path}:1", f"{path}:3"]


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    for path, message in ((tmp_path, "a folder"), (tmp_path / "none", "no such file"), (Path("/dev/null"), "regular")):
        with pytest.raises(InputError, match=message):
            read_text(path)


def test_windows_line_ends_are_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "gate.yaml"
    path.write_bytes(b"a: 1\r\nb: 2\r\n")
    assert read_text(path) == "a: 1\nb: 2\n"


def test_places_are_dotted() -> None:
    assert dotted(("sampling", "seeds", 2)) == "sampling.seeds[2]"
    assert dotted(("a b\n",)) == "'a b\\n'"
    assert dotted(()) == "document"
