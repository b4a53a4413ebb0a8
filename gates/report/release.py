"""What goes with a released adapter: the caveats its readers must see, its README block, and how it is served."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import PurePath

from gates.judge.axes import AxisVerdict
from gates.judge.verdict import Verdict
from gates.measure.figures import ArmMeasurements, Measurements, MemorisationFigures, Unmeasured, VoiceFigures
from gates.record.release import Release
from gates.record.rescore import before
from gates.record.seal import SealOnDisk
from gates.record.signoff import Serving, SignOff
from gates.record.verdicts import RescoreVerdict
from gates.records import Outcome
from gates.report.markdown import standing
from gates.report.marks import code, plain, table
from gates.report.wording import SYMBOLS, caution, in_order, is_imported, one_line, threshold_of, value_of
from gates.seat.operate.alias import alias_entry
from gates.seat.operate.compose import lora_module
from gates.spec.schema import Gate

BEGIN, END = "<!-- gates: begin -->", "<!-- gates: end -->"
"""What the block stands between in an adapter's README."""


def caveats(
    sealed: SealOnDisk, measurements: Measurements, verdict: Verdict, arm: str, attempts: int
) -> tuple[str, ...]:
    """What a reader of a decision on `arm` must know, passed axes included; each a sentence with its figures."""
    judged = verdict.candidates[arm]
    axes = in_order(judged.axes)
    found = [f"{axis.axis}: {axis.outcome.value}: {axis.reason}" for axis in axes if axis.outcome is not Outcome.PASS]
    if sealed.seal.runs_before or is_imported(verdict):
        found.insert(0, f"the rule is {standing(sealed, verdict)}")
    if attempts > 1:
        found.append(f"the gate has had {attempts} runs: the chance that one of them passes grows with each")
    if verdict.attempts is not None and verdict.attempts.other_gates:
        found += verdict.attempts.sentences()
    found += _memorised(measurements, arm)
    voice = measurements.arms[arm].voice
    found += [f"voice: {note}" for note in voice.notes] if isinstance(voice, VoiceFigures) else []
    found += [f"{axis.axis}: {warning}" for axis in axes for warning in axis.warnings]
    identity = sealed.seal.binding.adapters.get(arm)
    if identity is None or identity.files is None:
        found.append("the adapter's bytes were not read: its identity rests on the seat's model card alone")
    elif is_imported(verdict):
        found.append("the adapter's bytes are declared: nothing shows that they wrote the texts")
    return (*found, *verdict.warnings)


def _memorised(measurements: Measurements, arm: str) -> Iterator[str]:
    figures = measurements.arms[arm].memorisation
    if figures is None:
        yield "memorisation was not judged by this gate"
    if not isinstance(figures, MemorisationFigures) or not figures.hits:
        return
    own = figures.self_collision
    yield (
        f"memorisation: {figures.hits} of {figures.generations} texts ({figures.rate:.3f}) repeat {figures.n} words "
        f"in a row of the training text; the author's own unseen text does in {own.hits} of {own.windows} "
        f"({own.rate:.3f}): {_times(figures)}; the base in {_rate(measurements.arms.get('base'))}; "
        f"the longest run is {figures.longest} words, the author's own unseen text shares {own.longest}"
    )


def _times(figures: MemorisationFigures) -> str:
    if figures.ratio_low is None:
        return "the ratio is undefined"
    limits = f"95 % limits {figures.ratio_low:.1f} and " + (
        "none" if figures.ratio_high is None else f"{figures.ratio_high:.1f}"
    )
    return f"{figures.ratio:.1f}× the author ({limits})" if figures.ratio is not None else f"no finite ratio ({limits})"


def _rate(base: ArmMeasurements | None) -> str:
    figures = None if base is None else base.memorisation
    if figures is None or isinstance(figures, Unmeasured):
        return "no measured share"
    return f"{figures.hits} of {figures.generations} ({figures.rate:.3f})"


def readme_block(gate: Gate, verdict: Verdict, release: Release) -> str:
    """The block for the adapter's README, between its markers; `verdict` is the one that was signed."""
    signed, last = release.signed, release.signed[-1]
    axes = in_order(verdict.candidates[last.arm].axes)
    lines = [
        BEGIN,
        f"## Release gate: {plain(gate.name)}",
        "",
        f"{plain(gate.question)}",
        "",
        f"{_headline(verdict, last)}, {plain(release)}:",
        "",
        *(f"- {plain(one.by)}, {plain(one.at)}, {_decided(one)} (key {code(one.key)})" for one in signed),
        "",
        *_side_by_side(last),
        *table(["axis", "verdict", "figure", "against"], [_row(axis) for axis in axes]),
        "What a reader must know:",
        "",
        *([f"- {plain(sentence)}" for sentence in last.caveats] or ["- nothing beyond the figures above"]),
        *(f"- marked bad by {plain(one.by)}: {plain(d.note or d.item[:10])}" for one in signed for d in one.doubts),
        "",
        "It was judged in this form, and in no other:",
        "",
        *table(["what", "which"], _form(last)),
        f"To check it: `gates verify --adapter PATH` in the workspace of gate {plain(gate.name)}.",
        END,
    ]
    return "\n".join(lines) + "\n"


def _headline(verdict: Verdict, last: SignOff) -> str:
    """The outcome that is signed, and at once every verdict on the same texts that says otherwise."""
    other = [
        f"{_first(one)}**{_said(one.outcome)}** by {plain(one)} ({plain(one.standing.name)})" for one in last.others
    ]
    differ = [told for told, one in zip(other, last.others, strict=True) if one.outcome is not last.signed_outcome]
    if last.rescored is None:
        return ", but ".join([f"**{_said(last.outcome)}{caution(verdict)}**", *differ])
    if last.outcome is not last.signed_outcome:
        differ.insert(0, f"**{_said(last.outcome)}** by the run's own verdict")
    signed = f"{_first(last.rescored)}**{_said(last.signed_outcome)}{caution(verdict)}** by {plain(last.rescored)}"
    return ", but ".join([signed, *differ])


def _first(one: RescoreVerdict) -> str:
    """What must be said before the outcome of a re-score."""
    return f"{plain(before(one.first).strip())} " if one.first else ""


def _side_by_side(last: SignOff) -> list[str]:
    """Every verdict on the same texts, the signed one marked; nothing where there is one alone."""
    rows = [["the run's own", _said(last.outcome), "→" if last.rescored is None else ""]]
    found = [*([last.rescored] if last.rescored else []), *last.others]
    rows += [
        [plain(one), f"{_first(one)}{_said(one.outcome)} ({plain(one.standing)})", "→" if one is last.rescored else ""]
        for one in sorted(found, key=lambda one: one.folder)
    ]
    return table(["verdict on the same texts", "says", "signed"], rows) if found else []


def _said(outcome: Outcome) -> str:
    return f"{SYMBOLS[outcome]} {outcome.value}"


def _decided(one: SignOff) -> str:
    return f"{'ships with a waiver' if one.decision == 'waive' else 'ships'}: {plain(one.reason)}"


def _row(axis: AxisVerdict) -> list[str]:
    return [plain(axis.axis), _said(axis.outcome), value_of(axis), threshold_of(axis)]


def _form(signed: SignOff) -> list[list[str]]:
    form = signed.serving
    sampling = form.sampling
    return [
        ["seal", code(signed.seal)],
        ["verdict", code(signed.verdict_sha256)],
        *([["re-score", code(signed.rescored.rescore_sha256)]] if signed.rescored else []),
        *([f"adapter {plain(name)}", code(value)] for name, value in (form.adapter.files or {}).items()),
        ["base", f"{code(_base(form))} card {code(form.base_card_sha256)}"],
        ["server", code(f"{form.server_version} {form.fingerprint}")],
        ["sampling", code(f"temperature {sampling.temperature:g}, top_p {sampling.top_p:g}, "
                          f"top_k {sampling.top_k}, min_p {sampling.min_p:g}, max_tokens {sampling.max_tokens}")],
    ]  # fmt: skip


def _base(form: Serving) -> str:
    """The base's repository, or its file without the folders of the server that held it."""
    root = str(form.base.get("root") or form.base.get("id"))
    return PurePath(root).name if root.startswith("/") else root


def compose_line(gate: Gate, arm: str) -> str:
    """What the stack's compose file lists, so that the adapter is there after every restart."""
    about = gate.arms.candidates[arm]
    module = lora_module(one_line(about.model), one_line(PurePath(about.adapter).name))
    # One word to compose, which splits as a shell does and fills in what follows a dollar sign.
    return f"--lora-modules {shlex.quote(module).replace('$', '$$')}"


def alias_of(gate: Gate, arm: str, alias: str) -> str:
    """LiteLLM's entries that route `alias` to the released adapter, one a seat; an embedded seat's address is left to
    fill in.
    """
    seats = [(seat.base_url, seat.api_key_env) for seat in gate.servers] or [("http://SEAT:PORT/v1", None)]
    return "".join(alias_entry(alias, gate.arms.candidates[arm].model, url, key) for url, key in seats)
