"""A recheck's sample and what follows from it: pure derivations, used when it is made and when it is verified."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gates.errors import UsageError
from gates.flow.finished import FinishedRun
from gates.flow.inputs import Inputs
from gates.flow.measuring import measure
from gates.flow.planning import seed_of
from gates.judge.recheck import SignedFloors, judge_recheck
from gates.judge.verdict import BASE
from gates.record.recheck import Recheck, RecheckPlan
from gates.records import Generation, Outcome, digest
from gates.seat.generate import Task
from gates.spec.asking import Arms, Base, Candidate
from gates.spec.judging import Judgement
from gates.spec.limits import Judge
from gates.spec.schema import Gate

SEEDS = 2
"""How many of the run's seeds a recheck repeats unless more are asked for: the fewest that have a range."""


def sample_seeds(seal: str, seeds: Sequence[int], count: int) -> tuple[int, ...]:
    """`count` of the run's seeds in their order, drawn from the seal's hash: nobody chooses them.

    Raises UsageError unless 2 <= count <= number of seeds.
    """
    if not SEEDS <= count <= len(seeds):
        raise UsageError(f"--seeds {count}: the run has {len(seeds)} seeds", next_step=f"give {SEEDS} to {len(seeds)}")
    drawn = np.argsort(np.random.PCG64(int(digest(["recheck", seal]), 16)).random_raw(len(seeds)), kind="stable")
    return tuple(seeds[place] for place in sorted(drawn[:count]))


def asked_gate(gate: Gate, plan_arm: str, model: str, *, alone: bool, seeds: tuple[int, ...]) -> Gate:
    """The gate as a recheck asks it: base and this arm, or the arm in both places where it is served `alone`."""
    base = Base(model=model) if alone else gate.arms.base
    asked = _with(gate, base, {plan_arm: gate.arms.candidates[plan_arm].model_copy(update={"model": model})}, seeds)
    return asked.model_copy(update={"judge": _judge(gate, alone=alone)})


def tasks_of(plan: RecheckPlan, prompts: int) -> list[Task]:
    """Every text of a recheck, prompt by prompt: one arm has nothing to be interleaved with."""
    return [Task(plan.arm, prompt, seed) for prompt in range(prompts) for seed in plan.seeds]


@dataclass(frozen=True)
class Sampled:
    """What a finished recheck rests on."""

    run: FinishedRun
    inputs: Inputs
    plan: RecheckPlan
    generations: Sequence[Generation]
    generations_sha256: str
    troubles: tuple[str, ...] = ()
    judgements: Sequence[Judgement] = ()


def derive(sampled: Sampled) -> Recheck:
    """Measure and judge a recheck. Pure.

    The arm as it was in the run stands as `base` beside the arm as it is now, so that every figure is the change.
    """
    run, plan, gate = sampled.run, sampled.plan, sampled.run.seal.gate
    old = [g for g in run.store.generations(run.sealed.sha256) if g.arm == plan.arm and g.seed in plan.seeds]
    then = [generation.model_copy(update={"arm": BASE}) for generation in old]
    compared = _with(gate, Base(model=gate.arms.candidates[plan.arm].model), _only(gate, plan.arm), plan.seeds)
    compared = compared.model_copy(update={"judge": _judge(gate, alone=plan.alone)})
    known = (j for j in run.store.judgements(run.sealed.sha256) if j.arm == plan.arm and j.seed in plan.seeds)
    measured = measure(
        replace(sampled.inputs, gate=compared, imposters={}),
        plan.digest(),
        [*then, *sampled.generations],
        sampled.generations_sha256,
        [*(judgement.model_copy(update={"arm": BASE}) for judgement in known), *sampled.judgements],
    )
    found = judge_recheck(compared, plan.arm, measured, floors_of(run, plan.arm))
    same = _same_texts(old, sampled.generations)
    return Recheck(
        plan_sha256=plan.digest(),
        generations_sha256=sampled.generations_sha256,
        outcome=Outcome.INVALID if sampled.troubles else found.outcome,
        candidates={plan.arm: found},
        measurements=measured,
        same_texts=same,
        texts=len(sampled.generations),
        troubles=sampled.troubles,
        warnings=(*sampled.troubles, *_warnings(plan)),
    )


def floors_of(run: FinishedRun, arm: str) -> SignedFloors:
    """The floors that judged this arm. Raises UsageError where the run had no floor of its voice."""
    axes = run.verdict.candidates[arm].axes
    voice = axes.get("voice")
    if voice is None or voice.floor is None:
        raise UsageError(
            f"{arm}: its voice was not judged in run {run.store.number:03d} of {run.store.gate}, so nothing says how "
            "far it may move",
            next_step="recheck a run whose voice was measured",
        )
    return SignedFloors(
        rule=voice.rule,
        voice=voice.floor,
        damage={name: axis.floor for name, axis in axes.items() if axis.floor is not None and name != "voice"},
    )


def alarm_rng(gate: Gate) -> np.random.Generator:
    """The generator of a recheck's simulated operating characteristics, from the gate alone."""
    return np.random.Generator(np.random.PCG64(seed_of("recheck", gate)))


def _warnings(plan: RecheckPlan) -> Iterable[str]:
    if plan.changed:
        yield f"{plan.otherwise}: {'; '.join(plan.changed)}"
    if plan.alone:
        yield "the voice is served without its base: nothing proved that an adapter is applied"


def _same_texts(old: Sequence[Generation], new: Sequence[Generation]) -> int:
    texts = {generation.key: generation.text for generation in old if generation.error is None}
    return sum(texts.get(generation.key) == generation.text for generation in new if generation.error is None)


def _judge(gate: Gate, *, alone: bool) -> Judge | None:
    """The judge of the gate under its own name; nobody where it is the base, and the voice is served without one."""
    if gate.judge is None or (alone and gate.judge.model is None):
        return None
    return gate.judge.model_copy(update={"model": gate.judge.model or gate.arms.base.model})


def _only(gate: Gate, arm: str) -> dict[str, Candidate]:
    return {arm: gate.arms.candidates[arm]}


def _with(gate: Gate, base: Base, candidates: dict[str, Candidate], seeds: tuple[int, ...]) -> Gate:
    """The gate with other arms and seeds; not validated again, for base and candidate may be one model here."""
    arms = Arms.model_construct(base=base, candidates=candidates, controls={})
    return gate.model_copy(update={"arms": arms, "sampling": gate.sampling.model_copy(update={"seeds": seeds})})
