"""What a voice adapter may break: one function an axis, each a share of an arm's generations, seed by prompt.

Shapes: S generation seeds, P prompts; rows are seeds, columns are prompts in the order of the gate's beats.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gates.errors import UsageError
from gates.measure.figures import DamageFigures, Unmeasured
from gates.records import Generation, signature
from gates.text import WORDS, words

MINIMUM_BEATS = 10
"""Fewer beats make the nearest one too easy to hit by chance."""

STOP_WORDS = frozenset(
    """
    a about above across after again against ain't all almost along already also although always am among an and
    another any anybody anyone anything are aren't around as at away be because been before behind being below beneath
    beside besides between beyond both but by can can't cannot could couldn't did didn't do does doesn't doing don't
    done down during each either else enough even ever every everybody everyone everything except few for from further
    had hadn't has hasn't have haven't having he he'd he'll he's her here here's hers herself him himself his how how's
    however i i'd i'll i'm i've if in indeed into is isn't it it'd it'll it's its itself just least less let let's like
    many may maybe me might mightn't mine more most much must mustn't my myself near neither never no nobody none nor
    not nothing now of off often on once one ones only onto or other others otherwise ought our ours ourselves out over
    own per perhaps quite rather same shall shan't she she'd she'll she's should shouldn't since so some somebody
    someone something sometimes soon still such than that that's the their theirs them themselves then there there's
    therefore these they they'd they'll they're they've this those though through throughout thus till to together too
    toward towards under until up upon us very was wasn't we we'd we'll we're we've were weren't what what's whatever
    when when's whenever where where's wherever whether which while who who's whoever whom whose why why's will with
    within without won't would wouldn't yet you you'd you'll you're you've your yours yourself yourselves
    """.split()  # noqa: SIM905 - a list literal of one quoted word a line is no list a person can check
)
"""English function words that name no scene: `function-words@1`. Any change to the list is a new version."""

_TIE = 1e-9


@dataclass(frozen=True)
class Answers:
    """One arm's generations (S, P) with what they were asked for: the beats (P,) and the token limit."""

    generations: tuple[tuple[Generation, ...], ...]
    beats: tuple[str, ...]
    max_tokens: int

    @property
    def texts(self) -> tuple[tuple[str, ...], ...]:
        """The generated texts (S, P)."""
        return tuple(tuple(generation.text for generation in row) for row in self.generations)


Axis = Callable[[Answers], DamageFigures | Unmeasured]


def ran_on(generations: Sequence[Sequence[Generation]], max_tokens: int) -> DamageFigures | Unmeasured:
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
    return _figures(signature("ran_on@1", max_tokens=max_tokens), "higher", values)


def on_beat(texts: Sequence[Sequence[str]], beats: Sequence[str]) -> DamageFigures | Unmeasured:
    """`on_beat@1`: share of the texts (S, P) in [0, 1] whose own beat is the nearest of all beats (P,); lower is worse.

    Nearest by cosine of TF-IDF vectors fitted on the beats only (scikit-learn: smoothed idf, sublinear tf, L2 norm)
    over Snowball stems (nltk, English); the stop words are removed before stemming. A tie with another beat and a
    similarity of zero are misses, so an empty text is one. Chance is 1 / P. Unmeasured with fewer than 10 beats, with
    beats that hold nothing but stop words, or without texts. Raises UsageError when a row is not P texts long.
    Sources: Salton and Buckley 1988, Information Processing and Management 24:513-523; Porter 2001, Snowball.

    For the beat "A farmer refuses to sell his land." Passing: "He would not sell the land." Failing: "She wept."
    """
    # Lazy for start-up time: these two take seconds to import, and most commands measure nothing.
    from nltk.stem.snowball import SnowballStemmer  # noqa: PLC0415
    from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415

    if len(beats) < MINIMUM_BEATS:
        return Unmeasured(unmeasured=f"{len(beats)} beats, and at least {MINIMUM_BEATS} are needed to tell them apart")
    for row in texts:
        if len(row) != len(beats):
            raise UsageError(f"{len(row)} texts of one seed for {len(beats)} beats", next_step="give one text a beat")
    stem = SnowballStemmer("english").stem

    def stems(text: str) -> list[str]:
        return [stem(word) for word in words(text) if word not in STOP_WORDS]

    if not any(map(stems, beats)):
        return Unmeasured(unmeasured=f"the {len(beats)} beats hold nothing but stop words")
    vectoriser = TfidfVectorizer(analyzer=stems, sublinear_tf=True, norm="l2")
    known = vectoriser.fit_transform(beats)
    values = [_nearest_is_own((vectoriser.transform(row) @ known.T).toarray()) for row in texts]
    made_by = signature(
        "on_beat@1",
        beats=len(beats),
        tokens=WORDS,
        stop_words="function-words@1",
        stems="snowball-english",
        tf="sublinear",
        norm="l2",
    )
    return _figures(made_by, "lower", values)


AXES: dict[str, Axis] = {
    "ran_on": lambda arm: ran_on(arm.generations, arm.max_tokens),
    "on_beat": lambda arm: on_beat(arm.texts, arm.beats),
}
"""Every damage axis by the name that gates call it."""


def _used_up(generation: Generation, max_tokens: int) -> bool:
    counted = generation.usage is not None and generation.usage.completion_tokens >= max_tokens
    return counted or generation.finish_reason == "length" or generation.error is not None


def _nearest_is_own(similarity: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> list[float]:
    """1 for each row of (P, P) similarities of texts to beats whose diagonal exceeds all else in the row, else 0."""
    own = np.diagonal(similarity).copy()
    others = similarity.copy()
    np.fill_diagonal(others, 0.0)
    hits: list[float] = (own > others.max(axis=1) + _TIE).astype(np.float64).tolist()
    return hits


def _figures(
    made_by: str, worse: Literal["higher", "lower"], values: Sequence[Sequence[float]]
) -> DamageFigures | Unmeasured:
    if not any(values):
        return Unmeasured(unmeasured="there are no generations")
    return DamageFigures(
        signature=made_by,
        worse=worse,
        values=tuple(map(tuple, values)),
        per_seed=tuple(math.fsum(row) / len(row) for row in values),
        rate=math.fsum(map(math.fsum, values)) / sum(map(len, values)),
    )
