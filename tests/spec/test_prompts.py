"""Beats from a file, and prompts from beats."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gates.errors import InputError
from gates.spec.asking import Message, Prompts
from gates.spec.prompts import prompt_text, read_beats, render

PLAIN = Prompts(file="beats.txt", template="Beat: {beat}!")
CHAT = Prompts(
    file="beats.txt",
    template=(Message(role="system", content="Be brief."), Message(role="user", content="Write: {beat}")),
)
COMPLETIONS = Prompts(file="beats.txt", template="Beat: {beat}\n", endpoint="completions")


def beats(path: Path, data: bytes) -> tuple[str, ...]:
    file = path / "beats.txt"
    file.write_bytes(data)
    return read_beats(file)


def test_beats_are_lines_without_the_blank_ones(tmp_path: Path) -> None:
    data = "A rider falls.\r\n\n   \n  Two sisters quarrel über {beat}.\t\nThe end".encode()
    assert beats(tmp_path, data) == ("A rider falls.", "Two sisters quarrel über {beat}.", "The end")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"a\nb\n\n a \nb\n", [(4, "the beat stands in line 1 already"), (5, "the beat stands in line 2 already")]),
        (b"a\n" + b"x" * 10_001, [(2, "a beat has at most 10,000 characters, this has 10,001")]),
        (b"", [(1, "the file holds no beat")]),
        (b" \n\n", [(1, "the file holds no beat")]),
        (b"a\nb\nc\xe9\n", [(3, "the file is not UTF-8 here")]),
        (b"a\nb\0\n", [(2, "a NUL byte has no place in a text")]),
    ],
)
def test_a_spoilt_file_of_beats_is_refused_with_its_lines(
    tmp_path: Path, data: bytes, expected: list[tuple[int, str]]
) -> None:
    with pytest.raises(InputError) as caught:
        beats(tmp_path, data)
    found = [(problem.where, problem.rule) for problem in caught.value.problems]
    assert found == [(f"{tmp_path / 'beats.txt'}:{line}", rule) for line, rule in expected]


def test_a_beat_of_ten_thousand_characters_can_be_rendered(tmp_path: Path) -> None:
    (beat,) = beats(tmp_path, b"x" * 10_000)
    assert prompt_text(render(PLAIN, beat, None)) == f"Beat: {beat}!"


@pytest.mark.parametrize(
    ("prompts", "system", "rendered"),
    [
        (PLAIN, None, [("user", "Beat: B!")]),
        (PLAIN, "S", [("system", "S"), ("user", "Beat: B!")]),
        (CHAT, None, [("system", "Be brief."), ("user", "Write: B")]),
        (CHAT, "S", [("system", "S"), ("user", "Write: B")]),
        (COMPLETIONS, None, "Beat: B\n"),
        (COMPLETIONS, "S", "S\n\nBeat: B\n"),
    ],
)
def test_render(prompts: Prompts, system: str | None, rendered: object) -> None:
    found = render(prompts, "B", system)
    assert (found if isinstance(found, str) else [(message.role, message.content) for message in found]) == rendered


def test_the_text_shown_holds_every_message() -> None:
    assert prompt_text(render(CHAT, "B", None)) == "Be brief.\n\nWrite: B"
    assert prompt_text(render(COMPLETIONS, "B", None)) == "Beat: B\n"


@given(st.text(alphabet=st.sampled_from("{}beat $%\\0"), min_size=1, max_size=30))
def test_nothing_in_a_beat_is_evaluated(beat: str) -> None:
    assert prompt_text(render(PLAIN, beat, None)) == "Beat: " + beat + "!"
