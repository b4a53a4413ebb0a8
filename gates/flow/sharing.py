"""Sharing a run without other people's prose: the record as it is, matched words replaced by how many they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from gates.errors import TamperedError, UsageError
from gates.flow.review import Reading
from gates.measure.figures import Measurements, NearRun, Run, VoiceFigures
from gates.measure.memorisation import Excerpt
from gates.record.body import said
from gates.record.chain import read
from gates.record.files import write_once
from gates.record.ledger import Ledger, Stored
from gates.record.review_list import Key, matched
from gates.record.share import MANIFEST, TEXTS, Share, SharedText, read_texts
from gates.record.signoff import signoffs
from gates.record.store import RunStore, runs
from gates.records import Generation, canonical, sha256
from gates.report.html.model import Page, Place
from gates.text import prose_words

AS_THEY_ARE = ("measurements.json", "verdict.json", "report.md", "sessions.jsonl")


PAGE = "report.html"
"""The page of a shared run, which is made from the rest and lies beside it."""


def share(reading: Reading, folder: Path) -> Share:
    """Write a folder with the run's record and without source text; it can be verified as far as that goes.

    Readers' marks and votes stay behind, for their notes may quote. Raises UsageError when the folder holds anything
    but what is to be shared: sharing that was interrupted goes on.
    """
    run = reading.run
    home = f"{run.store.gate}/{run.store.number:03d}"
    texts = [shared_text(one, runs_in(reading, one)) for one in reading.generations.values()]
    data = b"".join(canonical(text.as_json()) + b"\n" for text in texts)
    # As it is at one moment: other processes may add to it.
    source = Ledger(run.workspace / "prereg").source()
    made = _share_of(home, texts, sha256(data), read(source))
    files = {Path("prereg", "ledger.jsonl"): source.lines, Path("prereg", "ledger.head"): source.head}
    files |= {path.relative_to(run.workspace): path.read_bytes() for path in _as_they_are(run.workspace, run.store)}
    files |= {Path("reports", home, TEXTS): data, Path(MANIFEST): canonical(made.as_json())}
    if folder.exists() and (not folder.is_dir() or not _held(folder) <= {*files, Path("reports", home, PAGE)}):
        raise UsageError(f"{folder}: it is there and not empty", next_step="name a new folder")
    for path, content in files.items():
        write_once(folder / path, content)
    return made


def _as_they_are(workspace: Path, store: RunStore) -> Iterator[Path]:
    """The files that are shared byte for byte, but for the ledger's."""
    prereg = workspace / "prereg"
    yield from (store.folder / name for name in AS_THEY_ARE)
    for folder in (prereg / "seals", prereg / "signatures", store.folder / "signoffs"):
        yield from (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))


def _held(folder: Path) -> set[Path]:
    """The files in a folder, without those that a killed writer has left half done."""
    return {path.relative_to(folder) for path in folder.rglob("*") if not path.is_dir() and path.suffix != ".part"}


def _share_of(run: str, texts: Sequence[SharedText], texts_sha256: str, entries: Sequence[Stored]) -> Share:
    gates = dict.fromkeys(stored.entry.gate for stored in entries)
    known = [f"{gate}/{said(started, 'run', int):03d}" for gate in gates for started, _ in runs(entries, gate)]
    return Share(
        run=run,
        texts_sha256=texts_sha256,
        texts=len(texts),
        omitted=sum(text.omitted for text in texts),
        withheld=tuple(name for name in known if name != run),
    )


def shared_page(page: Page) -> Page:
    """The page of a run without source text: matched words are their count, and no text stands around a match.

    Prompts that begin a training passage for the model to go on with are left out, too.
    """
    by_key: dict[Key, list[Run | NearRun]] = {}
    for arm, measured in page.measurements.arms.items():
        for _, some in matched(measured):
            for run in some:
                by_key.setdefault((arm, run.prompt, run.seed), []).append(run)
    generations = tuple(
        one.model_copy(update={"text": shared_text(one, by_key.get(one.key, ())).text}) for one in page.generations
    )
    left_out = [
        replace(one, answer=Excerpt("", _count(one.length), ""), changed=(), places=tuple(map(_bare, one.places)))
        for one in page.matched
    ]
    return replace(page, generations=generations, matched=tuple(left_out), prompts=_own_prompts(page))


def _bare(place: Place) -> Place:
    return replace(place, text=None)


def _own_prompts(page: Page) -> dict[int, str]:
    """The prompts, those apart that give first words of training passages away."""
    probe = page.sealed.seal.gate.probe
    if probe is None or probe.kind != "first-words":
        return dict(page.prompts)
    voices = [arm.voice for arm in page.measurements.arms.values() if isinstance(arm.voice, VoiceFigures)]
    # One influence an open prompt; the probe's are numbered after them.
    kept = len(voices[0].influence) if voices else 0
    return {n: text if n < kept else "[the first words of a training passage]" for n, text in page.prompts.items()}


def runs_in(reading: Reading, generation: Generation) -> list[Run | NearRun]:
    """The matched runs of one generation."""
    found = matched(reading.run.measurements.arms[generation.arm])
    return [run for _, some in found for run in some if (run.prompt, run.seed) == generation.key[1:]]


def shared_text(generation: Generation, found: Iterable[Run | NearRun]) -> SharedText:
    """A generation with each matched run replaced by its count; such a text keeps its words and no punctuation."""
    barred = {place for run in found for place in range(run.start, run.start + run.length)}
    return SharedText(
        arm=generation.arm,
        prompt=generation.prompt,
        seed=generation.seed,
        finish_reason=generation.finish_reason,
        error=generation.error,
        text=_without(generation.text, barred) if barred else generation.text,
        text_sha256=sha256(generation.text.encode()),
        omitted=len(barred),
    )


def _without(text: str, barred: set[int]) -> str:
    kept: list[str] = []
    left_out = 0
    for place, word in enumerate([*prose_words(text, case="keep"), ""]):
        if place in barred:
            left_out += 1
            continue
        if left_out:
            kept.append(_count(left_out))
            left_out = 0
        kept.append(word)
    return " ".join(kept).rstrip()


def _count(words: int) -> str:
    return f"[{words} words]"


def check_shared(store: RunStore, ledger: Ledger, measurements: Measurements, shared: Share) -> str:
    """Check what a shared run holds in place of its generations; returns what could not be derived from it.

    Raises TamperedError for texts or sign-offs that are not what their hashes say.
    """
    signoffs(store, ledger.entries())
    texts = list(read_texts(store.folder, shared))
    _check_omitted(store.folder, texts, measurements)
    if shared != _share_of(f"{store.gate}/{store.number:03d}", texts, shared.texts_sha256, ledger.entries()):
        raise TamperedError(f"{MANIFEST}: it does not say what is here and what is not")
    whole = sum(text.omitted == 0 for text in texts)
    return (
        f"{store.folder}: shared without {shared.omitted} matched words: measurements, marks and sign-offs are not "
        f"derived again; {whole} of {len(texts)} texts are whole, and nothing here shows that they are those of the run"
    )


def _check_omitted(folder: Path, texts: Sequence[SharedText], measurements: Measurements) -> None:
    """What is left out must be what the measurements say was matched, text by text."""
    expected: dict[tuple[str, int, int], set[int]] = {}
    for arm, measured in measurements.arms.items():
        for _, some in matched(measured):
            for run in some:
                places = expected.setdefault((arm, run.prompt, run.seed), set())
                places.update(range(run.start, run.start + run.length))
    for text in texts:
        key = (text.arm, text.prompt, text.seed)
        if text.omitted != len(expected.get(key, ())):
            raise TamperedError(f"{folder / TEXTS}: of {key} {text.omitted} words are left out, matched are others")
    missing = expected.keys() - {(text.arm, text.prompt, text.seed) for text in texts}
    if missing or len({(text.arm, text.prompt, text.seed) for text in texts}) != len(texts):
        raise TamperedError(f"{folder / TEXTS}: texts are missing, or stand there twice")
