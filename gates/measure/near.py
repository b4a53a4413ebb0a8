"""Near-verbatim matching (`near_runs@1`): runs that stand in the sources but for single changed words.

Text and source are laid side by side at one offset (a source diagonal), so that a changed word is a word replaced,
never one put in or left out. A window of eight words is near if at most one of them differs there; a near run is a
chain of near windows, cut to begin and end with a word that agrees. Runs without any changed word are left to the
exact matcher.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gates.measure.figures import Source
from gates.measure.ngrams import SOURCE_BORDER, TEXT_BORDER, Ids, NgramIndex, Numbered, Places, Texts

NEAR = "near_runs@1"

WINDOW = 8
"""Of so many words in a row at most one may be changed."""

_SEED = 4  # with one of eight words changed, the longer side of it holds at least four

_Row = tuple[int, int, int]  # where a stretch begins and ends in the texts, and source place minus text place
_Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class NearMatch:
    """A run of a text's words that stands in the sources but for the words at `changed`.

    `text` counts texts from 0, `start` and `length` words; `changed` are ascending offsets within the run, never its
    first or last word, at least eight apart; `sources` are all places with exactly this run and these changes.
    """

    text: int
    start: int
    length: int
    changed: tuple[int, ...]
    sources: tuple[Source, ...]


class NearIndex(NgramIndex):
    """Source documents, asked for near runs of at least `minimum` words (never fewer than a window).

    `documents` are (file, words) pairs, or numbered already. Memory is about 25 bytes a word. Near runs are found from
    the runs of four equal words that each of them holds: common phrases cost time in proportion to how often the
    sources repeat them.
    """

    def __init__(self, documents: Iterable[tuple[str, Sequence[str]]] | Numbered, minimum: int = WINDOW) -> None:
        super().__init__(documents, _SEED)
        self.minimum = max(minimum, WINDOW)

    def near_matches(
        self, texts: Sequence[Sequence[str]] | Texts, prompts: Sequence[Sequence[str]] = ()
    ) -> list[NearMatch]:
        """The near runs that each text shares with the sources, by text, start, length and changes.

        `prompts` are as many as the texts, or none: a window of a text that is near to a window of its own prompt is
        no match and breaks runs.
        """
        texts = texts if isinstance(texts, Texts) else Texts(texts)
        ids, begins = self._numbered(texts)
        rows = np.unique(np.concatenate([np.empty((0, 3), dtype=np.intp), *self._stretches(ids)]), axis=0)
        owners = (np.searchsorted(begins, rows[:, 0], side="right") - 1).tolist()
        barred: dict[int, _Flags] = {}
        found: dict[tuple[int, int, int, tuple[int, ...]], list[int]] = {}
        for owner, (begin, end, shift) in zip(owners, rows.tolist(), strict=True):
            if len(prompts) and owner not in barred:
                barred[owner] = near_windows(texts.words[owner], prompts[owner])
            base = int(begins[owner])
            for row in _pieces((begin, end, shift), barred.get(owner), base):
                start, length, changed = self._trimmed(ids, row)
                if length >= self.minimum and changed:
                    found.setdefault((owner, start - base, length, changed), []).append(start + shift)
        return [NearMatch(*key, self._sources(sorted(found[key]))) for key in sorted(found)]

    def _stretches(self, ids: Ids) -> Iterator[Places]:
        """(R, 3): begin, end and shift of every chain of near windows around runs of at least four equal words."""
        open_ = np.zeros(ids.size, dtype=np.bool_)
        for text_at, source_at in self._pairs(*self._looked_up(ids)):
            begin, length, source = self._runs(ids, open_, text_at, source_at).T
            end, shift = begin + length, source - begin
            left = self._grown(ids, begin, shift, -1)
            right = self._grown(ids, end - 1, shift, 1) + 1
            # Under seven words between two changes only one of the changes fits into a window.
            both = length >= WINDOW - 1
            stretches = np.concatenate(
                [
                    np.stack([left[both], right[both], shift[both]], axis=1),
                    np.stack([left[~both], end[~both], shift[~both]], axis=1),
                    np.stack([begin[~both], right[~both], shift[~both]], axis=1),
                ]
            )
            yield stretches[stretches[:, 1] - stretches[:, 0] >= self.minimum]

    def _grown(self, ids: Ids, at: Places, shift: Places, step: int) -> Places:
        """The last agreeing word (…) that is reached from `at`, whose next word differs, in steps of 1 or -1."""
        reached, change = at.copy(), at + step
        here = change.copy()
        going = np.arange(at.size)
        while going.size:
            text, source = ids[here[going]], self._ids[here[going] + shift[going]]
            inside = (text != TEXT_BORDER) & (source != SOURCE_BORDER)
            going, same = going[inside], (text == source)[inside]
            reached[going[same]] = here[going[same]]
            away = np.abs(here[going] - change[going])
            changes = ~same & ((away == 0) | (away >= WINDOW))
            change[going[changes]] = here[going[changes]]
            going = going[same | changes]
            here[going] += step
        return reached

    def _trimmed(self, ids: Ids, row: _Row) -> tuple[int, int, tuple[int, ...]]:
        """Start, length and changed words of a stretch without differing words at its ends."""
        begin, end, shift = row
        same = ids[begin:end] == self._ids[begin + shift : end + shift]
        agree = np.flatnonzero(same)
        first, last = int(agree[0]), int(agree[-1])
        changed = np.flatnonzero(~same[first : last + 1])
        return begin + first, last - first + 1, tuple(changed.tolist())


def near_windows(text: Sequence[str], prompt: Sequence[str]) -> _Flags:
    """Which windows (W,) of the text agree with some window of the prompt in all words but one at most."""
    if min(len(text), len(prompt)) < WINDOW:
        return np.zeros(max(0, len(text) - WINDOW + 1), dtype=np.bool_)
    numbers: dict[str, int] = {}
    own, given = (
        np.lib.stride_tricks.sliding_window_view(np.array([numbers.setdefault(w, len(numbers)) for w in words]), WINDOW)
        for words in (text, prompt)
    )
    near = np.zeros(len(own), dtype=np.bool_)
    for window in given:
        near |= (own != window).sum(axis=1) <= 1
    return near


def _pieces(row: _Row, barred: _Flags | None, base: int) -> Iterator[_Row]:
    """The stretch without its barred windows, which count from the text's place `base`."""
    begin, end, shift = row
    if barred is None:
        yield row
        return
    free = np.flatnonzero(~barred[begin - base : end - base - WINDOW + 1])
    for chain in np.split(free, np.flatnonzero(np.diff(free) > 1) + 1):
        if chain.size:
            yield begin + int(chain[0]), begin + int(chain[-1]) + WINDOW, shift
