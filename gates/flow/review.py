"""Reading a finished run: what there is to read, each item with its context, and what readers have said of it.

The words of a source are read from the corpus cache when they are shown; no record holds them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from gates.corpora.texts import load_split
from gates.errors import GatesError, UsageError
from gates.flow.finished import FinishedRun, read_run
from gates.flow.world import World
from gates.measure.figures import NearRun, Run, Source
from gates.measure.memorisation import Excerpt, excerpt
from gates.record.ledger import Ledger
from gates.record.review import Mark, Review, Said, latest, named
from gates.record.review_list import Item, ReadingList, matched, reading_list
from gates.record.seal import SealOnDisk
from gates.record.store import RunStore
from gates.records import Generation
from gates.spec.schema import SignOffRule

CONTEXT = 40
"""Words on each side of a matched run."""

MOST_SOURCES = 3


@dataclass(frozen=True)
class Quote:
    """A run where it stands in a source; `words` is None, and `missing` says why, where the text is not here."""

    source: Source
    words: Excerpt | None
    missing: str = ""


@dataclass(frozen=True)
class ItemShown:
    """An item as a person reads it: the prompt, the whole text, the run in it, and where it comes from."""

    name: str
    item: Item
    prompt: str
    text: str
    error: str | None
    run: Excerpt | None = None
    quotes: tuple[Quote, ...] = ()
    more_sources: int = 0
    elsewhere: str = ""


@dataclass(frozen=True)
class Reading:
    """A finished run with its reading list, its generations by key, and its marks."""

    run: FinishedRun
    list: ReadingList
    generations: dict[tuple[str, int, int], Generation]
    review: Review
    cache: Path
    _texts: dict[str, dict[str, str]] = field(default_factory=dict)

    @cached_property
    def items(self) -> dict[str, Item]:
        """Every item by its name, the hash of it."""
        return self.list.by_hash()

    @cached_property
    def list_sha256(self) -> str:
        """The hash of the reading list."""
        return self.list.digest()

    def marks(self, by: str | None = None) -> dict[str, Mark]:
        """The marks that count, by item; of one reader, or of anybody."""
        return latest(self.review.read(), self.list_sha256, by)

    def needed(self, arm: str | None = None) -> dict[str, Item]:
        """What signing off a candidate needs read; without one, what signing off any of them does."""
        candidates = self.run.seal.gate.arms.candidates
        if arm is not None and arm not in candidates:
            raise UsageError(
                f"{arm!r} is no candidate of this gate", next_step=f"choose one of: {', '.join(candidates)}"
            )
        required = [self.list.required(name) for name in ([arm] if arm else candidates)]
        return {name: item for name, item in self.items.items() if any(name in some for some in required)}

    def unread(self, by: str, arm: str | None = None) -> dict[str, Item]:
        """What of that the reader has not marked yet."""
        marked = self.marks(by)
        return {name: item for name, item in self.needed(arm).items() if name not in marked}

    def mark(self, name: str, said: Said, world: World) -> Mark:
        """Record what a reader says of the item whose name begins so; it is on the disk when this returns.

        Saying again what counts already adds no mark.
        """
        return self.review.mark(self.list_sha256, named(self.items, name), said, world.stamp())

    def enter(self, world: World) -> None:
        """End a sitting: enter the marks so far in the ledger."""
        store = self.run.store
        self.review.enter(Ledger(self.run.workspace / "prereg"), store.gate, store.number, world.stamp())

    def show(self, name: str) -> ItemShown:
        """An item with its context."""
        item = self.items[name]
        generation = self.generations[item.key]
        prompt = prompt_of(generation)
        run = self._matched(item)
        if run is None:
            return ItemShown(name, item, prompt, generation.text, generation.error)
        sources = run.sources[:MOST_SOURCES]
        others = run.elsewhere if isinstance(run, Run) else ()
        return ItemShown(
            name=name,
            item=item,
            prompt=prompt,
            text=generation.text,
            error=generation.error,
            run=excerpt(generation.text, run.start, run.length, CONTEXT),
            quotes=tuple(self._quote(source, run.length) for source in sources),
            more_sources=len(run.sources) - len(sources),
            elsewhere=others[0].file if others else "",
        )

    def _matched(self, item: Item) -> Run | NearRun | None:
        wanted = item.match
        if wanted is None:
            return None
        runs = dict(matched(self.run.measurements.arms[item.arm]))[wanted.against]
        place = (item.prompt, item.seed, wanted.start, wanted.length)
        return next(run for run in runs if (run.prompt, run.seed, run.start, run.length) == place)

    def _quote(self, source: Source, length: int) -> Quote:
        text = self._text(source.file)
        if text is None:
            return Quote(source, None, "its text is not in the corpus cache, or is not the sealed one")
        try:
            return Quote(source, excerpt(text, source.start, length, CONTEXT))
        except UsageError as error:
            return Quote(source, None, error.message)

    def _text(self, file: str) -> str | None:
        sealed = self.run.sealed
        for role, files in sealed.seal.binding.texts.items():
            if file not in files:
                continue
            if role not in self._texts:
                self._texts[role] = _texts_of(self.run.workspace, self.cache, sealed, role)
            return self._texts[role].get(file)
        return None


def open_reading(folder: Path, cache: Path, store: RunStore | None = None) -> Reading:
    """The reading of the finished run in `folder`; `store` is its own, if open.

    Raises RecordError where no finished run is, TamperedError where a file or a mark is not what the ledger says.
    """
    run = read_run(folder, store)
    store, gate = run.store, run.seal.gate
    generations = {generation.key: generation for generation in store.generations(run.sealed.sha256)}
    review = Review(store.folder)
    review.check(Ledger(run.workspace / "prereg").entries(), store.gate, store.number)
    wanted = gate.sign_off or SignOffRule()
    listed = reading_list(gate, run.measurements, generations.values(), samples=wanted.samples)
    return Reading(run, listed, generations, review, cache)


def prompt_of(generation: Generation) -> str:
    """Everything the model was shown, from the request as it was sent."""
    messages = generation.request.get("messages")
    if not isinstance(messages, list):
        return str(generation.request.get("prompt", ""))
    return "\n\n".join(str(message.get("content", "")) for message in messages if isinstance(message, dict))


def _texts_of(workspace: Path, cache: Path, sealed: SealOnDisk, role: str) -> dict[str, str]:
    """The texts of a role by file: those that are here and are the sealed ones."""
    corpora = sealed.seal.gate.corpora
    kind, _, ref = role.partition(".")
    refs = {"train": (corpora.train,), "heldout": (corpora.heldout,), "reference": corpora.reference}.get(kind, (ref,))
    known = sealed.seal.binding.texts[role]
    try:
        documents = [document for one in refs for document in load_split(workspace, cache, one)]
    except GatesError:
        return {}
    named_texts = {f"{document.corpus}/{document.name}": document for document in documents}
    return {name: document.text for name, document in named_texts.items() if known.get(name) == document.text_sha256}
