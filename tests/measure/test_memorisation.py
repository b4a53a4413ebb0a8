"""`ngram_hits@1` by hand, against a slow implementation, and what must not change it."""

import hashlib
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gates.errors import CorpusError, UsageError
from gates.measure.figures import MemorisationFigures, Unmeasured
from gates.measure.generated import GeneratedText
from gates.measure.leaks import leaks, near_twins, shared_runs
from gates.measure.memorisation import Sources, excerpt, measure_memorisation
from gates.measure.split import Split
from gates.text import prose_words

SENTENCE = "the old clock upon the stairs struck nine before Margaret Hale came down"
FILLER = "quiet rain fell all that long grey afternoon over every roof in town and nobody spoke"


def distinct(count, prefix="w"):
    """Words of letters, each different from the others."""
    letters = itertools.product("abcdefghij", repeat=4)
    return [prefix + "".join(next(letters)) for _ in range(count)]


def generated(*texts, prompt_text=""):
    return [GeneratedText(prompt=k, seed=1, text=text, prompt_text=prompt_text) for k, text in enumerate(texts)]


UNSEEN = " ".join(distinct(40, "u"))


def measured(texts, train, heldout=UNSEEN, n=4, prompt_text=""):
    figures = measure_memorisation(
        generated(*texts, prompt_text=prompt_text), Sources({"train.txt": train}, {"held.txt": heldout}, n)
    )
    assert isinstance(figures, MemorisationFigures)
    return figures


def test_a_copied_sentence_by_hand():
    train = f"{FILLER}. {SENTENCE}, so late."
    text = "She said: The old clock upon the stairs struck nine before MARGARET Hale went out."
    figures = measured([text, " ".join(distinct(16))], train)
    (run,) = figures.runs
    assert (run.prompt, run.seed, run.start, run.length) == (0, 1, 2, 11)
    assert [(source.file, source.start) for source in run.sources] == [("train.txt", 16)]
    assert run.capitalised == (0, 9, 10)
    phrase = b"the old clock upon the stairs struck nine before margaret hale"
    assert run.sha256 == hashlib.sha256(phrase).hexdigest()
    assert (figures.generations, figures.hits, figures.rate, figures.longest) == (2, 1, 0.5, 11)
    # 15 and 16 words hold 12 and 13 4-grams; the run of 11 words holds 8 of them.
    assert figures.ngram_share == pytest.approx(8 / 25)
    assert figures.words_covered == pytest.approx(11 / 31)
    assert (figures.heldout_hits, figures.heldout_longest) == (0, 0)


@pytest.mark.parametrize(
    ("source", "copy"),
    [
        ("I don't think he'd go home now", "I don\u2019t think he\u2018d go home now"),
        ("it was \u2014 they said \u2014 far too late", "it was\u2014they said\u2014far too late"),
        ("it was a most remarkable morning for us", "it was a most remark-\nable morning for us"),
        ("it was a most remarkable morning for us", "it was a _most remarkable_ morning _for_ us"),
        ("it was a most remarkable morning for us", "IT WAS A MOST REMARKABLE MORNING FOR US"),
        (
            "the na\u00efve caf\u00e9 of \u00c9mile stood open late",
            "the nai\u0308ve cafe\u0301 of E\u0301mile stood open late",
        ),
    ],
)
def test_typography_hides_no_copy(source, copy):
    figures = measured([copy], source, n=7)
    assert figures.hits == 1
    assert figures.longest == len(prose_words(source))


def test_what_the_prompt_gave_away_is_no_memorisation():
    text = "He saw the old clock upon the stairs and left at once."
    assert measured([text], SENTENCE).hits == 1
    assert measured([text], SENTENCE, prompt_text="Beat: The old clock upon the stairs!").hits == 0
    # Only three of its n-grams are the prompt's: the rest of a longer copy still counts.
    longer = measured([SENTENCE], SENTENCE, prompt_text="upon the stairs struck nine")
    assert [(run.start, run.length) for run in longer.runs] == [(0, 6), (5, 8)]


def test_heldout_text_recited_is_counted_apart():
    figures = measured([f"and {SENTENCE}", FILLER], FILLER, heldout=SENTENCE)
    assert (figures.hits, figures.heldout_hits, figures.heldout_longest) == (1, 1, 13)
    assert {run.prompt for run in figures.runs} == {1}
    assert measured([SENTENCE], FILLER, heldout=SENTENCE, prompt_text=SENTENCE).heldout_hits == 0


@pytest.mark.parametrize("at", [40, 42, 46])
def test_self_collision_uses_windows_of_the_own_lengths_until_the_text_is_used_up(at):
    train = " ".join(distinct(50, "t"))
    held = distinct(100, "h")
    held[at : at + 4] = distinct(50, "t")[10:14]
    figures = measured([" ".join(distinct(10, "g"))] * 3, train, heldout=" ".join(held))
    # Windows of ten words: the shared run of four lies within the fifth of ten, at its very edges too.
    baseline = figures.self_collision
    assert (baseline.windows, baseline.hits, baseline.rate, baseline.longest) == (10, 1, 0.1, 4)
    assert figures.ratio == 0.0
    assert figures.ratio_low == 0.0
    # No hit of one in all: its share is at most 0.95, the odds 19, with ten windows against three generations.
    assert figures.ratio_high == pytest.approx(19 * 10 / 3)


def test_a_run_cut_by_every_window_is_no_hit_but_still_the_longest():
    held = distinct(20, "h")
    held[8:12] = distinct(50, "t")[10:14]
    baseline = measured([" ".join(distinct(10, "g"))], " ".join(distinct(50, "t")), " ".join(held)).self_collision
    assert (baseline.windows, baseline.hits, baseline.longest) == (2, 0, 4)


def test_windows_may_span_two_files_but_their_ngrams_do_not():
    shared = distinct(8, "t")
    heldout = {"a": " ".join(distinct(6, "h") + shared[:4]), "b": " ".join(shared[4:] + distinct(6, "k"))}
    figures = measure_memorisation(generated(" ".join(distinct(20))), Sources({"t": " ".join(shared)}, heldout, 5))
    assert isinstance(figures, MemorisationFigures)
    assert figures.self_collision.windows == 1
    assert figures.self_collision.hits == 0
    assert figures.self_collision.longest == 0


def test_without_baseline_hits_there_is_only_a_lower_limit():
    figures = measured([SENTENCE] * 5 + [FILLER] * 5, SENTENCE, heldout=" ".join(distinct(400)))
    assert figures.self_collision.hits == 0
    assert figures.self_collision.windows == 27  # lengths 13 and 16, five of each in 145 words
    # Given five hits in all, all on one side: share >= 0.05 ** (1 / 5), and its odds times the exposures.
    share = 0.05 ** (1 / 5)
    assert (figures.ratio, figures.ratio_high) == (None, None)
    assert figures.ratio_low == pytest.approx(share / (1 - share) * 27 / 10)


def test_without_any_hits_there_is_no_ratio():
    figures = measured([FILLER], SENTENCE)
    assert (figures.hits, figures.longest, figures.runs) == (0, 0, ())
    assert (figures.ratio, figures.ratio_low, figures.ratio_high) == (None, None, None)


def test_a_heldout_text_too_short_for_a_window_gives_no_ratio():
    figures = measured([f"{SENTENCE} {FILLER}"], SENTENCE, heldout="five words are held out")
    assert (figures.self_collision.windows, figures.self_collision.rate) == (0, 0.0)
    assert (figures.ratio, figures.ratio_low, figures.ratio_high) == (None, None, None)


def test_generations_without_an_ngram_are_not_among_the_scanned():
    figures = measured(["", SENTENCE, "...", "three short words", FILLER], SENTENCE)
    assert (figures.generations, figures.unscanned, figures.hits, figures.rate) == (2, 3, 1, 0.5)
    # Windows of the two scanned lengths alone, 13 and 16 words: 40 words of held-out text hold two of them.
    assert figures.self_collision.windows == 2


def test_near_and_protected_rates_are_of_the_scanned_too():
    sources = Sources({"t": FILLER}, {"h": UNSEEN}, 4, protected={"p": SENTENCE})
    changed = FILLER.replace("grey", "green")
    figures = measure_memorisation(generated(SENTENCE, changed, "", "too short"), sources)
    assert isinstance(figures, MemorisationFigures)
    assert (figures.protected.generations, figures.protected.rate, figures.near.rate) == (2, 0.5, 0.5)


@pytest.mark.parametrize("texts", [[], [""], ["too short", "... _"]])
def test_nothing_that_could_match_is_unmeasured_not_zero(texts):
    figures = measure_memorisation(generated(*texts), Sources({"t": SENTENCE}, {"h": FILLER}, 4))
    assert isinstance(figures, Unmeasured)
    assert figures.unmeasured == f"none of {len(texts)} generations holds 4 words, so no 4-gram could match"


@pytest.mark.parametrize(
    ("train", "heldout", "split"),
    [({}, {"h": FILLER}, "train"), ({"t": FILLER}, {"h": "so few"}, "held-out"), ({"t": "", "u": "12"}, {}, "train")],
)
def test_a_split_without_ngrams_is_refused(train, heldout, split):
    with pytest.raises(CorpusError, match=f"the {split} text holds no run of 4 words"):
        Sources(train, heldout, 4)


def test_leaks_are_runs_of_at_least_the_minimum_that_the_split_shares():
    words = distinct(60)
    train = {"b": " ".join(words[:40]), "a": " ".join(words[10:31])}
    heldout = {"z": "Then " + " ".join(words[5:35]) + " ended", "y": " ".join(words[:19]), "e": ""}
    found = shared_runs(train, heldout)
    assert [
        (leak.train.file, leak.train.start, leak.heldout.file, leak.heldout.start, leak.length) for leak in found
    ] == [
        ("b", 5, "z", 1, 30),
        ("a", 0, "z", 6, 21),
    ]
    assert found[1].sha256 == hashlib.sha256(" ".join(words[10:31]).encode()).hexdigest()
    assert [leak.length for leak in shared_runs(train, {"y": heldout["y"]}, 19)] == [19]
    assert shared_runs({}, heldout) == ()


def test_an_excerpt_shows_a_run_with_its_context():
    assert excerpt(SENTENCE, 9, 2, context=3) == ("struck nine before", "Margaret Hale", "came down")
    assert excerpt("A _re-\nmarkable_ day.", 1, 1) == ("A", "remarkable", "day")


@pytest.mark.parametrize(("start", "length"), [(12, 2), (-1, 3), (2, 0)])
def test_an_excerpt_of_another_text_is_refused(start, length):
    with pytest.raises(UsageError, match=f"words {start} to {start + length} are asked of a text of 13 words"):
        excerpt(SENTENCE, start, length)


UNICODE_TEXT = st.lists(
    st.sampled_from(
        [
            "a",
            "A",
            "don't",
            "don\u2019t",
            "\u00e9t\u00e9",
            "E\u0301te\u0301",
            "\u0130x",
            "\ufb01n",
            "\u2014",
            "\n",
            "_a b_",
        ]
    ),
    max_size=20,
).map(" ".join)


@settings(max_examples=60)
@given(st.lists(st.tuples(UNICODE_TEXT, UNICODE_TEXT), max_size=4), UNICODE_TEXT, UNICODE_TEXT)
def test_counts_agree_with_sets_of_ngrams(pairs, train, heldout):
    def grams(text):
        words = prose_words(text)
        return [tuple(words[k : k + 3]) for k in range(len(words) - 2)]

    train, heldout = train + " a b c", heldout + " c a b"
    generations = [GeneratedText(k, 7, text, prompt) for k, (text, prompt) in enumerate(pairs)]
    figures = measure_memorisation(generations, Sources({"t": train}, {"h": heldout}, 3))
    found = [[gram in grams(train) and gram not in grams(prompt) for gram in grams(text)] for text, prompt in pairs]
    held = [[gram in grams(heldout) and gram not in grams(prompt) for gram in grams(text)] for text, prompt in pairs]
    total = sum(map(len, found))
    if total == 0:
        assert isinstance(figures, Unmeasured)
        return
    assert isinstance(figures, MemorisationFigures)
    assert figures.hits == sum(map(any, found))
    assert figures.heldout_hits == sum(map(any, held))
    assert figures.ngram_share == pytest.approx(sum(map(sum, found)) / total)
    covered = sum(any(hits[max(0, k - 2) : k + 1]) for hits in found for k in range(len(hits) + 2 if hits else 0))
    assert figures.words_covered == pytest.approx(covered / sum(len(prose_words(text)) for text, _ in pairs))


@given(st.permutations(range(4)), st.permutations(["a", "b", "c"]))
@settings(max_examples=20)
def test_neither_the_order_of_generations_nor_of_files_matters(order, files):
    copied = SENTENCE.split()
    train = {"a": SENTENCE, "b": FILLER, "c": f"{FILLER} {SENTENCE}"}
    held = {
        file: " ".join(itertools.chain(*([*copied[k : k + 5], *distinct(size, file)] for k in range(8))))
        for file, size in (("a", 7), ("b", 11), ("c", 16))
    }
    texts = [SENTENCE, f"{FILLER} and so on to the end of it all", "so", f"{SENTENCE} yet again"]
    generations = [GeneratedText(k // 2, k % 2, text, "") for k, text in enumerate(texts)]

    def measure(generations, files):
        sources = Sources({file: train[file] for file in files}, {file: held[file] for file in files}, 5)
        return measure_memorisation(generations, sources)

    expected = measure(generations, ["a", "b", "c"])
    assert isinstance(expected, MemorisationFigures)
    assert 0 < expected.self_collision.hits < expected.self_collision.windows
    assert measure([generations[k] for k in order], files) == expected


def test_the_signature_says_how_the_number_was_made():
    assert measured([FILLER], SENTENCE).signature == (
        "ngram_hits@1|n:4|tokens:words@1+prose|prompt:subtracted|baseline:own-lengths|level:0.95"
    )


def test_a_changed_word_makes_a_near_run_and_no_hit():
    text = SENTENCE.replace("struck", "sounded").replace("the old", "An old")
    figures = measured([f"So {text}", FILLER], f"{FILLER}. {SENTENCE}.", n=8)
    assert (figures.hits, figures.longest) == (1, 16), "the filler alone"
    (run,) = figures.near.runs
    # "the" differs at the start, which is cut off; of "old clock ... came down" the word struck, number 5, differs.
    assert (run.prompt, run.start, run.length, run.changed) == (0, 2, 12, (5,))
    assert [(source.file, source.start) for source in run.sources] == [("train.txt", 17)]
    assert (
        run.sha256
        == hashlib.sha256(b"old clock upon the stairs sounded nine before margaret hale came down").hexdigest()
    )
    assert (figures.near.hits, figures.near.rate, figures.near.longest) == (1, 0.5, 12)
    assert figures.near.signature == "near_runs@1|words:8|changed:1-in-8|tokens:words@1+prose|prompt:subtracted"


def test_the_longest_near_run_of_unseen_text_stands_beside():
    figures = measured([FILLER], SENTENCE, heldout=f"{UNSEEN} {SENTENCE.replace('struck', 'sounded')}", n=8)
    assert (figures.near.hits, figures.near.longest, figures.near.unseen_longest) == (0, 0, 13)


def test_a_near_copy_of_the_prompt_is_no_near_run():
    text = SENTENCE.replace("struck", "sounded")
    assert measured([text], SENTENCE, n=8).near.hits == 1
    assert measured([text], SENTENCE, n=8, prompt_text=SENTENCE).near.hits == 0


def test_protected_texts_are_scanned_alike_and_counted_apart():
    sources = Sources({"t": FILLER}, {"h": UNSEEN}, 4, protected={"p": SENTENCE})
    figures = measure_memorisation(generated(SENTENCE, FILLER), sources)
    assert isinstance(figures, MemorisationFigures)
    assert (figures.hits, [run.prompt for run in figures.runs]) == (1, [1])
    found = figures.protected
    assert (found.hits, found.generations, found.rate, found.longest) == (1, 2, 0.5, 13)
    assert [(run.prompt, run.sources[0].file) for run in found.runs] == [(0, "p")]
    assert measured([SENTENCE], FILLER).protected is None
    with pytest.raises(CorpusError, match="the protected text holds no run of 4 words"):
        Sources({"t": FILLER}, {"h": UNSEEN}, 4, protected={"p": "too short"})


def test_a_run_that_other_authors_hold_in_whole_is_marked_and_counts():
    psalm = "the lord is my shepherd i shall not want"
    sources = Sources(
        {"t": f"{psalm} he said"}, {"h": UNSEEN}, 4, others={"o": f"And lo: {psalm}.", "q": "my shepherd"}
    )
    figures = measure_memorisation(generated(f"{psalm} so", f"{psalm} he said"), sources)
    assert isinstance(figures, MemorisationFigures)
    marks = [[(place.file, place.start) for place in run.elsewhere] for run in figures.runs]
    # The second run is longer than what the other author has.
    assert (figures.hits, marks) == (2, [[("o", 2)], []])


def test_repeated_first_words_count_only_beyond_them():
    first = " ".join(SENTENCE.split()[:6])

    def figures(text):
        asked = GeneratedText(prompt=0, seed=1, text=text, prompt_text="Go on.", given=first)
        return measure_memorisation([asked], Sources({"t": SENTENCE}, {"h": UNSEEN}, 4))

    (run,) = figures(SENTENCE.upper()).runs
    assert (run.start, run.length, run.sources[0].start) == (6, 7, 6)
    assert run.capitalised == (0, 1, 2, 3, 4, 5, 6)
    # Three words beyond the first six make no run of four, though nine in a row match.
    assert figures(" ".join([*SENTENCE.split()[:9], "and", "all", "was", "still"])).hits == 0
    # Only what the text begins with is taken for repetition.
    assert figures(f"Well, {SENTENCE}").longest == 13


def test_near_verbatim_twins_are_marked_with_what_differs():
    words = distinct(60)
    changed = [("x" if k in (10, 20) else word) for k, word in enumerate(words[:30])]
    (twin,) = near_twins({"a": " ".join(words)}, {"h": "so " + " ".join(changed) + " ended"})
    assert (twin.train.start, twin.heldout.file, twin.heldout.start, twin.length) == (0, "h", 1, 30)
    assert twin.changed == (10, 20)
    assert near_twins({"a": " ".join(words)}, {"h": " ".join(words)}) == ()
    # 19 words are too few; a twin around an exact leak is that leak's.
    assert near_twins({"a": " ".join(words)}, {"h": " ".join(changed[:19])}) == ()
    longer = " ".join([*words[:20], "x", *words[21:40]])
    assert near_twins({"a": " ".join(words)}, {"h": longer}) == ()
    assert [leak.changed for leak in shared_runs({"a": " ".join(words)}, {"h": longer})] == [()]


def test_a_protected_text_in_the_own_prompt_is_none_recited():
    sources = Sources({"t": FILLER}, {"h": UNSEEN}, 4, protected={"p": SENTENCE})
    figures = measure_memorisation(generated(SENTENCE, prompt_text=SENTENCE), sources)
    assert isinstance(figures, MemorisationFigures)
    assert (figures.protected.hits, figures.protected.runs) == (0, ())
    assert figures.protected.signature == "ngram_hits@1|n:4|tokens:words@1+prose|prompt:subtracted|texts:protected"


def test_near_runs_begin_after_repeated_first_words_too():
    first, rest = SENTENCE.split()[:3], SENTENCE.split()[3:]
    text = " ".join([*first, *rest]).replace("struck", "sounded")
    asked = GeneratedText(prompt=0, seed=1, text=text, prompt_text="Go on.", given=" ".join(first))
    figures = measure_memorisation([asked], Sources({"t": SENTENCE}, {"h": UNSEEN}, 8))
    (run,) = figures.near.runs
    assert (run.start, run.length, run.changed) == (3, 10, (3,))


def test_an_ngram_has_eight_words_unless_told():
    assert Sources({"t": FILLER}, {"h": UNSEEN}).n == 8


def test_an_excerpt_may_be_the_whole_text_and_shows_twelve_words_on_each_side():
    assert excerpt(SENTENCE, 0, 13) == ("", SENTENCE, "")
    words = distinct(40)
    assert excerpt(" ".join(words), 20, 1) == (" ".join(words[8:20]), words[20], " ".join(words[21:33]))
    with pytest.raises(UsageError) as caught:
        excerpt(SENTENCE, 5, 9)
    assert caught.value.next_step == "give the text that the run was found in, unchanged"


def test_a_split_without_ngrams_says_how_many_files_it_has_and_what_to_do():
    with pytest.raises(CorpusError, match="the train text holds no run of 4 words in its 2 files") as caught:
        Sources({"t": "so it was", "u": "and so"}, {"h": UNSEEN}, 4)
    assert caught.value.next_step == "name the files of the train text, or a smaller n"
    with pytest.raises(CorpusError, match="the held-out text holds no run of 4 words in its 1 files"):
        Sources({"t": FILLER}, {"h": "so it was"}, 4)
    with pytest.raises(CorpusError, match="the protected text holds no run of 4 words in its 3 files"):
        Sources({"t": FILLER}, {"h": UNSEEN}, 4, protected=dict.fromkeys("abc", "so it was"))


def test_a_twin_holds_as_many_words_as_asked_and_no_whole_run_of_them():
    words = distinct(40)
    # 20 words, the 11th changed; and 19 equal words before a change in 30.
    short = [("x" if k == 10 else word) for k, word in enumerate(words[:20])]
    assert [twin.length for twin in near_twins({"a": " ".join(words)}, {"h": " ".join(short)})] == [20]
    first = [("x" if k == 19 else word) for k, word in enumerate(words[:30])]
    assert [twin.length for twin in near_twins({"a": " ".join(words)}, {"h": " ".join(first)})] == [30]
    later = [("x" if k == 20 else word) for k, word in enumerate(words[:30])]
    assert near_twins({"a": " ".join(words)}, {"h": " ".join(later)}) == ()


def test_leaks_of_a_split_are_its_runs_and_its_twins_of_twenty_words_at_least():
    words = distinct(120)
    twin = [("x" if k == 10 else word) for k, word in enumerate(words[60:80])]
    heldout = {"exact": " ".join(words[:20]), "short": " ".join(words[30:49]), "twin": " ".join(twin)}
    train = {"a": " ".join(words)}
    found = leaks(Split(train, heldout, 8))
    assert [(leak.heldout.file, leak.train.start, leak.length, leak.changed) for leak in found] == [
        ("exact", 0, 20, ()),
        ("twin", 60, 20, (10,)),
    ]
    assert found == (*shared_runs(train, heldout), *near_twins(train, heldout))


def test_windows_of_held_out_text_stand_in_an_order_seeded_by_the_signature():
    lengths, shared = [*range(10, 60, 3)], distinct(50, "t")[10:14]
    held = distinct(997, "h")
    for at in range(0, 990, 23):
        held[at : at + 4] = shared
    words = distinct(1000)
    figures = measured([" ".join(words[:length]) for length in lengths], " ".join(distinct(50, "t")), " ".join(held))
    seed = int(hashlib.sha256(figures.signature.encode()).hexdigest(), 16)
    order = np.random.Generator(np.random.PCG64(seed)).permutation(lengths).tolist()
    windows = hits = begin = 0
    while begin + order[windows % len(order)] <= len(held):
        end = begin + order[windows % len(order)]
        hits += any(held[k : k + 4] == shared for k in range(begin, end - 3))
        begin, windows = end, windows + 1
    assert (figures.self_collision.windows, figures.self_collision.hits) == (windows, hits)
