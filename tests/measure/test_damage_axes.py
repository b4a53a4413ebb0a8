"""Every damage axis on the passing and failing example of its docstring, by hand, and what they have in common."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gates.measure.damage import AXES, Answers, Axis, Library, figures, measure_axis
from gates.measure.damage.axis import each
from gates.measure.damage.leaks import SIGNS
from gates.measure.damage.length import repeated_share
from gates.measure.damage.library import proper_names
from gates.measure.figures import DamageFigures, Unmeasured
from gates.records import Generation, Usage
from gates.spec.axes import BUILT_IN

BEAT = "Two sisters quarrel over a letter."
FARM = "A farmer refuses to sell his land."
OTHERS = tuple(f"The {noun} waits" for noun in ("dog", "rain", "girl", "lamp", "king", "snow", "coat", "bird", "sea"))

# Made for these tests: Jane and Rochester are names, Rose is a flower too, God and London are everybody's.
TRAIN = (
    "Then Jane went out, Jane and her aunt; after them Jane, and Mr. Rochester, for Rochester knew God, London and "
    "Rose. He saw Rochester; he asked God for a rose; in London God hears, and London sleeps. "
    "A rose for Rose, and Rose went. NOW HERE IS AN ADELE, AN ADELE, AN ADELE. I think I may, and I'll go. "
    "She used _such_ words; the _very_ words. "
)
SEVEN = "one two three four five six seven. {}"
MADE_UP = " ".join(f"{a}{b}{c}" for a in "bdfglmnrst" for b in "aeiou" for c in ("", "n", "r", "st", "lk"))
REFERENCE = (
    "God and London, London and God: shut the door, she said, and out she went. " * 20,
    " ".join(f"{word}{ending}" for word in MADE_UP.split() for ending in ("a", "e", "o", "u")),
)
LIBRARY = Library(train=(TRAIN,), heldout=("Her mother's cat slept.",), reference=REFERENCE)


def answer(text: str, *, tokens: int = 50, error: str | None = None) -> Generation:
    return Generation(
        seal="0" * 64, arm="one", prompt=0, seed=1, seat="none", request={}, text=text, finish_reason="stop",
        usage=Usage(prompt_tokens=9, completion_tokens=tokens), model=None, fingerprint=None, prompt_sha256=None,
        started="t", latency_s=0.0, attempts=1, error=error,
    )  # fmt: skip


def asked(given: Generation, beat: str = BEAT, template: str = "Beat: {}", library: Library = LIBRARY) -> Answers:
    """One generation on `beat`, beside nine beats that are answered with themselves."""
    beats = (beat, *OTHERS)
    return Answers(
        generations=((given, *map(answer, OTHERS)),),
        beats=beats,
        max_tokens=400,
        prompts=tuple(map(template.format, beats)),
        library=library,
        # A judge that takes whatever barks for its beat, and says so with two nats.
        judged=(tuple(2.0 if "barked" in text else -2.0 for text in (given.text, *OTHERS)),),
    )


def value(axis: str, text: str, **changes) -> float:
    found = measure_axis(AXES[axis], asked(answer(text), **changes))
    assert isinstance(found, DamageFigures), found
    return found.values[0][0]


def test_the_gate_file_and_the_measures_know_the_same_axes() -> None:
    assert list(AXES) == list(BUILT_IN)
    for name, meaning in BUILT_IN.items():
        assert meaning.endswith(f"; {AXES[name].worse} is worse")


EXAMPLES = [
    ("on_beat", "He would not sell the land.", 1.0, {"beat": FARM}),
    ("on_beat", "She wept.", 0.0, {"beat": FARM}),
    ("empty", "No.", 0.0, {}),
    ("empty", "* * *", 1.0, {}),
    ("empty", " \u200b\ufeff 12 ", 1.0, {}),
    ("repetition", "I went out, and the sea was grey and still.", 0.0, {}),
    ("repetition", "I went out and I went out and I", 1.0, {}),
    # 12 words; "the sea was grey" stands twice, so 8 of them are inside.
    ("repetition", "The sea was grey. I said so: The sea was grey. Well.", 8 / 12, {}),
    ("repetition", "", 0.0, {}),
    ("echo", "They quarrelled over the letter.", 0.0, {}),
    ("echo", "Scene: two sisters quarrel over a letter. The end.", 1.0, {}),
    ("echo", "TWO SISTERS \u2014 quarrel over\na letter", 1.0, {}),
    ("echo", "A storm. A storm.", 0.0, {"beat": "A storm."}),
    ("echo", "It rained one two three four five six seven eight", 0.0, {"template": SEVEN}),
    ("echo", "It rained one two three four five six seven two", 1.0, {"template": SEVEN}),
    ("template_leak", "How can I help her?", 0.0, {}),
    ("template_leak", "Sure! Here is a short scene about the sisters:", 1.0, {}),
    ("template_leak", "She said: Beat: no.", 0.0, {}),
    ("template_leak", "She went.\nBeat: Two brothers.", 1.0, {}),
    ("template_leak", "She went.\nBeat: Two brothers.", 0.0, {"template": "{}"}),
    ("garble", "She shut the door.", 0.0, {}),
    ("garble", "She shutched the dorve.", 0.5, {}),
    ("garble", "The cat's mother, and a letter's sisters", 0.0, {}),
    ("garble", "@@ 11 ##", 1.0, {}),
    ("name_leak", "My master came in.", 0.0, {}),
    ("name_leak", "Mr. Rochester came in.", 1.0, {}),
    ("name_leak", "It was Rochester\u2019s.", 1.0, {}),
    ("name_leak", "Mr. Rochester came in.", 0.0, {"beat": "Mr. Rochester\u2019s horse slips."}),
    ("name_leak", "a city called rochester", 0.0, {}),
    ("judged_on_beat", "The old dog growled at him and barked.", 1.0, {}),
    ("judged_on_beat", "She counted coins.", 0.0, {}),
]  # fmt: skip


@pytest.mark.parametrize(("axis", "text", "expected", "changes"), EXAMPLES)
def test_examples_by_hand(axis: str, text: str, expected: float, changes: dict) -> None:
    assert value(axis, text, **changes) == pytest.approx(expected)


@pytest.mark.parametrize("axis", AXES)
def test_every_axis_has_a_passing_and_a_failing_example_in_its_tests(axis: str) -> None:
    ran_on = [("ran_on", "", 0.0, {}), ("ran_on", "", 1.0, {})]  # in test_damage.py: its examples are no texts
    values = [expected for name, _, expected, _ in [*EXAMPLES, *ran_on] if name == axis]
    assert min(values) == 0
    assert max(values) >= 0.5


@pytest.mark.parametrize("axis", AXES)
def test_a_generation_that_failed_is_harm_on_every_axis(axis: str) -> None:
    found = measure_axis(AXES[axis], asked(answer("", error="the seat hung up")))
    assert isinstance(found, DamageFigures)
    assert found.values[0][0] == (1.0 if found.worse == "higher" else 0.0)


@pytest.mark.parametrize("axis", AXES)
@given(text=st.text(max_size=60))
def test_any_text_gives_a_share_under_the_axis_own_signature(axis: str, text: str) -> None:
    found = measure_axis(AXES[axis], asked(answer(text)))
    assert isinstance(found, DamageFigures)
    assert all(0 <= each <= 1 for row in found.values for each in row)
    assert found.signature.startswith(f"{axis}@1|")
    assert found.worse == AXES[axis].worse


@pytest.mark.parametrize("axis", AXES)
def test_no_generations_are_unmeasured(axis: str) -> None:
    nothing = asked(answer("x"))
    none = Answers((), nothing.beats, 400, nothing.prompts, LIBRARY)
    assert measure_axis(AXES[axis], none) == Unmeasured(unmeasured="there are no generations")


@given(st.lists(st.sampled_from("abc"), max_size=30))
def test_repetition_agrees_with_a_slow_count(found: list[str]) -> None:
    def repeats(at: int) -> bool:
        here = [start for start in range(at - 3, at + 1) if 0 <= start <= len(found) - 4]
        return any(
            found[start : start + 4] == found[other : other + 4]
            for start in here
            for other in range(len(found) - 3)
            if other != start
        )

    slow = [repeats(at) for at in range(len(found))]
    assert repeated_share(found) == pytest.approx(sum(slow) / len(slow) if slow else 0.0)


SIGN_EXAMPLES = {
    "chat marker": ("<|im_start|>", "She was < 3 | 4 >"),
    "role label": ("Assistant: yes", "The assistant: yes"),
    "thinking": ("<think>", "I think"),
    "bold": ("**Fix:**", "2 ** 3"),
    "italics": ("it _was_ so", "snake_case_name"),
    "heading": ("## Chapter", "no. # 5"),
    "list": ("So:\n1. A bat", "In 1. a bat - and a ball"),
    "fence": ("```python", "`quoted`"),
    "link": ("see [this](http)", "[this] (that)"),
    "tag": ("a<br/>b", "a < b > c"),
    "assistant's self": ("I\u2019m just here to help", "I am here to see my aunt"),
    "assistant's refusal": ("I cannot assist with that", "I cannot go"),
    "assistant's offer": ("How may I assist you?", "How may I go?"),
    "assistant's preface": ("Here\u2019s a revised version", "Here is a man who tells no story"),
    "talk of the task": ("In this prompt", "a prompt answer"),
}


def test_every_sign_has_an_example() -> None:
    assert SIGN_EXAMPLES.keys() == SIGNS.keys()


@pytest.mark.parametrize("kind", [kind for kind in SIGN_EXAMPLES if kind != "italics"])
def test_a_sign_the_author_never_makes_is_a_leak(kind: str) -> None:
    leak, prose = SIGN_EXAMPLES[kind]
    assert (value("template_leak", leak), value("template_leak", prose)) == (1.0, 0.0)


def test_the_authors_own_rate_is_no_leak_and_more_is() -> None:
    """2 italics in 1,000 words of the author's: in 50 words, P(X ≥ 1) = 0.095 and P(X ≥ 2) = 0.0047 by Poisson(0.1)."""
    own = Library(train=("the _very_ words " + "word " * 497,), heldout=("so _such_ " + "word " * 498,))
    assert value("template_leak", "an _odd_ " + "word " * 48, library=own) == 0.0
    assert value("template_leak", "an _odd_ _old_ " + "word " * 47, library=own) == 1.0
    without = Library(train=("word " * 1000,))
    assert value("template_leak", "an _odd_ " + "word " * 48, library=without) == 1.0
    assert value("template_leak", SIGN_EXAMPLES["italics"][1], library=without) == 0.0


def test_proper_names_by_hand() -> None:
    # ADELE stands in capitals alone; Rose is a flower twice in five; God and London are the reference's, too.
    assert proper_names([TRAIN], Counter({"god": 20, "london": 20, "the": 260})) == {"jane", "rochester"}
    # Without a reference text God and London are names as well.
    assert proper_names([TRAIN], {}) == {"jane", "rochester", "god", "london"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("so Ann. so Ann! so Ann?", {"ann"}),
        ("so Ann. so Ann!", set()),  # twice is not three times
        ("so. Ann so. Ann so. Ann", set()),  # at the start of sentences
        ("so\n\nAnn so\n\nAnn so\n\nAnn", set()),  # at the start of paragraphs
        ("so\nAnn so\nAnn so\nAnn", {"ann"}),
        ("Mr. Ann Mrs. Ann Dr. Ann", {"ann"}),
        ("so Mrs so Mrs so Mrs", set()),
        ("so _Ann_ so Ann\u2019s so Ann so Ann", {"ann"}),
        ("so I'll so I'll so I'll so I so I so I", set()),
        ("so Ann " * 49 + "ann", {"ann"}),  # 1 of 50 in lower case
        ("so Ann " * 48 + "ann", set()),  # 1 of 49
    ],
)
def test_where_a_capital_makes_a_name(text: str, found: set[str]) -> None:
    assert proper_names([text], {}) == found


def test_a_name_is_ten_times_as_frequent_as_in_the_reference() -> None:
    train = ["so Ann " * 5 + "so " * 90]  # 5 of 100 words
    assert proper_names(train, {"ann": 1, "so": 199}) == {"ann"}  # 0.005: ten times less
    assert proper_names(train, {"ann": 1, "so": 198}) == set()


@pytest.mark.parametrize(
    ("axis", "library", "reason"),
    [
        ("template_leak", Library(reference=REFERENCE), "there is no text of the author to tell his own rate from"),
        ("garble", Library(train=(TRAIN,)), "a vocabulary of 39 words, and at least 1000 are needed"),
        ("name_leak", Library(reference=REFERENCE), "the train split holds no proper name of its own"),
    ],
)
def test_what_the_texts_cannot_tell_is_unmeasured(axis: str, library: Library, reason: str) -> None:
    assert measure_axis(AXES[axis], asked(answer("She went."), library=library)) == Unmeasured(unmeasured=reason)


def test_signatures_say_how_values_were_made() -> None:
    signatures = [measure_axis(axis, asked(answer("x"))).signature for axis in AXES.values()]
    assert signatures[2:] == [
        "empty@1|tokens:words@1",
        "repetition@1|n:4|tokens:words@1",
        "echo@1|n:8|shortest:4|tokens:words@1",
        f"template_leak@1|signs:signs@1|alpha:0.01|own_words:{len(TRAIN.split()) + 4}",
        f"garble@1|tokens:words@1|vocabulary:{len(LIBRARY.vocabulary)}",
        "name_leak@1|names:2|mid_sentence:3|lower_case:0.02|peculiar:10|tokens:words@1",
        # Whoever changes the question changes what it measures, and then this.
        "judged_on_beat@1|wording:d22ea57e9db9|orders:2",
    ]


def made(**changes) -> object:
    return DamageFigures(
        **{
            "signature": "polite@1|word:please",
            "worse": "lower",
            "values": ((1.0,) * 10,),
            "per_seed": (1.0,),
            "rate": 1.0,
        }
        | changes
    )


def raising(_: Answers) -> DamageFigures:
    raise KeyError("no such word")


@pytest.mark.parametrize(
    ("measure", "reason"),
    [
        (raising, "KeyError: 'no such word'"),
        (lambda _: None, "it gave a NoneType, not DamageFigures"),
        (lambda _: 0.0, "it gave a float, not DamageFigures"),
        (lambda _: made(values=((1.0,) * 9,)), "it gave 9 values in rows of [9], for generations in rows of [10]"),
        (lambda _: made(values=((1.0,) * 5,) * 2), "it gave 10 values in rows of [5, 5], "),
        (lambda _: made(values=((1.5,) * 10,)), "it gave 1.5, which is no share in [0, 1]"),
        (lambda _: made().model_copy(update={"values": ((float("nan"),) * 10,)}), "it gave nan, which is no share"),
        (lambda _: made().model_copy(update={"values": (("x",) * 10,)}), "TypeError: "),
        (lambda _: made(worse="higher"), "it gave figures of polite@1|word:please, worse higher; its own are"),
        (lambda _: made(signature="polite@10"), "it gave figures of polite@10"),
        (lambda _: made(signature="other@1"), "it gave figures of other@1"),
    ],
)  # fmt: skip
def test_an_axis_that_raises_or_gives_anything_but_its_figures_is_unmeasured(measure, reason: str) -> None:
    found = measure_axis(Axis("polite@1", "lower", measure), asked(answer("x")))
    assert isinstance(found, Unmeasured)
    assert found.unmeasured.startswith(f"polite@1 failed: {reason}")


def test_rates_are_counted_again() -> None:
    lying = made(values=((0.0,) * 9 + (1.0,),), per_seed=(1.0,), rate=1.0)
    found = measure_axis(Axis("polite@1", "lower", lambda _: lying), asked(answer("x")))
    assert isinstance(found, DamageFigures)
    assert (found.per_seed, found.rate) == ((0.1,), 0.1)


def test_figures_of_values() -> None:
    found = figures("polite@1", "lower", [[1, 0], [1, 1]])
    assert found == DamageFigures(
        signature="polite@1", worse="lower", values=((1.0, 0.0), (1.0, 1.0)), per_seed=(0.5, 1.0), rate=0.75
    )


def test_a_judgement_that_is_missing_is_no_figure_and_a_tie_is_a_miss() -> None:
    given = asked(answer("He barked."))
    for odds, expected in ((0.0, 0.0), (1e-9, 1.0)):
        found = measure_axis(AXES["judged_on_beat"], replace(given, judged=((odds, *given.judged[0][1:]),)))
        assert found.values[0][0] == expected
    lost = replace(given, judged=((None, *given.judged[0][1:]),))
    assert measure_axis(AXES["judged_on_beat"], lost) == Unmeasured(
        unmeasured="1 of 10 judgements are missing or failed"
    )
    unasked = measure_axis(AXES["judged_on_beat"], replace(given, judged=None))
    assert unasked == Unmeasured(unmeasured="no judge was asked")


def test_a_generation_that_failed_is_harm_before_anybody_looks_at_its_axis() -> None:
    assert each(asked(answer("", error="cut off")), lambda *_: 0.0)[0][:2] == [1.0, 0.0]
    given = asked(answer("", error="cut off"))
    unheard = replace(given, judged=((None, *given.judged[0][1:]),))
    found = AXES["judged_on_beat"].measure(unheard)
    assert isinstance(found, DamageFigures)
    assert found.values[0][0] == 0.0


def test_a_vocabulary_of_a_thousand_words_is_enough() -> None:
    made = [f"{a}{b}{c}" for a in "bcdfghklmn" for b in "bcdfghklmn" for c in "bcdfghklmn"]
    for count, expected in ((1000, DamageFigures), (999, Unmeasured)):
        found = measure_axis(AXES["garble"], asked(answer("x"), library=Library(train=(" ".join(made[:count]),))))
        assert isinstance(found, expected)


def test_a_name_in_small_letters_is_none_beside_other_capitals() -> None:
    assert value("name_leak", "The city called rochester.") == 0.0


def test_a_beat_of_four_to_seven_words_is_copied_as_a_whole_a_longer_one_as_any_eight() -> None:
    assert value("echo", "Look: a storm comes up. So", beat="A storm comes up.") == 1.0
    assert value("echo", "Look: a storm comes.", beat="A storm comes.") == 0.0
    # Eight words of the template are a copy whatever the length of the beat.
    template = "Write one short scene of a story about: {}"
    for beat in ("A storm comes up from the far sea.", "A storm comes up."):
        copied = "write one short scene of a story about"
        assert value("echo", copied, beat=beat, template=template) == 1.0


def test_the_label_is_what_stands_before_the_last_mention_of_the_beat_in_its_line() -> None:
    twice = f"Not {BEAT}\nScene: {{}}"
    assert value("template_leak", "Scene: a storm", template=twice) == 1.0
    assert value("template_leak", "So the scene: a storm", template=twice) == 0.0
    assert value("template_leak", "Not a word was said.", template=twice) == 0.0


def test_signs_are_counted_once_each() -> None:
    """2 italics in 100 words of the author's: in 10, P(X ≥ 2) = 0.0175 by Poisson(0.2); all doubled, 0.0008."""
    own = Library(train=("the _very_ _own_ " + "word " * 97,))
    assert value("template_leak", "an _odd_ _old_ " + "word " * 7, library=own) == 0.0


def test_a_sign_alone_in_a_text_is_held_against_the_authors_rate_of_one_word() -> None:
    """8 bold words in 1,000 of the author's: of one word P(X >= 1) = 0.0080 by Poisson(0.008), of two 0.0159."""
    own = Library(train=("**the** " * 8 + "word " * 992,))
    assert value("template_leak", "**Stop**", library=own) == 1.0
    assert value("template_leak", "**Stop** there", library=own) == 0.0


def test_a_label_without_a_word_is_none() -> None:
    assert value("template_leak", "=> She went.", template="=> {}") == 0.0


def test_a_plugged_axis_is_not_asked_what_a_failed_generation_is_worth() -> None:
    failed = asked(answer("", error="cut off"))
    kind = Axis("polite@1", "lower", lambda _: made(values=((0.5,) * 10,)))
    for harm, expected in ((True, 0.0), (False, 1.0)):
        found = measure_axis(kind, failed, failed_harm=harm)
        assert isinstance(found, DamageFigures)
        assert found.values == ((expected, *(0.5,) * 9),)


def test_what_an_axis_complains_of_is_cut_and_its_first_strange_value_is_named() -> None:
    def complain(_: Answers) -> DamageFigures:
        raise ValueError("x" * 300)

    found = measure_axis(Axis("loud@1", "lower", complain), asked(answer("x")))
    assert found == Unmeasured(unmeasured="loud@1 failed: ValueError: " + "x" * 200)
    one = measure_axis(Axis("polite@1", "lower", lambda _: made(values=((0.5,) * 9 + (7.0,),))), asked(answer("x")))
    assert one == Unmeasured(unmeasured="polite@1 failed: it gave 7.0, which is no share in [0, 1]")
