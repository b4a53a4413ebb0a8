"""What the review page asks of a reading: plain JSON for a browser, and marks kept as soon as they are made."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import JsonValue, ValidationError

from gates.errors import UsageError
from gates.flow.review import Quote, Reading
from gates.flow.world import World
from gates.measure.memorisation import Excerpt
from gates.record.review import LABELS, Mark, Said
from gates.report.review import place, why


@dataclass(frozen=True)
class ReviewDesk:
    """A reading at its desk, for one reader; the desk that `gates.report.web` serves."""

    reading: Reading
    world: World
    arm: str | None = None
    page: str = "review.html"

    def overview(self) -> JsonValue:
        """Run, reader, candidates, and every item that is needed, each with its mark."""
        reading, marks = self.reading, self.reading.marks(self.world.by)
        arms = [self.arm] if self.arm else list(reading.run.seal.gate.arms.candidates)
        needed = {arm: reading.needed(arm) for arm in arms}
        return {
            "run": f"{reading.run.store.gate} {reading.run.store.number:03d}",
            "question": reading.run.seal.gate.question,
            "by": self.world.by,
            "arms": list(arms),
            "labels": list(LABELS),
            "items": [
                {
                    "name": name,
                    "place": place(item),
                    "why": why(item),
                    "needed_for": [arm for arm in arms if name in needed[arm]],
                    **_marked(marks.get(name)),
                }
                for name, item in reading.needed(self.arm).items()
            ],
        }

    def item(self, name: str) -> JsonValue:
        """An item with its context. Raises UsageError for a name that is none."""
        if name not in self.reading.items:
            raise UsageError(f"{name!r} is no item of this reading list")
        shown = self.reading.show(name)
        return {
            "prompt": shown.prompt,
            "text": shown.text,
            "error": shown.error,
            "run": _words(shown.run),
            "quotes": [_quote(quote) for quote in shown.quotes],
            "more_sources": shown.more_sources,
            "elsewhere": shown.elsewhere,
        }

    def say(self, name: str, said: JsonValue) -> JsonValue:
        """Keep a mark. Raises UsageError for one that cannot be."""
        try:
            meant = Said.model_validate(said)
        except ValidationError as error:
            raise UsageError(f"the mark cannot be kept: {error.errors(include_url=False)[0]['msg']}") from None
        if name not in self.reading.items:
            raise UsageError(f"{name!r} is no item of this reading list")
        return _marked(self.reading.mark(name, meant, self.world))


def _marked(mark: Mark | None) -> dict[str, JsonValue]:
    if mark is None:
        return {"mark": None, "label": None, "note": ""}
    return {"mark": mark.mark, "label": mark.label, "note": mark.note}


def _words(words: Excerpt | None) -> JsonValue:
    return None if words is None else dict(words._asdict())


def _quote(quote: Quote) -> JsonValue:
    return {
        "file": quote.source.file,
        "start": quote.source.start,
        "words": _words(quote.words),
        "missing": quote.missing,
    }
