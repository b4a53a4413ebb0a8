"""Everything a gate rests on, loaded and verified: beats, texts, frame, adapter paths; all that is missing at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TypeVar

from gates.corpora.texts import Document, load_split, resolve
from gates.errors import GatesError, UsageError
from gates.flow.axes import axes_of
from gates.flow.floors import rules_of
from gates.flow.roles import check_roles
from gates.judge.floors import RULES, FloorRule
from gates.measure.damage import AXES, Axis
from gates.measure.delta import Frame, make_frame
from gates.spec.asking import Candidate, Control
from gates.spec.judging import Labelled
from gates.spec.labelled import read_labelled
from gates.spec.load import load_gate
from gates.spec.prompts import Rendered, Shown, all_shown, read_beats, render
from gates.spec.schema import NOT_DECLARED, Gate
from gates.spec.workspace import adapter_path, find_workspace, resolve_inside
from gates.text import letters_lost, prose_words, words

T = TypeVar("T")

Texts = tuple[Document, ...]


@dataclass(frozen=True)
class Inputs:
    """A gate with its beats, its texts by role, frame, adapters' paths and damage axes, all there and verified."""

    path: Path
    workspace: Path
    cache: Path
    gate: Gate
    beats: tuple[str, ...]
    train: Texts
    heldout: Texts
    reference: Texts
    imposters: Mapping[str, Texts]
    frame: Frame
    adapters: Mapping[str, Path]
    axes: Mapping[str, Axis] = field(default_factory=lambda: AXES)
    rules: Mapping[str, FloorRule] = field(default_factory=lambda: RULES)
    probe: tuple[str, ...] = ()
    protected: Mapping[str, Texts] = field(default_factory=dict)
    labelled: tuple[Labelled, ...] = ()

    @property
    def prereg(self) -> Path:
        """The folder of seals and ledger."""
        return self.workspace / "prereg"

    @property
    def reports(self) -> Path:
        """The folder of runs."""
        return self.workspace / "reports"

    @cached_property
    def shown(self) -> tuple[Shown, ...]:
        """Every prompt by its number: the open beats, then the probe's."""
        return all_shown(self.gate, self.beats, self.probe)

    def prompt(self, arm: str, number: int) -> Rendered:
        """What an arm is shown as prompt of that number."""
        about, (beat, prompts) = self.gate.arms.all()[arm], self.shown[number]
        return render(prompts, beat, None if isinstance(about, Candidate) else about.system)

    def texts(self) -> dict[str, Texts]:
        """Every text by its role."""
        named = {f"imposters.{name}": texts for name, texts in self.imposters.items()}
        named |= {f"protected.{name}": texts for name, texts in self.protected.items()}
        return {"train": self.train, "heldout": self.heldout, "reference": self.reference, **named}


@dataclass
class Findings:
    """What a check found: `missing` makes a gate unfit to seal, `warnings` are to be read; `beats` as far as read."""

    missing: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    beats: tuple[str, ...] = ()

    def attempt(self, load: Callable[[], T]) -> T | None:
        """The result of `load`, or None with its error kept."""
        try:
            return load()
        except GatesError as error:
            if str(error) not in self.missing:
                self.missing.append(str(error))
            return None


def load_inputs(path: Path, cache: Path) -> Inputs:
    """Load a gate with everything it rests on. Raises UsageError listing all that is missing or wrong."""
    gate = load_gate(path)
    findings = Findings()
    inputs = examine(path, cache, gate, findings)
    if inputs is None or findings.missing:
        raise UsageError(
            "\n".join([f"{path}: the gate cannot be used yet:", *findings.missing]),
            next_step=f"gates check {path}",
        )
    return inputs


def examine(path: Path, cache: Path, gate: Gate, findings: Findings, *, adapters: bool = True) -> Inputs | None:
    """Load what can be loaded and note in `findings` all that cannot; None when anything is missing.

    Without `adapters` these are not looked for: a finished run is measured again from texts and generations alone.
    """
    workspace = find_workspace(path)
    beats = findings.attempt(
        lambda: read_beats(resolve_inside(workspace, path, gate.prompts.file, field="prompts.file"))
    )
    findings.beats = beats or ()
    probe = _probe(path, workspace, gate, findings)
    places = _adapters(path, workspace, gate, findings) if adapters else {}
    labelled = _labelled(path, workspace, gate, findings)
    axes = findings.attempt(lambda: axes_of(gate))
    rules = findings.attempt(lambda: rules_of(gate))

    def split(ref: str) -> Texts | None:
        return findings.attempt(lambda: load_split(workspace, cache, ref))

    train, heldout = split(gate.corpora.train), split(gate.corpora.heldout)
    references = [split(ref) for ref in gate.corpora.reference]
    imposters = {ref: split(ref) for ref in gate.corpora.imposters}
    protected = {ref: split(ref) for ref in gate.corpora.protected}
    # Roles are told apart by the manifests, so that a clash shows even while texts are missing.
    findings.attempt(lambda: check_roles(workspace, gate))
    if findings.missing or beats is None or train is None or heldout is None or axes is None or rules is None:
        return None
    reference = tuple(document for texts in references if texts for document in texts)
    frame = findings.attempt(lambda: frame_of(reference, gate.voice.mfw))
    if frame is None:
        return None
    inputs = Inputs(
        path=path,
        workspace=workspace,
        cache=cache,
        gate=gate,
        beats=beats,
        train=train,
        heldout=heldout,
        reference=reference,
        imposters={ref: texts for ref, texts in imposters.items() if texts},
        frame=frame,
        adapters=places,
        axes=axes,
        rules=rules,
        probe=probe,
        labelled=labelled,
        protected={ref: texts for ref, texts in protected.items() if texts},
    )
    findings.warnings.extend(
        f"corpus {name}: {count} texts have no fixed hash yet, so the gate cannot be sealed: "
        f"gates corpora fetch {name} --pin"
        for name, count in _unpinned(inputs).items()
    )
    _note_size(inputs, findings)
    _note_first_words(inputs, findings)
    return inputs


def refuse_unpinned(inputs: Inputs) -> None:
    """Raise UsageError for a corpus whose manifest does not fix its texts by hash: it may be checked, not sealed."""
    for name, count in _unpinned(inputs).items():
        raise UsageError(
            f"corpus {name}: {count} texts have no fixed hash yet", next_step=f"gates corpora fetch {name} --pin"
        )


def _unpinned(inputs: Inputs) -> dict[str, int]:
    """How many texts have no fixed hash, by corpus; only corpora with any."""
    corpora = inputs.gate.corpora
    refs = (corpora.train, corpora.heldout, *corpora.reference, *corpora.imposters, *corpora.protected)
    manifests = [resolve(inputs.workspace, ref)[0] for ref in refs]
    return {manifest.name: len(manifest.unpinned) for manifest in manifests if manifest.unpinned}


def frame_of(reference: Texts, mfw: int) -> Frame:
    """The frame of the reference texts: their most frequent words with mean and sd."""
    return make_frame([(document.author, words(document.text)) for document in reference], mfw=mfw)


def lost_letters(inputs: Inputs) -> dict[str, dict[str, float]]:
    """Share of letters in [0, 1] that the tokeniser loses on each text, by role and file."""
    return {role: {d.name: letters_lost(d.text) for d in texts} for role, texts in inputs.texts().items()}


def _adapters(path: Path, workspace: Path, gate: Gate, findings: Findings) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for name, arm in gate.arms.all().items():
        if not isinstance(arm, Candidate | Control) or arm.adapter is None:
            continue
        place = findings.attempt(partial(adapter_path, workspace, path, arm.adapter, field=f"adapter of {name}"))
        if place is None:
            continue
        found[name] = place
        if not place.exists():
            missing = f"adapter of {name}: {place} is missing here"
            if gate.embedded:
                findings.missing.append(f"{missing}; the embedded seat loads it from there")
            else:
                findings.warnings.append(f"{missing}: its identity would rest on the seat's model card alone (weaker)")
    return found


def _probe(path: Path, workspace: Path, gate: Gate, findings: Findings) -> tuple[str, ...]:
    """The probe's beats or first words; none without a probe."""
    asked = gate.probe
    if asked is None:
        return ()
    return findings.attempt(lambda: read_beats(resolve_inside(workspace, path, asked.file, field="probe.file"))) or ()


def _labelled(path: Path, workspace: Path, gate: Gate, findings: Findings) -> tuple[Labelled, ...]:
    """The labelled texts of the gate's judge; none without a judge."""
    asked = gate.judge
    if asked is None:
        return ()
    file = partial(resolve_inside, workspace, path, asked.labelled, field="judge.labelled")
    return findings.attempt(lambda: read_labelled(file())) or ()


def _note_first_words(inputs: Inputs, findings: Findings) -> None:
    """Warn of first words that stand in no training passage: nobody could recite what comes after them."""
    if inputs.gate.probe is None or inputs.gate.probe.kind != "first-words":
        return
    passages = [f" {' '.join(prose_words(document.text))} " for document in inputs.train]
    strange = sum(all(f" {' '.join(prose_words(first))} " not in text for text in passages) for first in inputs.probe)
    if strange:
        findings.warnings.append(
            f"probe.file: {strange} of {len(inputs.probe)} first words stand in no text of the train split"
        )


# About 48 words: a model that ends its texts at all seldom ends one within so few.
SHORT = 64


def _note_size(inputs: Inputs, findings: Findings) -> None:
    gate = inputs.gate
    if gate.declarations.data_seen == NOT_DECLARED:
        findings.warnings.append(
            "declarations.data_seen is not declared: say what texts by these arms had been seen, and by whom, or none"
        )
    # English prose runs at about 0.75 words a token; a base that stops early writes fewer.
    most = 0.75 * len(inputs.beats) * gate.sampling.max_tokens
    if gate.voice.words_per_seed > 0.7 * most:
        findings.warnings.append(
            f"voice.words_per_seed = {gate.voice.words_per_seed} is over 70 % of the {most:.0f} words that "
            f"{len(inputs.beats)} prompts of {gate.sampling.max_tokens} tokens can give at most: a seed that falls "
            "short makes the run INVALID"
        )
    if "ran_on" in gate.damage.named() and gate.sampling.max_tokens < SHORT:
        findings.warnings.append(
            f"damage.ran_on: few texts end within sampling.max_tokens = {gate.sampling.max_tokens}; where every text "
            f"is cut, all arms are at 1 and the axis says nothing: allow {SHORT} or more, or leave ran_on out"
        )
    findings.missing.extend(
        f"damage.{name} needs at least {axis.fewest_beats} beats, {gate.prompts.file} has {len(inputs.beats)}"
        for name, axis in inputs.axes.items()
        if len(inputs.beats) < axis.fewest_beats
    )
