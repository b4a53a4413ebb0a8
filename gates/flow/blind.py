"""Blind reading: base, candidate and author side by side without labels, drawn from the seal for each reader.

The author never wrote for a beat: beside the two answers stands the held-out passage that shares most words with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from pydantic import JsonValue, ValidationError

from gates.corpora.texts import load_split
from gates.errors import RefusedError, TamperedError, UsageError
from gates.flow.review import Reading, prompt_of
from gates.flow.world import World
from gates.measure.damage.stop_words import STOP_WORDS
from gates.measure.figures import VoiceFigures
from gates.record.ledger import Ledger, Stored
from gates.record.lines import state_in
from gates.record.votes import WHO, Choice, Trial, Vote, Votes, Who, tallies
from gates.records import digest
from gates.text import normalise, words

DRAW = "blind-draw@1"
MOST_WORDS = 120
FEWEST_WORDS = 20
_QUOTES = dict.fromkeys(map(ord, "“”„«»"), '"')
_DASHES = re.compile(r"-{2,}")
_ITALICS = re.compile(r"_([^_\n]+)_")
_ENDS = re.compile(r"[.!?]['\")]*$")


class Passage(NamedTuple):
    """A held-out passage's place: its file and the word, by white space from 0, that it begins at."""

    file: str
    start: int


@dataclass(frozen=True)
class BlindReading:
    """One reader's trials of one candidate."""

    reading: Reading
    arm: str
    by: str

    @cached_property
    def votes(self) -> Votes:
        """The votes on this run."""
        return Votes(self.reading.run.store.folder)

    def trials(self) -> Iterator[Trial]:
        """The trials in the order drawn for this reader, as many as the run has prompts and seeds.

        Raises CorpusError where the held-out texts are not here, RefusedError where they are not the sealed ones.
        """
        keys = self._keys()
        seed = int(digest([DRAW, self.reading.run.sealed.sha256, self.arm, self.by])[:13], 16)
        raw = np.random.PCG64(seed).random_raw(4 * len(keys)).reshape(-1, 4).tolist()
        drawn = sorted(zip(raw, keys, strict=True), key=lambda pair: pair[0][0])
        taken: set[Passage] = set()
        for (_, *chance), (prompt, seed_) in drawn:
            texts = [self._generated(arm, prompt, seed_) for arm in ("base", self.arm)]
            length = min(MOST_WORDS, *map(len, texts))
            passage = self._nearest(prompt, seed_, length, taken)
            taken.add(passage)
            yield Trial(
                arm=self.arm,
                prompt=prompt,
                seed=seed_,
                words=length,
                author_file=passage.file,
                author_start=passage.start,
                order=_shuffled(chance),
            )

    def passages(self, trial: Trial) -> tuple[str, str, str]:
        """The three passages in the order shown, all cut to the same length, typography made alike."""
        author = self._heldout[trial.author_file][trial.author_start : trial.author_start + trial.words]
        found = {
            "base": self._generated("base", trial.prompt, trial.seed)[: trial.words],
            "candidate": self._generated(trial.arm, trial.prompt, trial.seed)[: trial.words],
            "author": author,
        }
        one, two, three = (" ".join(found[who]) for who in trial.order)
        return one, two, three

    def beat(self, trial: Trial) -> str:
        """The prompt that was shown."""
        return prompt_of(self.reading.generations["base", trial.prompt, trial.seed])

    def _keys(self) -> list[tuple[int, int]]:
        """Prompts and seeds that both the base and the candidate have answered with enough words."""
        gate = self.reading.run.seal.gate
        if self.arm not in gate.arms.candidates:
            raise UsageError(f"{self.arm!r} is no candidate", next_step=f"one of: {', '.join(gate.arms.candidates)}")
        voice = self.reading.run.measurements.arms[self.arm].voice
        # One influence an open prompt; the probe's are numbered after them.
        prompts = range(len(voice.influence) if isinstance(voice, VoiceFigures) else 0)
        keys = sorted(key[1:] for key in self.reading.generations if key[0] == self.arm and key[1] in prompts)
        long = [key for key in keys if all(self._long(arm, *key) for arm in ("base", self.arm))]
        if not long:
            raise UsageError(
                f"base and {self.arm} have no two answers of {FEWEST_WORDS} words to compare",
                next_step="read a run of longer texts",
            )
        return long

    def _long(self, arm: str, prompt: int, seed: int) -> bool:
        key = (arm, prompt, seed)
        return key in self.reading.generations and len(self._generated(arm, prompt, seed)) >= FEWEST_WORDS

    def _generated(self, arm: str, prompt: int, seed: int) -> list[str]:
        return _plain(self.reading.generations[arm, prompt, seed].text)

    @cached_property
    def _heldout(self) -> Mapping[str, list[str]]:
        run = self.reading.run
        sealed = run.seal.binding.texts["heldout"]
        documents = load_split(run.workspace, self.reading.cache, run.seal.gate.corpora.heldout)
        named = {f"{document.corpus}/{document.name}": document for document in documents}
        if {name: document.text_sha256 for name, document in named.items()} != sealed:
            raise RefusedError("the held-out texts here are not the sealed ones", next_step="gates verify names them")
        return {name: _plain(document.text) for name, document in named.items()}

    @cached_property
    def _starts(self) -> list[tuple[Passage, list[frozenset[str]]]]:
        """Every place where a sentence begins, with the content words of the words from there on."""
        found: list[tuple[Passage, list[frozenset[str]]]] = []
        for file, text in self._heldout.items():
            content = {word: frozenset(words(word)) - STOP_WORDS for word in set(text)}
            contents = [content[word] for word in text]
            # Where no sentence ends for long, as in verse, a passage begins at any 120th word.
            begins = [n for n, before in enumerate(["", *text[:-1]]) if n % MOST_WORDS == 0 or _ENDS.search(before)]
            found.extend((Passage(file, n), contents[n : n + MOST_WORDS]) for n in begins)
        return found

    def _nearest(self, prompt: int, seed: int, length: int, taken: set[Passage]) -> Passage:
        """The free passage of this length that shares most words with the prompt; the first of equals."""
        asked = frozenset(words(prompt_of(self.reading.generations["base", prompt, seed]))) - STOP_WORDS
        free = [pair for pair in self._starts if len(pair[1]) >= length and pair[0] not in taken]
        if not free:
            raise UsageError(
                f"the held-out text holds no more passages of {length} words", next_step="ask for fewer trials"
            )
        return max(free, key=lambda pair: len(asked & frozenset().union(*pair[1][:length])))[0]


@dataclass(frozen=True)
class BlindDesk:
    """A blind reading at its desk: `count` trials, named by their numbers so that no name tells anything."""

    blind: BlindReading
    world: World
    shown: Sequence[Trial]
    page: str = "blind.html"

    def overview(self) -> JsonValue:
        """The trials by number, and whether there is a vote on each."""
        voted = self._voted()
        items: list[JsonValue] = [{"name": str(n), "voted": trial in voted} for n, trial in enumerate(self.shown, 1)]
        return {"run": self.blind.reading.run.store.gate, "by": self.world.by, "items": items}

    def item(self, name: str) -> JsonValue:
        """The three passages of a trial, without labels."""
        trial = self._trial(name)
        return {"prompt": self.blind.beat(trial), "passages": list(self.blind.passages(trial))}

    def say(self, name: str, said: JsonValue) -> JsonValue:
        """Keep a vote; there is one a trial, for labels that were guessed at twice are not blind."""
        trial = self._trial(name)
        if trial in self._voted():
            raise UsageError("there is a vote on this trial already", next_step="go on with the next: the first counts")
        try:
            choice = Choice.model_validate(said)
        except ValidationError as error:
            said_wrong = error.errors(include_url=False)[0]["msg"]
            raise UsageError(
                f"the vote cannot be kept: {said_wrong}", next_step="say author and best as 0, 1 or 2"
            ) from None
        run = self.blind.reading.run
        hashes = (run.sealed.sha256, run.measurements.generations_sha256)
        self.blind.votes.vote(trial, choice, hashes, self.world.stamp())
        return {"voted": True}

    def _trial(self, name: str) -> Trial:
        if not name.isdecimal() or not 1 <= int(name) <= len(self.shown):
            raise UsageError(f"{name!r} is no trial", next_step=f"name one by its number, 1 to {len(self.shown)}")
        return self.shown[int(name) - 1]

    def _voted(self) -> list[Trial]:
        return [vote.trial for vote in self.blind.votes.read() if vote.by == self.world.by]


def check_votes(reading: Reading, entries: Sequence[Stored]) -> int:
    """Check the votes on a run, and draw their trials again; returns how many votes no ledger record holds yet.

    Raises TamperedError for votes that are not those which the ledger knows, or on trials that were never drawn, and
    CorpusError where the held-out texts are not here.
    """
    run, votes = reading.run, Votes(reading.run.store.folder)
    loose = votes.check(entries, run.store.gate, run.store.number)
    apart: dict[tuple[str, str], list[Vote]] = {}
    for vote in votes.read():
        apart.setdefault((vote.trial.arm, vote.by), []).append(vote)
    for (arm, by), mine in apart.items():
        wanted = [vote.trial for vote in mine]
        drawn = BlindReading(reading, arm, by).trials() if arm in run.seal.gate.arms.candidates else iter(())
        for trial in drawn:
            if trial in wanted:
                wanted.remove(trial)
            if not wanted:
                break
        if wanted or any(vote.generations_sha256 != run.measurements.generations_sha256 for vote in mine):
            raise TamperedError(f"{votes.path}: {by} has voted on trials of {arm} never drawn for them")
    return loose


def tallied(reading: Reading, entries: Sequence[Stored]) -> Iterator[tuple[Stored, JsonValue]]:
    """Every ledger record of the votes on a run, and what the votes that it holds come to, reader by reader."""
    store, votes = reading.run.store, Votes(reading.run.store.folder)
    for entered in votes.entered(entries, store.gate, store.number):
        yield entered, [tally.as_json() for tally in tallies(votes.read(state_in(entered)))]


def enter_votes(blind: BlindReading, world: World) -> None:
    """End a sitting: enter the votes so far in the ledger."""
    store = blind.reading.run.store
    blind.votes.enter(Ledger(blind.reading.run.workspace / "prereg"), store.gate, store.number, world.stamp())


def _shuffled(chance: Sequence[int]) -> tuple[Who, Who, Who]:
    one, two, three = (who for _, who in sorted(zip(chance, WHO, strict=True)))
    return one, two, three


def _plain(text: str) -> list[str]:
    """A text in words by white space, with typography that would tell printed from generated text made alike."""
    return normalise(_DASHES.sub(" ", _ITALICS.sub(r"\1", text.translate(_QUOTES)))).split()
