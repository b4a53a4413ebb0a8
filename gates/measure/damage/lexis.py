"""Words that do not belong: no words at all, or names out of the training text."""

from __future__ import annotations

from gates.measure.damage.axis import Answers, Measured, each, figures
from gates.measure.damage.library import LOWER_CASE, MID_SENTENCE, PECULIAR, bare
from gates.measure.figures import Unmeasured
from gates.records import signature
from gates.text import WORDS, words

FEWEST_WORDS = 1000
"""A smaller vocabulary cannot tell garble from words."""


def garble(answers: Answers) -> Measured:
    """`garble@1`: mean share in [0, 1] of a text's words that are outside the vocabulary; higher is worse.

    The vocabulary is every word of the reference texts, of the author (train and held-out) and of the text's own
    prompt; a possessive ending is no part of a word. The value of a generation is a share, 1 for a text without words
    and for one that failed. Names that a model invents count too, for the base as for the candidate. Unmeasured with
    a vocabulary of fewer than 1,000 words, or without generations.

    Passing: "She shut the door." is 0. Failing: "She shutched the dorve." is 0.5.
    """
    known = answers.library.vocabulary
    if len(known) < FEWEST_WORDS:
        return Unmeasured(unmeasured=f"a vocabulary of {len(known)} words, and at least {FEWEST_WORDS} are needed")
    prompts = [_said(prompt) for prompt in answers.prompts]

    def unknown(text: str, prompt: int) -> float:
        found = answers.tokens[text]
        strange = sum(word not in known and word not in prompts[prompt] for word in map(bare, found))
        return strange / len(found) if found else 1.0

    made_by = signature("garble@1", tokens=WORDS, vocabulary=len(known))
    return figures(made_by, "higher", each(answers, unknown))


def name_leak(answers: Answers) -> Measured:
    """`name_leak@1`: share of the generations (S, P) in [0, 1] that use a train split's proper name; higher is worse.

    A name, written with a capital, that the text's own prompt does not hold in either case. Proper names are the words
    of the train split that stand in mid-sentence with a capital at least 3 times, at most 2 % of the time in lower
    case, are no function words or titles, and are at least 10 times as frequent there as in the reference texts
    (`library.proper_names` says it exactly). A generation that failed counts as harm. Unmeasured when the train split
    holds no such name, or without generations.

    Trained on Jane Eyre. Passing: "My master came in." is 0. Failing: "Mr. Rochester came in." is 1, unless the prompt
    names him.
    """
    names = answers.library.names
    if not names:
        return Unmeasured(unmeasured="the train split holds no proper name of its own")
    prompts = [_said(prompt) for prompt in answers.prompts]
    spelt = names.union(f"{name}'s" for name in names)

    def leaks(text: str, prompt: int) -> bool:
        if spelt.isdisjoint(answers.tokens[text]):
            return False
        capital = (bare(word).lower() for word in words(text, case="keep") if word[0].isupper())
        return any(word in names and word not in prompts[prompt] for word in capital)

    made_by = signature(
        "name_leak@1",
        names=len(names),
        mid_sentence=MID_SENTENCE,
        lower_case=LOWER_CASE,
        peculiar=PECULIAR,
        tokens=WORDS,
    )
    return figures(made_by, "higher", each(answers, leaks))


def _said(prompt: str) -> frozenset[str]:
    return frozenset(map(bare, words(prompt)))
