"""Standings and attempts: what the ledger shows of when a rule was fixed, and of how often was tried."""

from __future__ import annotations

from pathlib import Path

import pytest

from gates.errors import RecordError
from gates.judge.standing import STANDINGS, Standing, one_passes, weakest
from gates.judge.verdict import judge
from gates.record.ledger import Ledger, Stamp
from gates.record.rules import axis_rules, held, rule_standing, with_axis
from gates.record.seal import AdapterIdentity, Seal, write_seal
from gates.record.standing import History, attempts_at, in_context, standing_of
from gates.records import canonical, sha256
from gates.spec.schema import Gate
from tests.judge.arms import HASH, a_gate, measured
from tests.record.test_seal import binding, seal

HOUSE = {"mfw": 300, "words_per_seed": 500}
SIGNED = {"words": "words@1", "voice": "delta_cb@1", "memorisation": "ngram_hits@1"}


def gate_of(name: str, floor: str, **changes: object) -> Gate:
    return a_gate(name=name, voice=HOUSE | {"floor": floor} | changes)


class Book:
    """A ledger in which things happen one after another."""

    def __init__(self, prereg: Path) -> None:
        self.prereg, self.ledger, self.days = prereg, Ledger(prereg), 0
        self.seals: dict[str, str] = {}

    def stamp(self) -> Stamp:
        self.days += 1
        return Stamp(f"2026-09-{self.days:02d}T00:00:00+00:00", "Ann")

    def make(self, gate: Gate, adapter: str = HASH, false_pass: float = 0.1, **parts: object) -> Seal:
        return seal(
            self.stamp().at,
            gate=gate,
            binding=binding(
                gate=gate.digest(),
                adapters={arm: AdapterIdentity(files={"a": adapter}, card=None) for arm in gate.arms.candidates},
                signatures=SIGNED | {"voice.floor": gate.voice.floor} | dict(parts),
            ),
            operating={"voice": {"false_pass": false_pass}},
        )

    def seal(self, gate: Gate, **parts: object) -> None:
        self.seals[gate.name] = write_seal(self.prereg, self.make(gate, **parts)).sha256

    def imported(self, gate: Gate) -> None:
        data = canonical(self.make(gate).as_json())
        (self.prereg / "seals").mkdir(parents=True, exist_ok=True)
        (self.prereg / "seals" / "i.json").write_bytes(data)
        self.seals[gate.name] = sha256(data)
        self.ledger.append("import", gate.name, {"seal": sha256(data), "file": "seals/i.json"}, self.stamp())

    def enter(self, kind: str, gate: str, run: int = 1, **more: object) -> None:
        self.ledger.append(kind, gate, {"run": run, "seal": self.seals[gate], **more}, self.stamp())

    @property
    def history(self) -> History:
        return History(self.prereg, self.ledger.entries())


@pytest.fixture
def book(tmp_path: Path) -> Book:
    return Book(tmp_path / "prereg")


OURS, NEW = "all-arms-range@1", "pairwise-range@1"


def of_b(book: Book, **changes: object) -> Standing:
    """The standing of pairwise-range@1, were it to judge the run of gate b."""
    history = book.history
    gate = gate_of("b", NEW, **changes)
    rule = axis_rules(gate, SIGNED | {"voice.floor": NEW})["voice"]
    return rule_standing(history, history.run("b", 1), "voice", rule)


def seal_a(book: Book, floor: str = NEW, **parts: object) -> None:
    book.seal(gate_of("a", floor), **parts)


def seal_b(book: Book, floor: str = OURS) -> None:
    book.seal(gate_of("b", floor))


def run_a(book: Book) -> None:
    book.enter("run", "a")


def run_b(book: Book) -> None:
    book.enter("run", "b")


def other_measure(book: Book) -> None:
    seal_a(book, voice="delta_cb@2")


def other_threshold(book: Book) -> None:
    book.seal(gate_of("a", NEW, times_floor=2.0))


def three_seeds(book: Book) -> None:
    sampling = {"seeds": [1, 2, 3], "temperature": 0.9, "top_p": 0.95, "max_tokens": 300}
    book.seal(a_gate(name="a", voice=HOUSE | {"floor": NEW}, sampling=sampling))


@pytest.mark.parametrize(
    ("events", "name"),
    [
        ([lambda book: seal_b(book, NEW), run_b], "prospective"),
        ([seal_a, seal_b, run_b], "fixed elsewhere, blind"),
        ([seal_a, run_a, seal_b, run_b], "fixed elsewhere, blind"),
        ([seal_b, seal_a, run_b], "fixed elsewhere, blind"),
        ([seal_b, run_b, seal_a], "fixed elsewhere, not blind"),
        ([seal_b, run_b, seal_a, run_a], "fixed elsewhere, not blind"),
        ([lambda book: seal_a(book, OURS), run_a, seal_b, run_b, seal_a], "post-hoc"),
        ([seal_b, run_b], "post-hoc"),
        ([lambda book: seal_a(book, OURS), seal_b, run_b], "post-hoc"),
        ([other_measure, seal_b, run_b], "post-hoc"),
        ([other_threshold, seal_b, run_b], "post-hoc"),
        ([three_seeds, seal_b, run_b], "post-hoc"),
        # The same gate sealed anew afterwards is no other gate.
        ([seal_b, run_b, lambda book: book.seal(gate_of("b", NEW))], "post-hoc"),
        ([lambda book: book.imported(gate_of("b", OURS)), run_b, seal_a], "imported"),
        ([lambda book: book.imported(gate_of("b", NEW)), run_b], "imported"),
        # What was only imported fixes nothing for another gate.
        ([lambda book: book.imported(gate_of("a", NEW)), seal_b, run_b], "post-hoc"),
    ],
)
def test_the_standing_of_a_rule_is_computed_from_the_order_of_the_ledger(book: Book, events: list, name: str) -> None:
    seals = {}
    for event in events:
        event(book)
        seals.update({gate: seals.get(gate, made) for gate, made in book.seals.items()})
        book.seals |= {"b": seals["b"]} if "b" in seals else {}
    found = of_b(book)
    assert found.name == name
    assert found.reason


def test_a_dropped_axis_is_post_hoc_and_an_untouched_one_keeps_its_standing(book: Book) -> None:
    seal_b(book)
    run_b(book)
    history = book.history
    run = history.run("b", 1)
    assert rule_standing(history, run, "memorisation", None).name == "post-hoc"
    own = axis_rules(gate_of("b", OURS), SIGNED | {"voice.floor": OURS})
    assert {axis: rule_standing(history, run, axis, rule).name for axis, rule in own.items()} == dict.fromkeys(
        ["validity", "voice", "memorisation", "ran_on", "on_beat"], "prospective"
    )


def test_a_run_after_an_amendment_that_followed_a_run_is_post_hoc_for_ever(book: Book) -> None:
    seal_b(book)
    assert standing_of(book.history, book.seals["b"]).name == "prospective"
    run_b(book)
    first = book.seals["b"]
    seal_b(book, NEW)
    book.enter("run", "b", 2)
    second = book.seals["b"]
    seal_b(book, "pairwise-calibrated@1")
    book.enter("run", "b", 3)
    history = book.history
    assert standing_of(history, first).name == "prospective"
    assert str(standing_of(history, second)).startswith("post-hoc: sealed after 1 earlier run(s)")
    assert str(standing_of(history, book.seals["b"])).startswith("post-hoc: sealed after 2 earlier run(s)")


def test_a_seal_of_another_branch_does_not_come_before_what_it_never_knew(book: Book) -> None:
    """Two branches: one seals the rule elsewhere, the other runs; joined, neither came before the other."""
    seal_b(book)
    root = book.history.heads
    run_b(book)
    ours = book.ledger.source()
    other = Book(book.prereg.parent / "other")
    other.prereg.mkdir()
    (other.prereg / "seals").mkdir()
    for path in (book.prereg / "seals").iterdir():
        (other.prereg / "seals" / path.name).write_bytes(path.read_bytes())
    first = ours.lines.split(b"\n")[0]
    other.ledger.path.write_bytes(first + b"\n")
    other.days = 3
    seal_a(other)
    assert other.history.records[0].sha256 == root[0]
    joined = History(other.prereg, (*book.history.records, *other.history.records[1:]))
    rule = axis_rules(gate_of("b", NEW), SIGNED | {"voice.floor": NEW})["voice"]
    assert rule_standing(joined, joined.run("b", 1), "voice", rule).name == "fixed elsewhere, not blind"


def test_every_rule_that_seals_hold_is_listed_with_its_holders(book: Book) -> None:
    seal_b(book)
    run_b(book)
    for name, floor in (("c", NEW), ("d", NEW), ("e", "pairwise-calibrated@1")):
        book.seal(gate_of(name, floor))
    rules = [(rule["floor"], [holder.record.entry.gate for holder in who]) for rule, who in held(book.history, "voice")]
    assert rules == [(OURS, ["b"]), (NEW, ["c", "d"]), ("pairwise-calibrated@1", ["e"])]


def test_attempts_count_the_same_bytes_under_other_names(book: Book) -> None:
    book.seal(gate_of("a", NEW), adapter="cd" * 32)
    book.enter("run", "a")
    book.seal(gate_of("other", NEW), adapter="ef" * 32)
    book.enter("run", "other")
    book.seal(gate_of("b", OURS), adapter="cd" * 32, false_pass=0.2)
    for number in (1, 2):
        book.enter("run", "b", number)
        book.enter("verdict", "b", number)
    book.enter("rescore", "b", 2)
    found = attempts_at(book.history, "b", book.seals["b"])
    assert str(found.this_gate) == "1 seal, 2 runs, 3 floors before"
    assert {name: str(counted) for name, counted in found.other_gates.items()} == {
        "a": "1 seal, 1 run, 0 floors before"
    }
    # One at 0.1 under a; two runs and a re-score at 0.2: 1 - 0.9 * 0.8 ** 3.
    assert found.candidates["a"].tries == 4
    assert found.candidates["a"].chance == pytest.approx(0.5392)
    assert found.sentences()[1:] == [
        "the same adapter bytes under gate a: 1 seal, 1 run, 0 floors before",
        "a: 4 tries; one of as many that moved nothing passes voice with a chance of 53.9%",
    ]


def test_a_verdict_knows_what_came_before_it_and_nothing_after(book: Book) -> None:
    seal_b(book)
    run_b(book)
    book.enter("session", "b")
    verdict = judge(gate_of("b", OURS), measured().model_copy(update={"seal": book.seals["b"]}))
    then = in_context(verdict, book.history, "b", 1)
    assert then.standing is not None
    assert then.standing.name == "prospective"
    book.enter("verdict", "b")
    book.enter("run", "b", 2)
    assert in_context(verdict, book.history, "b", 1) == then
    assert in_context(verdict, book.history, "b", 2).attempts != then.attempts


def test_the_imported_verdict_warns_of_itself(book: Book) -> None:
    book.imported(gate_of("b", OURS))
    run_b(book)
    verdict = judge(gate_of("b", OURS), measured().model_copy(update={"seal": book.seals["b"]}))
    assert "imported: not sealed before generation" in in_context(verdict, book.history, "b", 1).warnings[-1]


def test_the_weakest_standing_prevails_and_chances_add_up() -> None:
    every = [Standing(name=name, reason=name) for name in STANDINGS]
    assert weakest(every).name == "imported"
    assert weakest(every[:2]).name == "fixed elsewhere, blind"
    assert one_passes([0.5, 0.5]) == 0.75
    assert one_passes([]) == 0


def test_what_is_not_there_is_said(book: Book) -> None:
    seal_b(book)
    with pytest.raises(RecordError, match="it holds no run 3 of gate 'b'"):
        book.history.run("b", 3)
    with pytest.raises(RecordError, match=f"it holds no record {HASH}"):
        book.history.as_of([HASH])


@pytest.mark.parametrize("axis", ["voice", "memorisation", "validity", "ran_on", "on_beat"])
def test_one_axis_takes_anothers_rule_and_the_rest_stays(axis: str) -> None:
    mine = a_gate()
    other = a_gate(
        voice={"mfw": 300, "words_per_seed": 500, "times_floor": 2.0},
        memorisation={"max_rate": 0.5, "max_heldout_rate": 0.3},
        damage={"ran_on": {"margin": 0.3}, "on_beat": {"margin": 0.4}},
        validity={"max_empty": 0.5},
    )
    was, theirs = axis_rules(mine, {}), axis_rules(other, {})
    now = axis_rules(with_axis(mine, axis, other), {})
    assert now[axis] == theirs[axis] != was[axis]
    # Held-out hits make voice INVALID, so that limit belongs to both.
    also = {"voice": "memorisation", "memorisation": "voice"}.get(axis)
    assert {name for name in was if now[name] != was[name]} <= {axis, also}
