"""What the page says in words: answers, titles of axes, standing, flags."""

from __future__ import annotations

from collections.abc import Mapping

from gates.judge.axes import AxisVerdict
from gates.judge.verdict import CandidateVerdict
from gates.measure.figures import DamageFigures, Measurements, MemorisationFigures, NearRun, Run
from gates.records import Generation, Outcome
from gates.report.wording import FIRST, in_order

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


def why(candidate: CandidateVerdict) -> list[str]:
    """One sentence for each axis that did not pass; where all did, that, and how far the voice moved."""
    trouble = [axis for axis in in_order(candidate.axes) if axis.outcome is not Outcome.PASS]
    if trouble:
        return [f"{title(axis.axis)} ({axis.axis}{_compared(axis)}): {axis.reason}." for axis in trouble]
    moved = candidate.axes.get("voice")
    return ["Every axis passes.", *([f"{title('voice')}: {moved.reason}."] if moved else [])]


def _compared(axis: AxisVerdict) -> str:
    """What the first two figures of a damage axis's reason are."""
    return "" if axis.axis in FIRST or axis.value is None else "; share of texts, base to candidate"


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
