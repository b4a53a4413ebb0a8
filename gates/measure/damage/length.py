"""Texts that do not end, do not begin, or go round in circles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gates.measure.damage.axis import Answers, Measured, each, figures
from gates.measure.figures import Unmeasured
from gates.records import Generation, signature
from gates.text import WORDS

REPEATED = 4
"""Words in a run whose second occurrence is a repetition."""


def ran_on(generations: Sequence[Sequence[Generation]], max_tokens: int) -> Measured:
    """`ran_on@1`: share of the generations (S, P) in [0, 1] that used up the token limit; higher is worse.

    By tokens used (completion_tokens ≥ max_tokens) as well as by `finish_reason: length`, because servers label some
    of them "stop". A generation that failed counts as harm. Unmeasured when the seat did not count the tokens of an
    answer, or there are no generations. Source: the OpenAI chat completions interface, `finish_reason` and `usage`.

    Passing: 212 tokens of 400, "stop": 0. Failing: 400 tokens of 400, "stop": 1.
    """
    uncounted = [g.key for row in generations for g in row if g.usage is None and not _used_up(g, max_tokens)]
    if uncounted:
        arm, prompt, seed = uncounted[0]
        return Unmeasured(
            unmeasured=f"the seat counted no tokens for {len(uncounted)} answers (first: arm {arm}, prompt {prompt}, "
            f"seed {seed}), so whether they used up {max_tokens} is unknown"
        )
    values = [[float(_used_up(generation, max_tokens)) for generation in row] for row in generations]
    return figures(signature("ran_on@1", max_tokens=max_tokens), "higher", values)


def empty(answers: Answers) -> Measured:
    """`empty@1`: share of the generations (S, P) in [0, 1] that hold no word; higher is worse.

    A text of signs, figures or invisible characters alone holds none; one that failed counts as harm. Unmeasured
    without generations. Validity limits how many texts may be without any character; this compares with the base.

    Passing: "No." is 0. Failing: "* * *" is 1.
    """
    return figures(
        signature("empty@1", tokens=WORDS), "higher", each(answers, lambda text, _: not answers.tokens[text])
    )


def repetition(answers: Answers) -> Measured:
    """`repetition@1`: mean share in [0, 1] of a text's words inside repeated runs of 4 words; higher is worse.

    A word counts when it belongs to a 4-gram that stands at least twice in its text, each occurrence counted; so the
    value of a generation is a share, 0 for fewer than five words. A generation that failed counts as harm: 1.
    Unmeasured without generations. Near Welleck et al. 2020 (ICLR, section 6, seq-rep-4), who count n-grams.

    Passing: "I went out, and the sea was grey and still." is 0. Failing: "I went out and I went out and I" is 1.
    """
    made_by = signature("repetition@1", n=REPEATED, tokens=WORDS)
    return figures(made_by, "higher", each(answers, lambda text, _: repeated_share(answers.tokens[text])))


def repeated_share(found: Sequence[str]) -> float:
    """Share in [0, 1] of words inside 4-grams that occur at least twice; 0 without words."""
    grams = list(zip(*(found[k:] for k in range(REPEATED)), strict=False))
    if len(set(grams)) == len(grams):
        return 0.0
    counts = Counter(grams)
    inside = {start + k for start, gram in enumerate(grams) if counts[gram] > 1 for k in range(REPEATED)}
    return len(inside) / max(len(found), 1)


def _used_up(generation: Generation, max_tokens: int) -> bool:
    counted = generation.usage is not None and generation.usage.completion_tokens >= max_tokens
    return counted or generation.finish_reason == "length" or generation.error is not None
