"""What a seal binds, computed from a gate's inputs and its seat; and the context that is only recorded."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version

from pydantic import JsonValue

from gates.errors import UsageError
from gates.flow.inputs import Inputs
from gates.flow.plugins import plug_ins
from gates.judge.floors import RULES, FloorRule, rule_of
from gates.measure.damage import Axis
from gates.measure.near import NEAR
from gates.record.seal import AdapterIdentity, Binding, SealOnDisk
from gates.records import canonical, digest, signature
from gates.seat.identity import PeerBinding, SeatBinding, SeatIdentity, adapter_files
from gates.spec.judging import WORDING
from gates.spec.prompts import Rendered
from gates.spec.schema import Gate
from gates.text import WORDS

PACKAGES = ("voice-gates", "numpy", "scipy", "pandas", "aiohttp", "pydantic", "xllamacpp")


def bind(inputs: Inputs, seat: dict[str, JsonValue], cards: Mapping[str, dict[str, JsonValue]]) -> Binding:
    """Everything binding about a gate now: `seat` as probed, `cards` by model for adapters that cannot be read here."""
    return Binding(
        gate=inputs.gate.digest(),
        texts={
            role: {f"{document.corpus}/{document.name}": document.text_sha256 for document in texts}
            for role, texts in inputs.texts().items()
        },
        prompts=digest(
            [[_plain(inputs.prompt(arm, n)) for n in range(len(inputs.shown))] for arm in inputs.gate.arms.all()]
        ),
        frame=inputs.frame.digest(),
        adapters={arm: _adapter(inputs, arm, cards) for arm in inputs.adapters},
        signatures={**signatures(inputs.gate, inputs.axes, inputs.rules), **_judge(inputs)},
        seat=seat,
    )


def cards_of(inputs: Inputs, identity: SeatIdentity) -> dict[str, dict[str, JsonValue]]:
    """The model cards of a running seat's adapters, by name; the embedded seat loads the very files that are bound."""
    return {} if inputs.gate.embedded else {card.name: card.as_json() for card in identity.context.loras}


def seat_part(gate: Gate, identity: SeatIdentity) -> dict[str, JsonValue]:
    """What a seal holds of a seat; of one of several also its cards of the gate's adapters."""
    if gate.seats is None:
        return identity.binding.as_json()
    names = {arm.model for arm in gate.arms.all().values()} - {gate.arms.base.model}
    cards = {card.name: card for card in identity.context.loras if card.name in names}
    return PeerBinding(**dict(identity.binding), adapters=cards).as_json()


def seats_part(gate: Gate, identities: Sequence[SeatIdentity]) -> dict[str, JsonValue]:
    """What a seal holds of the gate's seat, or by address of each of its seats."""
    if gate.seats is None:
        return seat_part(gate, identities[0])
    return {identity.base_url: seat_part(gate, identity) for identity in identities}


def with_seat(sealed: SealOnDisk, identity: SeatIdentity) -> dict[str, JsonValue]:
    """The sealed seats, this one as it is now."""
    now = seat_part(sealed.seal.gate, identity)
    return now if sealed.seal.gate.seats is None else {**sealed.seal.binding.seat, identity.base_url: now}


def sealed_seat(sealed: SealOnDisk, name: str) -> SeatBinding:
    """What is sealed of the seat at this address."""
    where = str(sealed.path)
    if sealed.seal.gate.seats is None:
        return SeatBinding.parse(canonical(sealed.seal.binding.seat), where=where)
    return PeerBinding.parse(canonical(sealed.seal.binding.seat.get(name)), where=where)


def sealed_context(sealed: SealOnDisk, name: str) -> dict[str, JsonValue]:
    """The sealed context of the seat at this address."""
    context = sealed.seal.context
    seats = context.get("seat")
    if sealed.seal.gate.seats is None or not isinstance(seats, dict):
        return context
    return {**context, "seat": seats.get(name)}


def sealed_cards(sealed: SealOnDisk) -> dict[str, dict[str, JsonValue]]:
    """The model cards that a seal holds, by name: what may be compared without asking the seat."""
    arms = sealed.seal.gate.arms.all()
    held = sealed.seal.binding.adapters.items()
    return {arms[arm].model: identity.card for arm, identity in held if identity.card is not None and arm in arms}


def signatures(gate: Gate, axes: Mapping[str, Axis], rules: Mapping[str, FloorRule] = RULES) -> dict[str, str]:
    """Name and version of every measure and rule that the gate uses; of a damage axis, which direction is harm, too."""
    named = {name: f"{axes[name].signature}|worse:{axes[name].worse}" for name in gate.damage.named()}
    floors = {f"{axis}.floor": rule_of(limit, rules).signature for axis, limit in gate.damage.named().items()}
    memorisation = {"memorisation": gate.memorisation.measure, "near": NEAR} if gate.memorisation else {}
    return {
        "words": WORDS,
        "voice": gate.voice.measure,
        "voice.floor": rule_of(gate.voice, rules).signature,
        **memorisation,
        **named,
        **floors,
    }


def context_of(identity: SeatIdentity, gate: Gate, *others: SeatIdentity) -> dict[str, JsonValue]:
    """What is recorded beside a seal and may change: versions of Python, platform and packages, and the seat's rest.

    With `others` the rest of each seat, by its address.

    Also the distributions behind what the gate names that is plugged in, if anything is.
    """
    packages: dict[str, JsonValue] = {name: _version(name) for name in PACKAGES}
    plugged: dict[str, JsonValue] = {**plug_ins(gate)}
    rests: dict[str, JsonValue] = {each.base_url: each.context.as_json() for each in (identity, *others)}
    return {
        **({"plug_ins": plugged} if plugged else {}),
        "python": platform.python_version(),
        "platform": f"{platform.system()}-{platform.machine()}",
        "packages": packages,
        "seat": rests if others else identity.context.as_json(),
    }


def _judge(inputs: Inputs) -> dict[str, str]:
    """What the judging model is asked, and the labelled texts it is tried on, by hash."""
    if inputs.gate.judge is None:
        return {}
    labelled = digest([one.as_json() for one in inputs.labelled])
    return {"judge": signature("judge@1", wording=WORDING, labelled=labelled)}


def _plain(rendered: Rendered) -> JsonValue:
    return rendered if isinstance(rendered, str) else [message.as_json() for message in rendered]


def _adapter(inputs: Inputs, arm: str, cards: Mapping[str, dict[str, JsonValue]]) -> AdapterIdentity:
    files = adapter_files(inputs.adapters[arm])
    model = inputs.gate.arms.all()[arm].model
    if files is None and model not in cards:
        raise UsageError(
            f"adapter of {arm}: {inputs.adapters[arm]} is missing here, and the seat lists no adapter {model!r}",
            next_step=f"load the adapter into the seat as {model!r}, or make its files readable here",
        )
    return AdapterIdentity(files=files, card=cards.get(model))


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
