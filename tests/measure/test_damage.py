"""The damage axes by hand, at chance level, and where they must refuse."""

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gates.errors import UsageError
from gates.measure.damage import AXES, Answers, measure_axis
from gates.measure.damage.length import ran_on
from gates.measure.damage.prompted import on_beat
from gates.measure.damage.stop_words import STOP_WORDS
from gates.measure.figures import DamageFigures, Unmeasured
from gates.records import Generation, Usage

BEATS = (
    "A farmer refuses to sell his land to a neighbour.",
    "Two sisters quarrel over a letter.",
    "An old servant remembers the funeral.",
    "A horse slips on the icy bridge.",
    "The schoolmaster burns a torn map.",
    "A storm drowns the fishing boats.",
    "The widow counts silver coins at midnight.",
    "A stranger plays the organ in an empty church.",
    "Children find a wounded falcon.",
    "The doctor hides a bottle of poison.",
)


def answer(tokens=100, reason="stop", *, prompt=0, seed=1, text="words", error=None):
    return Generation(
        seal="0" * 64,
        arm="ckpt",
        prompt=prompt,
        seed=seed,
        seat="embedded",
        request={},
        text=text,
        finish_reason=reason,
        usage=None if tokens is None else Usage(prompt_tokens=9, completion_tokens=tokens),
        model=None,
        fingerprint=None,
        prompt_sha256=None,
        started="2026-01-01T00:00:00Z",
        latency_s=0.5,
        attempts=1,
        error=error,
    )


@pytest.mark.parametrize(
    ("generation", "value"),
    [
        (answer(399, "stop"), 0.0),
        (answer(400, "stop"), 1.0),
        (answer(401, "stop"), 1.0),
        (answer(12, "length"), 1.0),
        (answer(None, "length"), 1.0),
        (answer(12, None), 0.0),
        (answer(None, None, text="", error="the seat did not answer"), 1.0),
    ],
)
def test_ran_on_goes_by_tokens_used_and_by_finish_reason(generation, value):
    figures = ran_on([[generation]], 400)
    assert isinstance(figures, DamageFigures)
    assert figures.values == ((value,),)


def test_ran_on_keeps_seeds_as_rows():
    figures = ran_on([[answer(400), answer(), answer()], [answer(400), answer(9, "length"), answer(400)]], 400)
    assert figures == DamageFigures(
        signature="ran_on@1|max_tokens:400",
        worse="higher",
        values=((1.0, 0.0, 0.0), (1.0, 1.0, 1.0)),
        per_seed=(1 / 3, 1.0),
        rate=4 / 6,
    )


def test_ran_on_is_unmeasured_where_the_seat_counts_no_tokens():
    figures = ran_on([[answer(), answer(None, "stop", prompt=1, seed=5)]], 400)
    assert isinstance(figures, Unmeasured)
    assert figures.unmeasured == (
        "the seat counted no tokens for 1 answers (first: arm ckpt, prompt 1, seed 5), "
        "so whether they used up 400 is unknown"
    )


@pytest.mark.parametrize("rows", [[], [[]]])
def test_no_generations_are_unmeasured(rows):
    assert ran_on(rows, 400) == Unmeasured(unmeasured="there are no generations")


def on_beat_values(*rows, beats=BEATS):
    figures = on_beat(rows, beats)
    assert isinstance(figures, DamageFigures)
    return figures.values


def test_a_beat_is_nearest_to_itself_and_to_no_other():
    figures = on_beat([BEATS, (*BEATS[1:], BEATS[0])], BEATS)
    assert isinstance(figures, DamageFigures)
    assert figures.values == ((1.0,) * 10, (0.0,) * 10)
    assert (figures.per_seed, figures.rate, figures.worse) == ((1.0, 0.0), 0.5, "lower")
    assert figures.signature == (
        "on_beat@1|beats:10|tokens:words@1|stop_words:function-words@1|stems:snowball-english|tf:sublinear|norm:l2"
    )


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(" ".join(BEATS).split()), min_size=1, max_size=6).map(" ".join))
def test_chance_is_one_in_the_number_of_beats(text):
    """Given to each beat in turn, a text is on beat once, or never where its nearest beats are tied."""
    ((*values,),) = on_beat_values((text,) * 10)
    assert sum(values) in (0.0, 1.0)


def test_shuffled_texts_are_on_beat_at_chance():
    texts = [f"That night {beat.lower()} Nobody spoke of it again." for beat in BEATS]
    shifts = [tuple(texts[(k + shift) % 10] for k in range(10)) for shift in range(10)]
    figures = on_beat(shifts, BEATS)
    assert isinstance(figures, DamageFigures)
    assert figures.rate == pytest.approx(1 / 10)


def first_is_on_beat(text, beats=BEATS):
    return on_beat_values((text, *beats[1:]), beats=beats)[0][0] == 1.0


def test_stems_join_inflected_words():
    assert first_is_on_beat("FARMERS kept refusing; the farmer\u2019s lands were never sold or selling.")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "He would not have it, and so they did nothing about it.",  # stop words alone
        "She wept quietly beside the window.",  # nothing any beat holds
        "Two sisters read a letter about land.",  # nearer to another beat
    ],
)
def test_texts_off_their_beat(text):
    assert not first_is_on_beat(text)


def test_a_tie_is_a_miss():
    twins = (BEATS[0], BEATS[0].upper(), *BEATS[2:])
    assert not first_is_on_beat("The farmer refuses to sell.", twins)
    assert first_is_on_beat("The farmer refuses to sell.", (BEATS[0], *BEATS[1:]))
    # One word of each of two beats of equal weight and length.
    pairs = ("red apple", "blue pear", *BEATS[2:])
    assert not first_is_on_beat("apple pear", pairs)
    assert first_is_on_beat("apple", pairs)


def test_a_tie_that_rounding_hides_is_a_miss():
    """Both beats say three words 4, 4 and 2 times, the text says them 4, 1 and 2 times: equal but for the last bit."""
    twins = ("oak oak oak oak yew yew yew yew fig fig", "ash ash ash ash bay bay bay bay elm elm")
    text = "ash ash ash ash bay elm elm oak oak oak oak yew fig fig"
    for pair in (twins, twins[::-1]):
        assert not first_is_on_beat(text, (*pair, *BEATS[2:]))


def test_idf_is_fitted_on_the_beats_not_on_the_texts():
    texts = ("land farmer land", *BEATS[1:])
    alone = on_beat_values(texts)
    assert on_beat_values(texts, ("farmer " * 50,) * 10)[0] == alone[0]


def test_a_rare_word_weighs_more_than_a_common_one_and_repeats_weigh_little():
    # By hand: idf 2.70 and 1.10; cosine 0.92 to the first beat, 0.72 to "door"; without sublinear tf 0.75 and 0.90.
    beats = ("lantern door", *["door"] * 8, "gate")
    assert first_is_on_beat("lantern door door door door door", beats)


def test_too_few_beats_are_unmeasured():
    figures = on_beat([BEATS[:9]], BEATS[:9])
    assert figures == Unmeasured(unmeasured="9 beats, and at least 10 are needed to tell them apart")


def test_beats_without_content_are_unmeasured():
    figures = on_beat([BEATS], ("and so it was",) * 10)
    assert figures == Unmeasured(unmeasured="the 10 beats hold nothing but stop words")


def test_no_texts_are_unmeasured():
    assert on_beat([], BEATS) == Unmeasured(unmeasured="there are no generations")


def test_a_row_of_another_length_is_refused():
    with pytest.raises(UsageError, match="9 texts of one seed for 10 beats") as refused:
        on_beat([BEATS, BEATS[1:]], BEATS)
    assert refused.value.next_step == "give one text a beat"


def test_the_stop_words_are_those_of_their_version():
    """A change of the list changes every on-beat figure: give it a new version, then this hash."""
    joined = " ".join(sorted(STOP_WORDS))
    assert (
        hashlib.sha256(joined.encode()).hexdigest()
        == "2976e2f3fffbec35a5a99a465dfdc5c1ef876dcf9eb040e6f4851f0eda9855a1"
    )


def test_ran_on_and_on_beat_measure_the_same_answers():
    rows = tuple(
        tuple(answer(400 if seed == 2 else 50, text=beat, prompt=k, seed=seed) for k, beat in enumerate(BEATS))
        for seed in (1, 2)
    )
    found = {name: measure_axis(AXES[name], Answers(rows, BEATS, 400)) for name in ("ran_on", "on_beat")}
    assert found["ran_on"].per_seed == (0.0, 1.0)
    assert found["on_beat"].per_seed == (1.0, 1.0)
