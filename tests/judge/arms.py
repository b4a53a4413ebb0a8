"""Made-up gates and figures for judging: plain defaults that PASS, each part replaceable."""

import json

import numpy as np

from gates.measure.figures import (
    ArmMeasurements,
    DamageFigures,
    Measurements,
    MemorisationFigures,
    NearFigures,
    SelfCollision,
    ValidityFigures,
    VoiceFigures,
)
from gates.spec.schema import Gate

SEEDS = (1, 2, 3, 4)
PROMPTS = 30
GENERATIONS = PROMPTS * len(SEEDS)
HASH = "ab" * 32
BASE_DISTANCES = (0.90, 0.92, 0.94, 0.96)


def a_gate(candidates=("a",), controls=(), **changes) -> Gate:
    document = {
        "schema": "gates/1",
        "name": "demo",
        "question": "Does it move?",
        "seat": "embedded",
        "arms": {
            "base": "m",
            "candidates": {name: {"model": f"m-{name}", "adapter": f"{name}.gguf"} for name in candidates},
            "controls": {name: {"model": "m", "seeds": [11, 12, 13, 14]} for name in controls},
        },
        "corpora": {"train": "t/train", "heldout": "t/heldout", "reference": "r", "imposters": ["i"]},
        "prompts": {"file": "beats.txt"},
        "sampling": {"seeds": list(SEEDS), "temperature": 0.9, "top_p": 0.95, "max_tokens": 300},
        "voice": {"mfw": 300, "words_per_seed": 500, "min_specificity": 0.05},
        "memorisation": {"max_rate": 0.10, "max_run_words": 12, "max_heldout_rate": 0.02},
        "damage": {"ran_on": {"within": "floor"}, "on_beat": {"margin": 0.15}},
    } | changes
    return Gate.model_validate_json(json.dumps(document))


def voice_figures(distances=(0.70, 0.71, 0.72, 0.73), base=BASE_DISTANCES, **changes) -> VoiceFigures:
    delta = float(np.mean(base) - np.mean(distances))
    return VoiceFigures(
        **{
            "signature": "delta_cb@1|mfw:300",
            "frame_sha256": HASH,
            "words": (600,) * len(distances),
            "base_words": (600,) * len(base),
            "distances": tuple(distances),
            "base_distances": tuple(base),
            "delta": delta,
            "spread": float(np.ptp(distances)),
            "base_spread": float(np.ptp(base)),
            "ceiling": 0.5,
            "span": 0.43,
            "span_closed": 0.5,
            "interval": (0.1, 0.3),
            "imposters": {"i": 0.05},
            "specificity": 0.165,
            "influence": (0.0,) * PROMPTS,
        }
        | changes
    )


def memorisation_figures(hits=2, generations=GENERATIONS, **changes) -> MemorisationFigures:
    return MemorisationFigures(
        **{
            "signature": "ngram_hits@1|n:8",
            "n": 8,
            "generations": generations,
            "unscanned": 0,
            "hits": hits,
            "rate": hits / max(generations, 1),
            "ngram_share": 0.001,
            "words_covered": 0.002,
            "longest": 9,
            "runs": (),
            "heldout_hits": 0,
            "heldout_longest": 0,
            "self_collision": SelfCollision(windows=100, hits=1, rate=0.01, longest=10),
            "ratio": 2.0,
            "ratio_low": 0.3,
            "ratio_high": 20.0,
            "near": NearFigures(
                signature="near_runs@1|words:8", hits=0, rate=0.0, longest=0, unseen_longest=0, runs=()
            ),
            "protected": None,
        }
        | changes
    )


def damage_figures(rates, worse="higher", prompts=PROMPTS, name="ran_on@1") -> DamageFigures:
    """One rate a seed: of its prompts, that share hits, the hits of each seed beginning at another prompt."""
    rows = [np.roll(np.arange(prompts) < round(rate * prompts), 7 * seed) for seed, rate in enumerate(rates)]
    values = tuple(tuple(float(hit) for hit in row) for row in rows)
    per_seed = tuple(float(np.mean(row)) for row in values)
    return DamageFigures(signature=name, worse=worse, values=values, per_seed=per_seed, rate=float(np.mean(per_seed)))


def an_arm(role="candidate", **changes) -> ArmMeasurements:
    seeds = changes.get("seeds", SEEDS)
    expected = PROMPTS * len(seeds)
    return ArmMeasurements(
        **{
            "role": role,
            "seeds": seeds,
            "validity": ValidityFigures(
                expected=expected, present=expected, errors=0, empty=0, repeated_seeds=0, prompt_mismatches=0
            ),
            "voice": None if role == "base" else voice_figures(),
            "memorisation": memorisation_figures(0 if role == "base" else 2),
            "extraction": None,
            "damage": {
                "ran_on": damage_figures((0.1, 0.2, 0.1, 0.2)),
                "on_beat": damage_figures((0.8, 0.8, 0.9, 0.8), "lower", name="on_beat@1"),
            },
        }
        | changes
    )


def measured(arms=None, leaks=()) -> Measurements:
    arms = {"base": an_arm("base"), "a": an_arm()} if arms is None else arms
    return Measurements(seal=HASH, generations_sha256=HASH, arms=arms, leaks=leaks)
