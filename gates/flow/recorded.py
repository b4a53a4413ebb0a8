"""Measuring what a run's folder holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gates.flow.alike import Heard, unlike
from gates.flow.inputs import Inputs
from gates.flow.measuring import measure
from gates.measure.figures import Measurements, SeatFigures, SeatsFigures
from gates.record.store import RunStore, Session
from gates.records import Generation, canonical
from gates.seat.canary import CanaryReport
from gates.seat.identity import SeatIdentity
from gates.spec.schema import Gate


def measure_run(inputs: Inputs, seal: str, store: RunStore, asked: Gate | None = None) -> Measurements:
    """The measurements of a run's recorded generations and judgements. Raises TamperedError as `measure` does.

    `asked` is the gate that generated, where the inputs hold another one that measures.
    """
    found = measure(inputs, seal, store.generations(seal), store.generations_sha256(), store.judgements(seal))
    return found.model_copy(update={"seats": _seats(asked or inputs.gate, seal, store)})


def _seats(gate: Gate, seal: str, store: RunStore) -> SeatsFigures | None:
    """What each of several seats gave; None for one seat, and for imported texts, of which nobody knows."""
    sessions = store.sessions()
    if gate.seats is None or not sessions:
        return None
    looks: dict[str, list[Session]] = {}
    for session in sessions:
        looks.setdefault(session.name, []).append(session)
    differences = unlike(gate, [_heard(store, mine[0]) for mine in looks.values()])
    generations = list(store.generations(seal))
    return SeatsFigures(
        seats=tuple(_seat(gate, name, mine, generations, differences.get(name, ())) for name, mine in looks.items()),
        **_blocks(gate, generations),
    )


def _heard(store: RunStore, look: Session) -> Heard:
    where = str(store.sessions_path)
    identity = SeatIdentity.parse(canonical(look.seat), where=where)
    return Heard(identity, CanaryReport.parse(canonical(look.canary), where=where))


def _seat(
    gate: Gate, name: str, looks: Sequence[Session], generations: Sequence[Generation], differs: tuple[str, ...]
) -> SeatFigures:
    texts = Counter(one.arm for one in generations if one.seat == name and one.error is None)
    errors = Counter(one.arm for one in generations if one.seat == name and one.error is not None)
    return SeatFigures(
        seat=name,
        texts={arm: texts[arm] for arm in gate.arms.all()},
        errors={arm: errors[arm] for arm in gate.arms.all()},
        unlike=differs,
        lost=tuple(sentence for look in looks if look.phase == "lost" for sentence in look.warnings),
        closed=looks[-1].phase == "end",
    )


def _blocks(gate: Gate, generations: Sequence[Generation]) -> dict[str, int]:
    """How many blocks there are, and of how many the arms were answered by more than one seat."""
    places = {arm: {seed: place for place, seed in enumerate(gate.seeds(arm))} for arm in gate.arms.all()}
    seats: dict[tuple[int, int], set[str]] = {}
    for one in generations:
        seats.setdefault((one.prompt, places[one.arm][one.seed]), set()).add(one.seat)
    return {"blocks": len(seats), "split": sum(len(found) > 1 for found in seats.values())}
