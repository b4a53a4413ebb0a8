"""Proof before generation that each adapter is applied: log probabilities of one greedy prompt, model by model.

A wrong key prefix loads with 200 and changes nothing, and some servers answer any model name with the base; neither
shows in a status or in the response's model name, only in what the model thinks of the next token.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Annotated, Literal

from pydantic import Field

from gates.errors import UnfitSeatError
from gates.records import Record
from gates.seat.answers import Answer, TokenScore
from gates.seat.client import SeatClient, SeatRequest
from gates.seat.credit import check_route, target_of
from gates.seat.faults import NotCreditedError, RefusedRequestError, UnknownModelError, printable
from gates.seat.requests import canary_body, salted
from gates.spec.schema import Gate

UNKNOWN_MODEL = "gates-canary-no-such-model"
TOKENS = 8
TOP = 5
REPEATS = 2
AGREES = 0.5
"""Two answers of one model to one prompt differ by less than this (nats); bfloat16 logits step by up to 0.125."""
APART = 3.0
"""Two models must differ by more than this many times the larger of their own disagreements..."""
LEAST = 1e-4
"""...and by more than this (nats) on a seat that repeats itself exactly."""

Scores = tuple[TokenScore, ...]


class ModelCanary(Record):
    """One model against itself: the largest difference between repeated answers, in nats, and its first answer.

    `positions` holds, for each token of that answer, (token, log probability) of the chosen one and then of the others
    listed in its place. `target` names what stands behind a proxy that tells.
    """

    model: str
    noise: float = Field(ge=0)
    positions: tuple[Annotated[tuple[tuple[str, float], ...], Field(min_length=1)], ...]
    target: dict[str, str] = Field(default_factory=dict)

    @property
    def scores(self) -> Scores:
        """The first answer as scores."""
        return tuple(TokenScore(*position[0], dict(position)) for position in self.positions)

    @property
    def tokens(self) -> tuple[str, ...]:
        """The tokens of the first answer."""
        return tuple(position[0][0] for position in self.positions)


class PairCanary(Record):
    """Two models against each other: the largest difference of their log probabilities, and what it must exceed."""

    first: str
    second: str
    difference: float = Field(ge=0)
    threshold: float = Field(gt=0)

    @property
    def apart(self) -> bool:
        """Whether the two answer differently."""
        return self.difference > self.threshold


class CanaryReport(Record):
    """What the canary saw (`gates.canary/1`): every model, every pair, and how an unknown model was refused."""

    schema_: Literal["gates.canary/1"] = Field(default="gates.canary/1", alias="schema")
    beat: str
    models: tuple[ModelCanary, ...]
    pairs: tuple[PairCanary, ...]
    refusal: str

    def of(self, models: Mapping[str, str]) -> CanaryReport:
        """What was heard of some models each for itself, under the name that `models` gives it now."""
        kept = tuple(one.model_copy(update={"model": models[one.model]}) for one in self.models if one.model in models)
        return self.model_copy(update={"models": kept, "pairs": ()})

    @property
    def targets(self) -> dict[str, dict[str, str]]:
        """What stood behind a proxy for each model; empty where nothing told."""
        return {model.model: model.target for model in self.models}


async def check_adapters(
    client: SeatClient, gate: Gate, prompts: Sequence[str], cache_salt: str, *, context: int | None = None
) -> CanaryReport:
    """Ask the base and every adapter of the gate, three times each, about the first beat; ask an unknown model too.

    `context` is the seat's length in tokens: prompt and answer must fit it, since vLLM would cut the answer unsaid.
    Raises UnfitSeatError with every cause and its remedy, and FaultError when the seat fails to answer.
    """
    base = gate.arms.base.model
    models = list(dict.fromkeys(arm.model for arm in gate.arms.all().values()))
    causes: list[str] = []
    answers: dict[str, list[Answer]] = {}
    for model in models:
        body = salted(canary_body(gate, model, prompts[0], tokens=TOKENS, top=TOP), cache_salt)
        request = SeatRequest(gate.prompts.endpoint, body)
        try:
            heard = [await client.complete(request) for _ in range(1 + REPEATS)]
        except UnknownModelError as fault:
            causes.append(f"the seat does not serve {model!r} ({fault.message}): load it under this name")
            continue
        causes.extend(_faults_of(model, heard, is_base=model == base))
        answers[model] = heard
    body = salted(canary_body(gate, UNKNOWN_MODEL, prompts[0], tokens=1, top=TOP), cache_salt)
    refusal = await _refusal(client, SeatRequest(gate.prompts.endpoint, body), causes)
    causes.extend(_too_long(answers.get(base, []), gate.sampling.max_tokens, context))
    scored = {model: heard for model, heard in answers.items() if all(answer.scores for answer in heard)}
    noises, pairs = _compare(scored, base, causes)
    if causes:
        raise UnfitSeatError(
            "\n".join(
                ["the canary failed: the seat does not answer as the gate needs it", *(f"  {c}" for c in causes)]
            ),
            next_step="remedy the causes, then run the same command again",
        )
    return CanaryReport(beat=prompts[0], models=noises, pairs=pairs, refusal=refusal)


def _faults_of(model: str, heard: Sequence[Answer], *, is_base: bool) -> list[str]:
    causes = []
    answer = heard[0]
    try:
        for each in heard:
            check_route(each, target_of(answer.headers))
    except NotCreditedError as fault:
        causes.append(f"{model!r} was {fault.message}")
    if not is_base and answer.model != model:
        causes.append(
            f"asked for {model!r}, answered by {answer.model!r}: something between overrides `model`; "
            "name the seat's own address as seat.base_url"
        )
    if not answer.scores:
        causes.append(
            f"{model!r} answers without log probabilities, so nothing proves which weights answered: "
            "use a server that gives `logprobs` (vLLM: --max-logprobs above 4)"
        )
    return causes


def _too_long(heard: Sequence[Answer], max_tokens: int, context: int | None) -> list[str]:
    usage = heard[0].usage if heard else None
    if usage is None or context is None or usage.prompt_tokens + max_tokens <= context:
        return []
    return [
        f"the first prompt ({usage.prompt_tokens} tokens) and max_tokens {max_tokens} do not fit the seat's context of "
        f"{context} tokens: it would cut answers short without a word; serve with a larger --max-model-len, or seal a "
        "smaller max_tokens"
    ]


async def _refusal(client: SeatClient, request: SeatRequest, causes: list[str]) -> str:
    try:
        answer = await client.complete(request)
    except RefusedRequestError as fault:
        return fault.message  # whatever the status: the same key has just been answered for models that exist
    by = printable(str(answer.model))
    causes.append(
        f"the seat answered for {UNKNOWN_MODEL!r}, which does not exist (as {by!r}): it ignores `model`, "
        "so an adapter's name proves nothing; serve base and adapters by name "
        "(vLLM: --enable-lora --lora-modules NAME=PATH)"
    )
    return ""


def _compare(
    heard: dict[str, list[Answer]], base: str, causes: list[str]
) -> tuple[tuple[ModelCanary, ...], tuple[PairCanary, ...]]:
    answers = {model: [answer.scores for answer in said] for model, said in heard.items()}
    noise = {model: max(distance(scores[0], again) for again in scores[1:]) for model, scores in answers.items()}
    causes.extend(
        f"{model!r} does not agree with itself: repeated greedy answers differ by {value:.3g} nats (limit {AGREES}): "
        "several servers behind one address, or weights changed while serving; use one server and leave it alone"
        for model, value in noise.items()
        if value >= AGREES
    )
    pairs = tuple(
        PairCanary(
            first=first,
            second=second,
            difference=distance(answers[first][0], answers[second][0]),
            threshold=_threshold(noise[first], noise[second]),
        )
        for first, second in combinations(answers, 2)
    )
    causes.extend(_alike(pair, base) for pair in pairs if not pair.apart)
    models = tuple(
        ModelCanary(
            model=model,
            noise=value,
            positions=tuple(map(_position, answers[model][0])),
            target=target_of(heard[model][0].headers),
        )
        for model, value in noise.items()
    )
    return models, pairs


def _threshold(*noises: float) -> float:
    return max(LEAST, APART * max(noises))


def _position(score: TokenScore) -> tuple[tuple[str, float], ...]:
    return tuple({score.token: score.logprob, **_listed(score)}.items())


def _alike(pair: PairCanary, base: str) -> str:
    measured = f"largest difference {pair.difference:.3g} nats, needed more than {pair.threshold:.3g}"
    if pair.first == base:
        return (
            f"{pair.second!r} answers as the base does ({measured}): the adapter is not applied; check that its key "
            "prefix and target modules are the base's (a wrong prefix loads without an error), and load it anew"
        )
    return (
        f"{pair.first!r} and {pair.second!r} answer alike ({measured}): one adapter under two names, "
        "or two files of the same bytes; check the path that each was loaded from, or leave one out of the gate"
    )


def _unsteady(*noises: float) -> float:
    """How far a model's answers may lie apart between sessions: on a seat that is not exact, as far as within one."""
    return max(AGREES, _threshold(*noises)) if max(noises) > 0 else LEAST


def same_voices(first: CanaryReport, now: CanaryReport, than: str = "its first answer") -> list[str]:
    """One sentence for each model and each pair that answers otherwise than in the first session; empty is well.

    `than` says what `first` is where that is no earlier session: another seat's answer.

    A model is held against its own first answer, as two models are held against each other. A pair's difference may
    change by as much as the larger of its thresholds; it is compared where both models choose the same tokens as then,
    since otherwise other positions entered it.
    """
    then, since = ({model.model: model for model in report.models} for report in (first, now))
    both = [model for model in then if model in since]
    changes = [f"{model!r} was heard in one of the sessions only" for model in sorted(then.keys() ^ since.keys())]
    for model in both:
        moved = distance(then[model].scores, since[model].scores)
        allowed = _unsteady(then[model].noise, since[model].noise)
        if then[model].target != since[model].target:
            changes.append(f"{model!r} is answered by another target behind the proxy")
        if moved > allowed:
            changes.append(f"{model!r} answers {moved:.3g} nats away from {than} (allowed {allowed:.3g})")
    steady = {model for model in both if then[model].tokens == since[model].tokens}
    before = {(pair.first, pair.second): pair for pair in first.pairs}
    for pair in now.pairs:
        old = before.get((pair.first, pair.second))
        if old is None or not {pair.first, pair.second} <= steady:
            continue
        noises = [report[model].noise for report in (then, since) for model in (pair.first, pair.second)]
        allowed = max(old.threshold, pair.threshold, _unsteady(*noises))
        if abs(pair.difference - old.difference) > allowed:
            changes.append(
                f"{pair.first!r} and {pair.second!r} differed by {old.difference:.3g} nats and now by "
                f"{pair.difference:.3g} (allowed change {allowed:.3g})"
            )
    return changes


def distance(first: Scores, second: Scores) -> float:
    """The largest difference of two answers' log probabilities in nats; a lower bound where a list leaves a token out.

    Position by position, up to and including the first where the chosen tokens differ, since after it the contexts
    differ. A token that only one answer lists is at most as likely in the other as the last one listed there.
    """
    largest = 0.0
    for one, other in zip(first, second, strict=False):  # an answer may end earlier
        here, there = _listed(one), _listed(other)
        for mine, yours in ((here, there), (there, here)):
            least = min(yours.values())
            for token, logprob in mine.items():
                gap = abs(logprob - yours[token]) if token in yours else max(0.0, logprob - least)
                largest = max(largest, gap)
        if one.token != other.token:
            break
    return largest


def _listed(score: TokenScore) -> dict[str, float]:
    return {**score.top, score.token: score.logprob}
