"""Generated texts cut into words once, and matches found in them turned into records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile

from gates.measure.figures import NearRun, Run, Source
from gates.measure.near import NearMatch
from gates.measure.ngrams import Match, Texts
from gates.measure.tokens import Tokens
from gates.records import sha256
from gates.text import prose_words


@dataclass(frozen=True)
class GeneratedText:
    """One answer and all the text its model was given; (prompt, seed) is its key within an arm.

    `given` are first words of a passage that the model was to continue: where the answer begins by repeating them,
    only what comes after counts.
    """

    prompt: int
    seed: int
    text: str
    prompt_text: str
    given: str = ""


class Generated:
    """The texts of one arm in the order of their keys: `texts` in the words that count and `prompts` in words."""

    def __init__(self, generations: Sequence[GeneratedText], tokens: Tokens) -> None:
        self._ordered = sorted(
            generations, key=lambda generation: (generation.prompt, generation.seed, generation.text)
        )
        whole = [tokens.prose(generation.text) for generation in self._ordered]
        self._repeated = [
            _in_common(words, prose_words(generation.given))
            for words, generation in zip(whole, self._ordered, strict=True)
        ]
        self.texts = Texts([words[skip:] for words, skip in zip(whole, self._repeated, strict=True)])
        prompts = {shown: prose_words(shown) for shown in {generation.prompt_text for generation in self._ordered}}
        self.prompts = [prompts[generation.prompt_text] for generation in self._ordered]

    def __len__(self) -> int:
        return len(self._ordered)

    def runs(
        self, found: Sequence[Match], elsewhere: Callable[[Sequence[Sequence[str]]], list[tuple[Source, ...]]]
    ) -> tuple[Run, ...]:
        """The records of exact runs; `elsewhere` says of runs in words where texts of other authors hold them."""
        cased = {text: self._cased(text) for text in {match.text for match in found}}
        others = elsewhere([self._own(match) for match in found])
        return tuple(
            Run(
                prompt=self._ordered[match.text].prompt,
                seed=self._ordered[match.text].seed,
                start=match.start + self._repeated[match.text],
                length=match.length,
                sources=match.sources,
                sha256=digest(self._own(match)),
                capitalised=tuple(k - match.start for k in words_of(match) if cased[match.text][k][0].isupper()),
                elsewhere=places,
            )
            for match, places in zip(found, others, strict=True)
        )

    def near_runs(self, found: Sequence[NearMatch]) -> tuple[NearRun, ...]:
        """The records of near-verbatim runs."""
        return tuple(
            NearRun(
                prompt=self._ordered[match.text].prompt,
                seed=self._ordered[match.text].seed,
                start=match.start + self._repeated[match.text],
                length=match.length,
                changed=match.changed,
                sources=match.sources,
                sha256=digest(self._own(match)),
            )
            for match in found
        )

    def _cased(self, text: int) -> list[str]:
        return prose_words(self._ordered[text].text, case="keep")[self._repeated[text] :]

    def _own(self, match: Match | NearMatch) -> Sequence[str]:
        return self.texts.words[match.text][match.start : match.start + match.length]


def digest(words: Sequence[str]) -> str:
    """SHA-256 of words joined by single spaces."""
    return sha256(" ".join(words).encode())


def words_of(match: Match) -> range:
    """The offsets of a run's words in its text."""
    return range(match.start, match.start + match.length)


def _in_common(words: Sequence[str], given: Sequence[str]) -> int:
    """How many words both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(words, given, strict=False)))
