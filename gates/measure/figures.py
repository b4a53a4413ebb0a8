"""What was measured, as frozen records: the only thing that judges see.

Shapes: S generation seeds, P prompts. Nothing here decides anything. Records keep positions and hashes of matched
source text, never the text.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue, SerializerFunctionWrapHandler, model_serializer

from gates.records import Record, Sha256

Rate = float
"""A share in [0, 1]."""


class Unmeasured(Record):
    """An axis that could not be measured on this arm, and why. Never a PASS."""

    unmeasured: str


class VoiceFigures(Record):
    """`delta_cb@1` of one arm against the base, toward the held-out text.

    `distances` (S,) are d(arm, s) in [0, 2] in the order of the arm's seeds, `base_distances` (S,) the base's.
    `delta` = mean(base_distances) − mean(distances); positive = toward the author. `spread` = max − min over seeds.
    `ceiling` = the distance of the author's own text under the same conditions; `span` = mean(base_distances) −
    ceiling; `span_closed` = delta / span (None when the span is not positive). `interval`: descriptive 95 % prompt
    bootstrap of delta. `imposters`: the move toward each imposter; `specificity` = delta − the largest of them.
    `influence` (P,): delta without that prompt, minus delta. `words` (S,): words in each seed's pool.
    """

    signature: str
    frame_sha256: Sha256
    words: tuple[int, ...]
    base_words: tuple[int, ...]
    distances: tuple[float, ...]
    base_distances: tuple[float, ...]
    delta: float
    spread: float
    base_spread: float
    ceiling: float | None
    span: float | None
    span_closed: float | None
    interval: tuple[float, float]
    imposters: dict[str, float]
    specificity: float | None
    influence: tuple[float, ...]
    notes: tuple[str, ...] = ()


class Source(Record):
    """Where a matched run stands in a source: file name and word offset from 0."""

    file: str
    start: int = Field(ge=0)


class Run(Record):
    """A maximal run of matched words: which generation, where in it, how long, and every place it comes from.

    `start` and `length` count words of the generation's text from 0. `sha256` is of the run's words joined by single
    spaces. `capitalised`: offsets within the run of words written with a capital in the generation. `elsewhere`: every
    place where texts of other authors hold the whole run too: then it is likely a quotation, a proverb or a set phrase.
    """

    prompt: int
    seed: int
    start: int = Field(ge=0)
    length: int = Field(ge=1)
    sources: tuple[Source, ...]
    sha256: Sha256
    capitalised: tuple[int, ...]
    elsewhere: tuple[Source, ...] = ()


class NearRun(Record):
    """A run that stands in a source but for the words at `changed` (ascending offsets within the run).

    `sha256` is of the run's words as generated, joined by single spaces; the rest as in `Run`.
    """

    prompt: int
    seed: int
    start: int = Field(ge=0)
    length: int = Field(ge=1)
    changed: tuple[int, ...]
    sources: tuple[Source, ...]
    sha256: Sha256


class NearFigures(Record):
    """`near_runs@1` of one arm: runs that match the train split after at most one word changed in eight.

    Beside the exact runs and never among them: each of these holds at least one changed word. `hits` generations hold
    one, a share `rate` of those scanned; `longest` is the longest such run, `unseen_longest` the longest that the
    author's own held-out text shares with the train split, both in words.
    """

    signature: str
    hits: int
    rate: Rate
    longest: int
    unseen_longest: int
    runs: tuple[NearRun, ...]


class ProtectedFigures(Record):
    """`ngram_hits@1` of one arm against the further protected texts of the gate: as in `MemorisationFigures`."""

    signature: str
    generations: int
    hits: int
    rate: Rate
    longest: int
    runs: tuple[Run, ...]


class SelfCollision(Record):
    """How often the author's own held-out text hits the train split, in windows of the arm's own lengths."""

    windows: int
    hits: int
    rate: Rate
    longest: int


class MemorisationFigures(Record):
    """`ngram_hits@1` of one arm against the train split, its own prompts' n-grams subtracted.

    `hits` of `generations` scanned texts hold at least one n-gram of it; `unscanned` more failed or are shorter than an
    n-gram, are no evidence and in no rate. `ngram_share` of all n-grams and `words_covered` of all words
    match; `longest` is the longest run in words. `heldout_hits`: generations holding an n-gram of the held-out text.
    `ratio`: hit-rate / self-collision rate with its exact 95 % limits (None: undefined, or no upper limit).
    `near`: near-verbatim runs, in none of the other figures. `protected`: None where the gate names no such texts.
    """

    signature: str
    n: int
    generations: int
    unscanned: int
    hits: int
    rate: Rate
    ngram_share: Rate
    words_covered: Rate
    longest: int
    runs: tuple[Run, ...]
    heldout_hits: int
    heldout_longest: int
    self_collision: SelfCollision
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    near: NearFigures
    protected: ProtectedFigures | None


class DamageFigures(Record):
    """One damage axis of one arm: `values` (S, P), each 0 or 1 (or a share), seed by prompt; higher is not better.

    `worse` says which direction is harm.
    """

    signature: str
    worse: Literal["higher", "lower"]
    values: tuple[tuple[float, ...], ...]
    per_seed: tuple[float, ...]
    rate: float


class ValidityFigures(Record):
    """Whether an arm's generations are fit to judge: how many there should be, and what is wrong with them."""

    expected: int
    present: int
    errors: int
    empty: int
    repeated_seeds: int = Field(description="texts that an earlier seed of the same prompt gave word for word")
    prompt_mismatches: int = Field(
        description="prompts whose tokens differed between seeds, or from those of the arms that were shown the same"
    )


class ArmMeasurements(Record):
    """Everything measured on one arm. The base has no voice figures of its own: it is what others move from."""

    role: Literal["base", "candidate", "control"]
    seeds: tuple[int, ...]
    validity: ValidityFigures
    voice: VoiceFigures | Unmeasured | None
    memorisation: MemorisationFigures | Unmeasured | None
    extraction: MemorisationFigures | Unmeasured | None = Field(
        description="the same of the probe's texts, which no other figure sees; None without a probe"
    )
    damage: dict[str, DamageFigures | Unmeasured]


class JudgeFigures(Record):
    """How often the judging model errs on labelled texts: `on_beat` that tell of their beat and `off_beat` that do not.

    `missed` are on their beat and judged off it, `taken` the reverse; `error_rate` is the share of both, with its
    one-sided 95 % limits. Of `swayed` texts the two orders of the question brought different answers.
    """

    signature: str
    on_beat: int
    off_beat: int
    missed: int
    taken: int
    swayed: int
    error_rate: Rate
    error_low: Rate
    error_high: Rate


class Leak(Record):
    """A run of at least 20 words that train and held-out text share.

    A near-verbatim twin has `changed` words (offsets within the run, at most one in eight); an exact leak has none.
    `sha256` is of the held-out text's words.
    """

    train: Source
    heldout: Source
    length: int
    sha256: Sha256
    changed: tuple[int, ...] = ()


class SeatFigures(Record):
    """What one of several seats gave: texts and texts without an answer, each by arm, and what is known against it.

    `unlike` says how it differs from the first seat, `lost` why it answered no more, each time. `closed`: it was looked
    at again after its last text; without that nothing but each answer's own marks says that it stayed what it was.
    """

    seat: str
    texts: dict[str, int]
    errors: dict[str, int]
    unlike: tuple[str, ...]
    lost: tuple[str, ...]
    closed: bool


class SeatsFigures(Record):
    """Several seats of one run. A block is a prompt and seed of every arm; `split` of `blocks` had more than one seat.

    Where none is split, every arm has as many texts from each seat as every other.
    """

    seats: tuple[SeatFigures, ...]
    blocks: int
    split: int


class Measurements(Record):
    """All figures of one run, a pure function of seal, texts and generations; of several seats also of their looks."""

    schema_: Literal["gates.measurements/1"] = Field(default="gates.measurements/1", alias="schema")
    seal: Sha256
    generations_sha256: Sha256
    arms: dict[str, ArmMeasurements]
    leaks: tuple[Leak, ...]
    judge: JudgeFigures | Unmeasured | None = None
    seats: SeatsFigures | None = None

    @model_serializer(mode="wrap")
    def _as_before(self, handler: SerializerFunctionWrapHandler) -> dict[str, JsonValue]:
        """Without a judge where none was asked, and without seats where there is one: such figures keep their hash."""
        document: dict[str, JsonValue] = handler(self)
        return {key: value for key, value in document.items() if key not in _LATER or value is not None}


_LATER = frozenset({"judge", "seats"})
