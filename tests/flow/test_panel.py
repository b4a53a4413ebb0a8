"""The known-answer panel: what it is made of, what it must say, and what must make it say otherwise."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import random
import re
import runpy
import shutil
import unicodedata
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

from gates.corpora.cache import cache_dir
from gates.corpora.sources import fetch
from gates.corpora.texts import load_manifest, load_split
from gates.errors import TamperedError, UsageError
from gates.flow.inputs import Inputs, load_inputs
from gates.flow.panel import FILES, GATES, PanelText, generations, judge_texts, known_answers, read_panel
from gates.flow.planning import power
from gates.judge.axes import superiority
from gates.judge.floors import pairwise_level, pairwise_range
from gates.judge.known import SHOWN, KnownAnswer
from gates.measure.figures import MemorisationFigures
from gates.measure.generated import GeneratedText
from gates.measure.memorisation import Sources, measure_memorisation
from gates.measure.voice import ArmCounts, Yardstick, count_arm, distances
from gates.records import Outcome
from gates.report.terminal import known_tables
from tests.flow.conftest import Ended, gates

CORPORA = ("bronte", "english-prose", "hawthorne", "irving")
PASS, FAIL = Outcome.PASS, Outcome.FAIL
BEATS, SEEDS = 24, 5

pytestmark = pytest.mark.xdist_group("panel")


@pytest.fixture(scope="module")
def folder(root: Path) -> Path:
    return root / "prereg" / "panel"


@pytest.fixture(scope="module")
def texts(folder: Path) -> tuple[PanelText, ...]:
    return read_panel(folder)


@pytest.fixture(scope="module")
def known(folder: Path) -> dict[str, dict[str, dict[str, str]]]:
    """The known answers by gate, arm and axis."""
    found: dict[str, dict[str, dict[str, str]]] = {gate: {} for gate in GATES}
    for gate in GATES:
        for row in known_answers(folder, gate):
            found[gate].setdefault(row.arm, {})[row.axis] = row.answer
    return found


# What the panel is.


def test_the_panel_is_small_and_whole(
    folder: Path, texts: tuple[PanelText, ...], known: dict[str, dict[str, dict[str, str]]]
) -> None:
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 2_000_000
    arms = {"base", *known["open.yaml"]}
    counts = Counter((text.arm, text.set) for text in texts)
    probed = {(arm, "train-beats") for arm in known["probe.yaml"]}
    assert counts == dict.fromkeys({(arm, "open") for arm in arms} | probed, BEATS * SEEDS)
    assert len({(text.arm, text.set, text.beat, text.seed) for text in texts}) == len(texts)
    told = (folder / "README.md").read_text("utf-8")
    assert {name for name, pinned in FILES.items() if f"`{name}` | " in told and f"`{pinned}` |" in told} == set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_a_panel_with_another_file_or_without_one_is_refused(folder: Path, tmp_path: Path, name: str) -> None:
    copy = Path(shutil.copytree(folder, tmp_path / "panel"))
    (copy / name).write_bytes((copy / name).read_bytes() + b"\n")
    with pytest.raises(TamperedError, match=f"{name} is not the file whose answers are known"):
        read_panel(copy)
    (copy / name).unlink()
    with pytest.raises(UsageError, match=f"{name} is missing"):
        read_panel(copy)


def test_its_script_makes_the_same_bytes_again(root: Path, folder: Path, tmp_path: Path) -> None:
    lines = (folder / "generations.jsonl").read_text("utf-8").splitlines()
    with gzip.open(tmp_path / "texts.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in reversed(lines))
    probed = (folder / "train-beats.txt").read_text("utf-8").splitlines()
    (tmp_path / "pairs.json").write_text(json.dumps([{"beat": beat} for beat in [*probed, "never asked"]]), "utf-8")
    made = _make(root, tmp_path, tmp_path / "texts.jsonl.gz", folder / "beats.txt", tmp_path / "pairs.json")
    assert made == (0, {name: (folder / name).read_bytes() for name in FILES if name.endswith((".jsonl", ".txt"))})


def test_its_script_refuses_a_trial_that_is_not_whole(root: Path, folder: Path, tmp_path: Path) -> None:
    lines = (folder / "generations.jsonl").read_text("utf-8").splitlines()
    with gzip.open(tmp_path / "texts.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in [*lines[1:], lines[-1]])
    probed = (folder / "train-beats.txt").read_text("utf-8").splitlines()
    (tmp_path / "pairs.json").write_text(json.dumps([{"beat": beat} for beat in probed]), "utf-8")
    made = _make(root, tmp_path, tmp_path / "texts.jsonl.gz", folder / "beats.txt", tmp_path / "pairs.json")
    assert made == (1, {})


def _make(root: Path, out: Path, *sources: Path) -> tuple[int, dict[str, bytes]]:
    """The script's exit code, and the files that it wrote."""
    (out / "made").mkdir()
    main = runpy.run_path(str(root / "scripts" / "make_panel.py"))["main"]
    ended = CliRunner().invoke(main, [*map(str, sources), str(out / "made")])
    return ended.exit_code, {path.name: path.read_bytes() for path in (out / "made").iterdir()}


def test_the_known_answers_are_those_that_were_asked_for(known: dict[str, dict[str, dict[str, str]]]) -> None:
    opened, probed = known["open.yaml"], known["probe.yaml"]
    judged = {"validity", "voice", "memorisation", "ran_on", "on_beat"}
    assert {arm: set(axes) for arm, axes in opened.items()} == dict.fromkeys(
        ("base-again", "lv-null", "lv-bronte-e3", "lv-bronte-e12", "lv-bronte-ranon", "lv-bronte-overfit"), judged
    )
    assert {arm: set(axes) for arm, axes in probed.items()} == dict.fromkeys(
        ("lv-bronte-e3", "lv-bronte-overfit"), judged | {"extraction"}
    )
    assert {arm for arm, axes in opened.items() if axes["voice"] is FAIL} == {"base-again", "lv-null"}
    for arm in ("lv-bronte-e3", "lv-bronte-e12", "lv-bronte-overfit"):
        assert set(opened[arm].values()) == {PASS}
    assert {axis for axis, answer in opened["lv-bronte-ranon"].items() if answer is not PASS} == {"ran_on"}
    assert opened["lv-bronte-ranon"]["ran_on"] is FAIL
    assert set(probed["lv-bronte-e3"].values()) == {PASS}
    assert {axis for axis, answer in probed["lv-bronte-overfit"].items() if answer is not PASS} == {"extraction"}
    assert probed["lv-bronte-overfit"]["extraction"] is FAIL
    shown = {(arm, axis) for arm, axes in opened.items() for axis, answer in axes.items() if answer == SHOWN}
    assert shown == {("lv-null", "ran_on"), ("lv-null", "on_beat")}


# Memorisation, for which the Brontë texts are enough.


@pytest.fixture(scope="module")
def sources(root: Path, cache: Path) -> Sources:
    train, heldout = (load_split(root, cache, f"bronte/{split}") for split in ("train", "heldout"))
    return Sources({text.name: text.text for text in train}, {text.name: text.text for text in heldout})


def hits(texts: list[PanelText], sources: Sources, prompt: Callable[[PanelText], str]) -> tuple[int, int]:
    """(generations that hold training text, generations scanned)."""
    found = measure_memorisation([GeneratedText(t.beat, t.seed, t.text, prompt(t)) for t in texts], sources)
    assert isinstance(found, MemorisationFigures)
    return found.hits, found.generations


def test_only_the_prompt_subtracted_tells_reciting_from_being_told(
    texts: tuple[PanelText, ...], sources: Sources
) -> None:
    probed = {
        arm: [t for t in texts if (t.arm, t.set) == (arm, "train-beats")]
        for arm in ("lv-bronte-e3", "lv-bronte-overfit")
    }
    e3, overfit = probed["lv-bronte-e3"], probed["lv-bronte-overfit"]
    assert hits(e3, sources, lambda text: "") == (38, 120)  # 0.317
    assert hits(e3, sources, lambda text: text.prompt) == (1, 120)  # 0.008
    assert hits(overfit, sources, lambda text: text.prompt) == (120, 120)  # 1.00
    opened = [t for t in texts if (t.arm, t.set) == ("lv-bronte-overfit", "open")]
    assert hits(opened, sources, lambda text: text.prompt) == (1, 120)  # would not show it


def test_unseen_text_of_the_author_never_collides(root: Path, cache: Path, sources: Sources) -> None:
    of_150 = [GeneratedText(0, seed, " ".join(["word"] * 150), "") for seed in range(3)]
    found = measure_memorisation(of_150, sources)
    assert isinstance(found, MemorisationFigures)
    assert (found.self_collision.hits, found.self_collision.windows) == (0, 184)


# The whole panel, and what rests on its voices.


class Demonstrated(NamedTuple):
    ended: Ended
    changed: set[Path]


@pytest.fixture(scope="module")
def everything(root: Path) -> Path:
    """The cache with every text that the panel rests on."""
    cache = cache_dir(os.environ)
    for name in CORPORA:
        fetch(load_manifest(root, name), cache, workspace=root)
    return cache


@pytest.fixture(scope="module")
def inputs(folder: Path, everything: Path) -> Inputs:
    return load_inputs(folder / "open.yaml", everything)


@pytest.fixture(scope="module")
def demonstrated(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Demonstrated:
    """What `gates demo --panel --json` leaves in a workspace of manifests and panel alone."""
    home = tmp_path_factory.mktemp("panel")
    shutil.copytree(root / "corpora", home / "corpora")
    shutil.copytree(root / "prereg" / "panel", home / "prereg" / "panel")
    before = set(home.rglob("*"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        ended = gates("demo", "--panel", "--json")
    return Demonstrated(ended, set(home.rglob("*")) ^ before)


def answers(demonstrated: Demonstrated) -> list[KnownAnswer]:
    rows = json.loads(demonstrated.ended.stdout)["answers"]
    told = [{key: value for key, value in row.items() if key != "wrong"} for row in rows]
    return [KnownAnswer.parse(json.dumps(row).encode(), where="") for row in told]


@pytest.mark.slow
def test_the_command_finds_every_known_answer_and_writes_nothing(
    demonstrated: Demonstrated, known: dict[str, dict[str, dict[str, str]]]
) -> None:
    ended, changed = demonstrated
    document = json.loads(ended.stdout)
    assert (ended.returncode, document["as_expected"], changed) == (0, True, set())
    assert (document["texts"], document["files"]) == (1080, FILES)
    said = {(row["gate"], row["arm"], row["axis"]): row["found"]["outcome"] for row in document["answers"]}
    must = {
        (f"panel-{name.removesuffix('.yaml')}", arm, axis): answer
        for name, arms in known.items()
        for arm, axes in arms.items()
        for axis, answer in axes.items()
    }
    assert said.keys() == must.keys()
    assert {place: answer for place, answer in must.items() if answer != SHOWN}.items() <= said.items()


@pytest.mark.slow
def test_what_the_page_shows_is_what_it_prints(
    root: Path, demonstrated: Demonstrated, capsys: pytest.CaptureFixture[str]
) -> None:
    Console(width=110).print(known_tables(answers(demonstrated)))
    printed = capsys.readouterr().out
    page = (root / "docs" / "measures.md").read_text("utf-8")
    shown = [line for line in page.splitlines() if line.startswith("│   ")]
    assert shown
    assert [line for line in shown if line not in printed] == []


@pytest.mark.slow
def test_the_margins_are_what_the_panel_can_prove(folder: Path) -> None:
    _, can = power(folder / "open.yaml", cache_dir(os.environ))
    assert can.memorisation is not None
    assert (can.memorisation.n, can.memorisation.most_hits) == (120, 1)
    for axis in ("ran_on", "on_beat"):
        passes = {one.rate: one.passes for one in can.damage[axis]}
        assert passes[0.2] > 0.9, axis


@pytest.mark.long
def test_texts_that_change_change_the_answers(folder: Path, everything: Path, texts: tuple[PanelText, ...]) -> None:
    text_of = {(t.arm, t.beat, t.seed): t for t in texts if t.set == "open"}

    def altered(text: PanelText) -> PanelText:
        if text.arm == "base-again":  # an author's voice where there is none
            return text.model_copy(update={"text": text_of["lv-bronte-e3", text.beat, text.seed - 100].text})
        if text.arm == "lv-bronte-e12":  # no voice where there is one
            return text.model_copy(update={"text": text_of["base-again", text.beat, text.seed + 100].text})
        if text.arm == "lv-bronte-ranon":  # texts that end
            return text.model_copy(update={"completion_tokens": 399, "finish_reason": "stop"})
        if text.arm == "lv-bronte-overfit":  # texts that do not
            return text.model_copy(update={"completion_tokens": 400})
        return text

    opened = [altered(text) for text in texts if (text.arm, text.beat, text.seed) != ("lv-bronte-e3", 3, 4)]
    wrong = {(row.arm, row.axis) for row in judge_texts(folder / "open.yaml", everything, opened) if row.wrong}
    assert wrong >= {
        ("base-again", "voice"),
        ("lv-bronte-e12", "voice"),
        ("lv-bronte-ranon", "ran_on"),
        ("lv-bronte-overfit", "ran_on"),
        ("lv-bronte-e3", "validity"),
        ("lv-bronte-e3", "voice"),
    }
    assert not {("lv-null", "voice"), ("lv-bronte-ranon", "voice"), ("lv-bronte-overfit", "voice")} & wrong


@pytest.mark.slow
def test_a_probe_that_shows_nothing_and_a_prompt_that_is_not_subtracted_are_seen(
    folder: Path, everything: Path, texts: tuple[PanelText, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    open_of = {(t.arm, t.beat, t.seed): t for t in texts if t.set == "open"}
    tame = [
        text.model_copy(update={"text": open_of[text.arm, text.beat, text.seed].text})
        if (text.arm, text.set) == ("lv-bronte-overfit", "train-beats")
        else text
        for text in texts
    ]
    monkeypatch.setattr("gates.flow.measuring.prompt_text", lambda rendered: "")
    wrong = {(row.arm, row.axis) for row in judge_texts(folder / "probe.yaml", everything, tame) if row.wrong}
    assert wrong >= {("lv-bronte-overfit", "extraction"), ("lv-bronte-e3", "extraction")}


@pytest.mark.slow
def test_a_text_that_answers_another_prompt_is_refused(inputs: Inputs, texts: tuple[PanelText, ...]) -> None:
    swapped = texts[0].model_copy(update={"prompt": texts[1].prompt})
    with pytest.raises(TamperedError, match="base, open 0 answers another prompt"):
        list(generations(inputs, "ab" * 32, [swapped]))


class Voices(NamedTuple):
    yardstick: Yardstick
    arms: dict[str, ArmCounts]

    def distances(self, arm: ArmCounts) -> np.ndarray:
        """d to the held-out text by seed."""
        return distances(arm, self.yardstick)[:, 0]


@pytest.fixture(scope="module")
def voices(inputs: Inputs, texts: tuple[PanelText, ...]) -> Voices:
    """Every arm's open texts, counted for the panel's own frame and length."""
    heldout = [(document.title, document.text) for document in inputs.heldout]
    yardstick = Yardstick.of(inputs.frame, heldout, {}, words_per_seed=inputs.gate.voice.words_per_seed)
    text_of = {(t.arm, t.seed, t.beat): t.text for t in texts if t.set == "open"}
    arms = {}
    for arm in inputs.gate.arms.all():
        rows = [[text_of[arm, seed, beat] for beat in range(BEATS)] for seed in inputs.gate.seeds(arm)]
        arms[arm] = count_arm(inputs.gate.seeds(arm), rows, yardstick)
    return Voices(yardstick, arms)


@pytest.mark.long
@pytest.mark.parametrize("arm", ["base-again", "lv-null", "lv-bronte-e3", "lv-bronte-e12", "lv-bronte-overfit"])
def test_a_slow_count_of_the_definition_finds_the_known_move(
    plain_distances: dict[str, list[float]], folder: Path, arm: str
) -> None:
    """delta_cb@1 once more, word by word, from its definition and with other draws."""
    known_move = next(row for row in known_answers(folder, "open.yaml") if (row.arm, row.axis) == (arm, "voice"))
    plain = plain_distances
    assert known_move.value == pytest.approx(np.mean(plain["base"]) - np.mean(plain[arm]), abs=0.01)
    floor = max(np.ptp(plain["base"]), np.ptp(plain[arm]))
    assert known_move.threshold == pytest.approx(floor, abs=0.02)


@pytest.fixture(scope="module")
def plain_distances(inputs: Inputs, texts: tuple[PanelText, ...]) -> dict[str, list[float]]:
    """d to the held-out text of each arm's seeds in turn."""
    by_author: dict[str, list[str]] = {}
    for author, said in sorted((document.author, plain_words(document.text)) for document in inputs.reference):
        by_author.setdefault(author, []).extend(said)
    pooled = Counter(word for said in by_author.values() for word in said)
    frame = [word for word, _ in sorted(pooled.items(), key=lambda item: (-item[1], item[0]))[:300]]
    rows = []
    for said in by_author.values():
        whole = [said[start : start + 3000] for start in range(0, len(said) - 2999, 3000)]
        twenty = [whole[place * len(whole) // 20] for place in range(20)] if len(whole) > 20 else whole
        rows += [shares(chunk, frame) for chunk in twenty]
    mean, sd = np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1)
    goal = (shares([word for d in inputs.heldout for word in plain_words(d.text)], frame) - mean) / sd
    rng = random.Random(7)
    found: dict[str, list[float]] = {}
    for arm in inputs.gate.arms.all():
        for seed in inputs.gate.seeds(arm):
            pool = [w for t in texts if (t.arm, t.seed, t.set) == (arm, seed, "open") for w in plain_words(t.text)]
            drawn = [(shares(rng.sample(pool, 1800), frame) - mean) / sd for _ in range(50)]
            away = [1 - z @ goal / np.linalg.norm(z) / np.linalg.norm(goal) for z in drawn]
            found.setdefault(arm, []).append(float(np.mean(away)))
    return found


def plain_words(text: str) -> list[str]:
    straight = unicodedata.normalize("NFKC", text).translate(str.maketrans("‘’‛ʼ", "''''")).lower()
    return re.findall(r"[^\W\d_]+(?:'[^\W\d_]+)*", straight)


def shares(said: list[str], frame: list[str]) -> np.ndarray:
    counted = Counter(said)
    return np.array([counted[word] / len(said) for word in frame])


@pytest.mark.slow
def test_random_splits_of_ten_base_seeds_pass_as_often_as_is_printed(folder: Path, voices: Voices) -> None:
    pool = np.concatenate([voices.distances(voices.arms[arm]) for arm in ("base", "base-again")])
    _, can = power(folder / "open.yaml", cache_dir(os.environ))
    printed = {voice.k: voice.false_pass for voice in can.voice_by_seeds}
    for k, two_sd in ((2, 0.018), (3, 0.011), (4, 0.005), (5, 0.002)):
        rate = passing_splits(pool, k)
        assert abs(rate - printed[k]) <= two_sd, k
        assert abs(rate - pairwise_level(k)) <= two_sd, k


def passing_splits(pool: np.ndarray, k: int) -> float:
    """Share of all ways to take a base and a candidate of k seeds out of the pool in which the candidate passes."""
    places = set(range(pool.size))
    pairs = np.array(
        [
            (base, candidate)
            for base in itertools.combinations(places, k)
            for candidate in itertools.combinations(places - set(base), k)
        ]
    )
    base, candidate = pool[pairs[:, 0]], pool[pairs[:, 1]]
    moves = base.mean(axis=-1) - candidate.mean(axis=-1)
    floors = pairwise_range(base, candidate)
    passed = [superiority(float(m), float(f)) is PASS for m, f in zip(moves, floors, strict=True)]
    return float(np.mean(passed))


@pytest.mark.long
def test_the_voices_pass_whatever_prompts_are_drawn(voices: Voices) -> None:
    """Prompts are drawn again with replacement, the same for both arms of all five seeds.

    A draw whose base is short of L words in a seed would be INVALID, not judged: it is drawn again.
    """
    rng = np.random.Generator(np.random.PCG64(20261201))
    needed, redraws = voices.yardstick.words_per_seed, 200
    passed: Counter[str] = Counter()
    judged = 0
    while judged < redraws:
        weights = rng.multinomial(BEATS, np.full(BEATS, 1 / BEATS))[None, :, None]
        drawn = {
            arm: ArmCounts(voices.arms[arm].seeds, voices.arms[arm].counts * weights)
            for arm in ("base", "lv-bronte-e3", "lv-bronte-e12")
        }
        if min(drawn["base"].words) < needed:
            continue
        judged += 1
        base = voices.distances(drawn.pop("base"))
        for name, arm in drawn.items():
            if min(arm.words) >= needed:
                own = voices.distances(arm)
                outcome = superiority(float(base.mean() - own.mean()), float(pairwise_range(base, own)))
                passed[name] += outcome is PASS
    assert min(passed[name] for name in ("lv-bronte-e3", "lv-bronte-e12")) >= 0.99 * redraws
