"""What the page says in words: answers, titles of axes, standing, flags."""

from __future__ import annotations

from collections.abc import Mapping

from gates.judge.axes import AxisVerdict
from gates.judge.verdict import CandidateVerdict
from gates.measure.figures import DamageFigures, Measurements, MemorisationFigures, NearRun, Run
from gates.records import Generation, Outcome
from gates.report.wording import in_order

TITLES = {
    "run": "The run as a whole",
    "validity": "Fit to judge",
    "voice": "Sounds like the author",
    "memorisation": "Copies the training text",
    "extraction": "Recites when invited to",
    "ran_on": "Runs on to the token limit",
    "on_beat": "Keeps to its scene",
    "empty": "Says nothing",
    "repetition": "Repeats itself",
    "echo": "Copies its prompt back",
    "template_leak": "Leaks chat mark-up",
    "garble": "Makes words up",
    "name_leak": "Leaks names of the training text",
}


def title(axis: str) -> str:
    """What an axis is called in plain words; a plugged-in one by its own name."""
    return TITLES.get(axis, axis)


def why(name: str, candidate: CandidateVerdict, measurements: Measurements) -> list[str]:
    """One sentence for each axis that did not pass; where all did, that, and how far the voice moved."""
    trouble = [axis for axis in in_order(candidate.axes) if axis.outcome is not Outcome.PASS]
    if trouble:
        return [f"{title(axis.axis)}: {_harm(name, axis, measurements) or axis.reason}." for axis in trouble]
    return ["Every axis passes.", *_moved(candidate.axes.get("voice"))]


def _moved(voice: AxisVerdict | None) -> list[str]:
    if voice is None or voice.value is None or voice.threshold is None:
        return []
    return [f"Moved {voice.value:+.3f} toward the author; more than {voice.threshold:.3f} was asked."]


def _harm(name: str, axis: AxisVerdict, measurements: Measurements) -> str:
    """A judged change on a damage axis in percent; empty where the axis is no such change."""
    then, now = (measurements.arms[arm].damage.get(axis.axis) for arm in ("base", name))
    if not isinstance(then, DamageFigures) or not isinstance(now, DamageFigures):
        return ""
    if axis.value is None or axis.threshold is None:
        return ""
    limits = ""
    if axis.low is not None and axis.high is not None:
        limits = f" (95 % limits {_points(axis.low)} and {_points(axis.high)})"
    bound = "seeds alone make" if axis.floor is not None else "the gate allows"
    told = [
        f"{_points(now.rate)}% against the base's {_points(then.rate)}%",
        f"that is worse by {_points(axis.value)} points{limits}, and {bound} {_points(axis.threshold)}",
        *(["the evidence cannot decide"] if axis.outcome is Outcome.INCONCLUSIVE else []),
        *([axis.to_decide] if axis.to_decide else []),
    ]
    return "; ".join(told)


def _points(share: float) -> str:
    """A share in percent, with one decimal where it needs one."""
    return f"{100 * share:z.1f}".removesuffix(".0")


def flags(measurements: Measurements) -> dict[tuple[str, int, int], list[str]]:
    """What is notable of each generation, by its key: its harms and matches."""
    found: dict[tuple[str, int, int], list[str]] = {}
    for name, arm in measurements.arms.items():
        for axis, figures in arm.damage.items():
            if not isinstance(figures, DamageFigures):
                continue
            label = axis if figures.worse == "higher" else f"not {axis}"
            for seed, row in zip(arm.seeds, figures.values, strict=False):
                for prompt, value in enumerate(row):
                    if (value if figures.worse == "higher" else 1 - value) >= 0.5:
                        found.setdefault((name, prompt, seed), []).append(label)
        for copied in (arm.memorisation, arm.extraction):
            if isinstance(copied, MemorisationFigures):
                for key, labels in _matches(name, copied).items():
                    found.setdefault(key, []).extend(labels)
    return found


def _matches(arm: str, figures: MemorisationFigures) -> Mapping[tuple[str, int, int], list[str]]:
    found: dict[tuple[str, int, int], list[str]] = {}
    kinds: list[tuple[str, tuple[Run | NearRun, ...]]] = [
        ("copied", figures.runs),
        ("nearly copied", figures.near.runs),
    ]
    if figures.protected is not None:
        kinds.append(("protected", figures.protected.runs))
    for label, runs in kinds:
        for key in dict.fromkeys((arm, run.prompt, run.seed) for run in runs):
            found.setdefault(key, []).append(label)
    return found


def own_flags(generation: Generation) -> list[str]:
    """What is wrong with an answer itself."""
    if generation.error is not None:
        return ["error"]
    return [] if generation.text.strip() else ["empty"]


def shown_prompt(generation: Generation) -> str:
    """What the model was asked last in a request as recorded: the user's message, or the text to complete."""
    messages = generation.request.get("messages")
    if isinstance(messages, list) and messages and isinstance(messages[-1], dict):
        return str(messages[-1].get("content", ""))
    return str(generation.request.get("prompt", ""))
