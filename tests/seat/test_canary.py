"""The canary: each way in which a seat can pretend to apply adapters is caught, with its cause and remedy."""

from __future__ import annotations

import asyncio
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gates.errors import UnfitSeatError
from gates.records import canonical
from gates.seat.answers import TokenScore
from gates.seat.canary import (
    REPEATS,
    UNKNOWN_MODEL,
    CanaryReport,
    ModelCanary,
    PairCanary,
    check_adapters,
    distance,
    same_voices,
)
from gates.seat.client import SeatClient
from gates.seat.faults import BrokenContractError, TransientError
from gates.spec.schema import Gate
from tests.seat.faulty import (
    BASE,
    BEATS,
    ONE,
    TWO,
    FaultySeat,
    Handler,
    Request,
    Wire,
    a_gate,
    answer,
    changed,
    error,
    status,
)

GATE = a_gate()
TEXT_GATE = a_gate(prompts={"file": "b", "template": "{beat}", "endpoint": "completions"})


def check(seat: FaultySeat, gate: Gate = GATE) -> CanaryReport:
    async def main() -> CanaryReport:
        async with seat, SeatClient(seat.url) as client:
            return await check_adapters(client, gate, BEATS, "salt-1")

    return asyncio.run(main())


def unfit(seat: FaultySeat, *parts: str, gate: Gate = GATE) -> list[str]:
    with pytest.raises(UnfitSeatError) as caught:
        check(seat, gate)
    causes = [line.strip() for line in caught.value.message.split("\n")[1:]]
    for part in parts:
        assert part in caught.value.message
    return causes


class Weights:
    """A seat that answers `model` with the weights of another; unknown models are refused as vLLM does."""

    def __init__(self, **weights: str) -> None:
        self.weights = {BASE: BASE, ONE: ONE, TWO: TWO, **{k.replace("_", "-"): v for k, v in weights.items()}}

    async def __call__(self, request: Request, wire: Wire) -> None:
        model = request.body["model"]
        if model not in self.weights:
            await wire.send(error(f"The model `{model}` does not exist.", "NotFoundError", 404), 404)
        else:
            await wire.send(answer(request.body, weights=self.weights[model]))


@pytest.mark.parametrize("gate", [GATE, TEXT_GATE])
def test_a_good_seat_is_reported(gate: Gate) -> None:
    seat = FaultySeat()
    report = check(seat, gate)
    assert [(model.model, model.noise) for model in report.models] == [(BASE, 0.0), (ONE, 0.0), (TWO, 0.0)]
    assert [(pair.first, pair.second) for pair in report.pairs] == [(BASE, ONE), (BASE, TWO), (ONE, TWO)]
    assert all(pair.apart and pair.threshold == 1e-4 for pair in report.pairs)
    assert "does not exist" in report.refusal
    assert report.beat == BEATS[0]
    assert CanaryReport.parse(report.model_dump_json().encode(), where="x") == report
    assert len(seat.generated) == 3 * (1 + REPEATS) + 1
    assert all(r.body["cache_salt"] == "salt-1" and r.body["temperature"] == 0 for r in seat.generated)


def test_an_adapter_that_is_not_applied_is_caught() -> None:
    causes = unfit(FaultySeat(always=Weights(voice_one=BASE)))
    assert len(causes) == 1
    assert causes[0].startswith("'voice-one' answers as the base does (largest difference 0 nats")
    assert "a wrong prefix loads without an error" in causes[0]


def test_one_adapter_under_two_names_is_caught() -> None:
    causes = unfit(FaultySeat(always=Weights(voice_two=ONE)))
    assert len(causes) == 1
    assert causes[0].startswith("'voice-one' and 'voice-two' answer alike")
    assert "or two files of the same bytes" in causes[0]


def test_the_base_answering_for_every_name_is_caught() -> None:
    async def only_base(request: Request, wire: Wire) -> None:
        await wire.send(answer(request.body, weights=BASE, model=BASE))

    causes = unfit(FaultySeat(always=only_base))
    assert [cause.split(" (")[0].split(",")[0] for cause in causes] == [
        "asked for 'voice-one'",
        "asked for 'voice-two'",
        f"the seat answered for '{UNKNOWN_MODEL}'",
        "'voice-one' answers as the base does",
        "'voice-two' answers as the base does",
        "'voice-one' and 'voice-two' answer alike",
    ]


def test_an_adapter_that_is_not_loaded_is_named() -> None:
    causes = unfit(FaultySeat(models=(BASE, ONE)))
    assert len(causes) == 1
    assert "does not serve 'voice-two'" in causes[0]
    assert "load it under this name" in causes[0]


def wavering(model: str, step: float) -> Handler:
    """A seat whose log probability of one token in `model`'s answers falls by `step` with every answer."""
    turns = count()

    async def handle(request: Request, wire: Wire) -> None:
        document = answer(request.body)
        if request.body["model"] == UNKNOWN_MODEL:
            await status(404, "no such model")(request, wire)
            return
        if request.body["model"] == model:
            document["choices"][0]["logprobs"]["content"][0]["top_logprobs"][1]["logprob"] -= step * next(turns)
        await wire.send(document)

    return handle


def test_a_model_that_does_not_agree_with_itself_is_caught() -> None:
    causes = unfit(FaultySeat(always=wavering(ONE, 0.5)))
    assert causes[0].startswith("'voice-one' does not agree with itself: repeated greedy answers differ by 1 nats")
    assert "use one server and leave it alone" in causes[0]


def test_noise_raises_what_a_difference_must_exceed() -> None:
    # two steps of 2^-3 make 0.25 between the first answer and the third, so 0.75 is asked for; voice-two is 0.20 from
    # the base and 0.98 from voice-one (the shifts of `answer`, from sha256sum: 0.793, 0.016 and 0.991)
    causes = unfit(FaultySeat(always=wavering(TWO, 0.125)))
    assert len(causes) == 1
    assert causes[0].startswith("'voice-two' answers as the base does (largest difference 0.199 nats, needed more than")
    assert "needed more than 0.75)" in causes[0]


def test_little_noise_is_recorded_and_borne() -> None:
    report = check(FaultySeat(always=wavering(TWO, 2**-10)))
    assert [model.noise for model in report.models] == pytest.approx([0, 0, 2**-9])
    assert [pair.threshold for pair in report.pairs] == pytest.approx([1e-4, 3 * 2**-9, 3 * 2**-9])


def test_a_seat_without_log_probabilities_proves_nothing() -> None:
    async def silent(request: Request, wire: Wire) -> None:
        if request.body["model"] == UNKNOWN_MODEL:
            await status(404, "no")(request, wire)
            return
        await wire.send(answer({**request.body, "logprobs": None}))

    causes = unfit(FaultySeat(always=silent), "answers without log probabilities")
    assert len(causes) == 3


def test_a_proxy_may_refuse_an_unknown_model_in_its_own_way() -> None:
    async def proxy(request: Request, wire: Wire) -> None:
        if request.body["model"] == UNKNOWN_MODEL:
            await status(403, "key not allowed to access model")(request, wire)
            return
        await wire.send(answer(request.body))

    assert "answered 403" in check(FaultySeat(always=proxy)).refusal


def test_a_failing_seat_is_not_a_passed_canary() -> None:
    with pytest.raises(TransientError, match="the seat answered 503"):
        check(FaultySeat(faults=[status(503)]))
    with pytest.raises(UnfitSeatError, match="asked for 'voice-one', answered by 'x'"):
        check(FaultySeat(always=changed(model="x")))


@pytest.mark.parametrize("number", [1e308, float("nan"), float("-inf")])
def test_an_absurd_log_probability_is_named(number: float) -> None:
    async def absurd(request: Request, wire: Wire) -> None:
        document = answer(request.body)
        document["choices"][0]["logprobs"]["content"][0]["top_logprobs"][1]["logprob"] = number
        await wire.send(document)

    with pytest.raises(BrokenContractError, match=r"logprobs\.content\.0\.top_logprobs\.1\.logprob: Input should be"):
        check(FaultySeat(always=absurd))


# two sessions of one run


def test_the_same_seat_has_the_same_voices() -> None:
    first = check(FaultySeat())
    heard = CanaryReport.parse(canonical(first.as_json()), where="x")
    assert same_voices(heard, check(FaultySeat())) == []
    # the shift of `answer` for voice-one, from sha256sum: 0.016
    rounded = [(token, round(value, 2)) for token, value in heard.models[1].positions[0]]
    assert rounded == [("a", -0.12), ("b", -3.02)]


def test_other_weights_in_a_later_session_are_named() -> None:
    later = check(FaultySeat(always=Weights(voice_two="voice-three")))
    changes = same_voices(check(FaultySeat()), later)
    assert changes[0].startswith("'voice-two' answers ")
    assert "nats away from its first answer (allowed 0.0001)" in changes[0]
    assert [change.split(" differed")[0] for change in changes[1:]] == [
        "'base' and 'voice-two'",
        "'voice-one' and 'voice-two'",
    ]


def test_adapters_that_changed_places_are_both_named() -> None:
    later = check(FaultySeat(always=Weights(voice_one=TWO, voice_two=ONE)))
    changes = same_voices(check(FaultySeat()), later)
    assert [change.split(" nats")[0].split(" answers")[0] for change in changes[:2]] == ["'voice-one'", "'voice-two'"]


def report(*, noise: float = 0.0, token: str = "a", difference: float = 2.0, second: str = TWO) -> CanaryReport:
    top = (("a", -0.5), ("b", -0.625))
    one = ModelCanary(model=ONE, noise=noise, positions=(top if token == "a" else top[::-1],))
    two = ModelCanary(model=second, noise=0.0, positions=((("a", -2.5),),))
    pair = PairCanary(first=ONE, second=second, difference=difference, threshold=max(1e-4, 3 * noise))
    return CanaryReport(beat="b", models=(one, two), pairs=(pair,), refusal="no")


def test_a_pair_may_change_by_the_larger_threshold_and_no_more() -> None:
    assert same_voices(report(), report(difference=1.0)) == [
        "'voice-one' and 'voice-two' differed by 2 nats and now by 1 (allowed change 0.0001)"
    ]
    assert same_voices(report(noise=0.34), report(difference=1.0)) == []  # 3 * 0.34 = 1.02
    assert same_voices(report(), report(noise=0.34, difference=1.0)) == []
    assert len(same_voices(report(noise=0.33), report(difference=1.0))) == 1  # 3 * 0.33 = 0.99


def test_a_near_tie_that_falls_otherwise_is_no_other_voice() -> None:
    # voice-one chooses "b" now: the same scores, but a pair's difference ends at another position
    assert same_voices(report(), report(token="b", difference=0.5)) == []


def test_a_model_of_one_session_only_is_named() -> None:
    assert same_voices(report(), report(second="x")) == [
        "'voice-two' was heard in one of the sessions only",
        "'x' was heard in one of the sessions only",
    ]


def scores(*positions: tuple[str, dict[str, float]]) -> tuple[TokenScore, ...]:
    return tuple(TokenScore(token, top[token], top) for token, top in positions)


def test_distances_worked_by_hand() -> None:
    first = scores(("a", {"a": -0.25, "b": -2.0}), ("c", {"c": -0.5, "d": -1.0}))
    assert distance(first, first) == 0
    # shared tokens: |-0.25 + 0.5| and |-2.0 + 1.0|
    assert distance(first, scores(("a", {"a": -0.5, "b": -1.0}))) == 1.0
    # "b" is not listed in the second, so it is at most -4.0 there: at least 2.0 apart; "x" is at most -2.0 in the first
    assert distance(first, scores(("a", {"a": -0.25, "x": -4.0}))) == 2.0
    # the chosen tokens differ at the first position, so the second is not compared
    apart = scores(("b", {"a": -1.25, "b": -1.0}), ("c", {"c": -9.0, "d": -9.0}))
    assert distance(first, apart) == 1.0


TOPS = st.dictionaries(st.sampled_from("abcdef"), st.floats(-50, 0), min_size=1, max_size=5)
SCORES = st.lists(TOPS, max_size=4).map(lambda tops: scores(*((next(iter(top)), top) for top in tops)))


@given(SCORES, SCORES)
def test_a_distance_is_symmetric_and_zero_to_itself(one: tuple[TokenScore, ...], two: tuple[TokenScore, ...]) -> None:
    assert distance(one, one) == 0
    assert distance(one, two) == distance(two, one) >= 0
