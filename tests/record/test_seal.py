"""The seal: its bytes hold, the ledger's last one is in force, and every binding change is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gates.errors import RecordError, RefusedError, TamperedError
from gates.record.ledger import Ledger, Stamp
from gates.record.seal import (
    AdapterIdentity,
    Binding,
    Seal,
    changes,
    differences,
    latest_seal,
    read_seal,
    refuse_changes,
    seal_in_force,
    write_seal,
)
from gates.record.vouching import vouch
from gates.records import sha256
from tests.durable import at_risk
from tests.judge.arms import HASH, a_gate
from tests.kills import BIG, FORKED, killed_at
from tests.record.test_signing import make_key

OTHER = "cd" * 32


def binding(**changes: object) -> Binding:
    return Binding(
        **{
            "gate": HASH,
            "texts": {"train": {"t/a.txt": HASH}},
            "prompts": HASH,
            "frame": HASH,
            "adapters": {"a": AdapterIdentity(files={"a.gguf": HASH}, card=None)},
            "signatures": {"voice": "delta_cb@1"},
            "seat": {"version": "1.0", "fingerprint": None},
        }
        | changes
    )


def seal(at: str = "2026-01-01T00:00:00+00:00", **changes: object) -> Seal:
    return Seal(
        **{
            "gate": a_gate(),
            "gate_file": "prereg/demo.yaml",
            "binding": binding(),
            "context": {"python": "3.11"},
            "order_seed": 7,
            "operating": {},
            "sealed_at": at,
            "sealed_by": "Zoë | <b>",
            "previous": (),
            "amends": None,
            "runs_before": 0,
        }
        | changes
    )


def test_a_seal_reads_back_and_its_name_is_its_hash(tmp_path: Path) -> None:
    made = write_seal(tmp_path, seal())
    assert made.path == tmp_path / "seals" / f"demo-{made.sha256[:12]}.json"
    assert sha256(made.path.read_bytes()) == made.sha256
    assert latest_seal(tmp_path, "demo") == made
    (stored,) = Ledger(tmp_path).entries()
    assert (stored.entry.kind, stored.entry.gate, stored.entry.by) == ("seal", "demo", "Zoë | <b>")
    assert stored.entry.body == {"seal": made.sha256, "file": f"seals/{made.path.name}", "gate_sha256": HASH}


def test_a_signed_seal_killed_at_any_write_is_written_by_the_next_try(tmp_path: Path) -> None:
    key = make_key(tmp_path)
    steps = killed_at(BIG, tmp_path / "0", write_seal, tmp_path / "0", seal(), key, context=FORKED)
    assert at_risk(steps) == []
    linked = [step for step in steps if step.startswith("link")]
    assert sum(".json" in step for step in linked) == sum(".sig" in step for step in linked) == 1
    for deadly in range(1, len(steps) + 1):
        prereg = tmp_path / str(deadly)
        assert killed_at(deadly, prereg, write_seal, prereg, seal(), key, context=FORKED) == []
        left = Ledger(prereg).entries()
        again = write_seal(prereg, seal(), key)
        assert latest_seal(prereg, "demo") == again
        records = Ledger(prereg).entries()
        assert len(records) == len(left) + 1
        found = vouch(prereg, records, None)
        assert (found.breaks, found.open) == ([], [])
        assert found.told[0].startswith(f"{len(records)} records are signed by a key")


def test_the_last_seal_of_the_gate_is_in_force_and_the_first_stays(tmp_path: Path) -> None:
    first = write_seal(tmp_path, seal())
    second = write_seal(tmp_path, seal("2026-01-02T00:00:00+00:00"))
    write_seal(tmp_path, seal(gate=a_gate(name="demo2")))
    assert latest_seal(tmp_path, "demo") == second != first
    assert read_seal(tmp_path, first.sha256, f"seals/{first.path.name}") == first


def test_without_a_seal_the_next_step_is_to_seal(tmp_path: Path) -> None:
    write_seal(tmp_path, seal())
    with pytest.raises(
        RefusedError, match=r"gate 'demo2' has no seal in .*ledger\.jsonl\n  next: run `gates seal g.yaml`"
    ):
        seal_in_force(tmp_path, "demo2", Path("g.yaml"))
    assert seal_in_force(tmp_path, "demo", Path("g.yaml")) == latest_seal(tmp_path, "demo")


def test_a_seal_whose_ledger_record_was_never_written_is_not_in_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "append_held", killed)
        with pytest.raises(KeyboardInterrupt):
            write_seal(tmp_path, seal())
    assert latest_seal(tmp_path, "demo") is None
    assert write_seal(tmp_path, seal()) == latest_seal(tmp_path, "demo")


def test_every_flipped_byte_is_caught(tmp_path: Path) -> None:
    made = write_seal(tmp_path, seal())
    good = made.path.read_bytes()
    for place in range(len(good)):
        made.path.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        with pytest.raises(TamperedError, match=r"SHA-256 is [0-9a-f]{64}, the ledger says"):
            read_seal(tmp_path, made.sha256, f"seals/{made.path.name}")


def test_a_seal_that_is_gone_is_said_so(tmp_path: Path) -> None:
    made = write_seal(tmp_path, seal())
    made.path.unlink()
    with pytest.raises(TamperedError, match="the ledger names this seal and it is missing"):
        latest_seal(tmp_path, "demo")


def test_the_ledger_chooses_no_path_outside_the_seals(tmp_path: Path) -> None:
    outside = tmp_path / "outside.json"
    outside.write_bytes(b"{}")
    for file in ("../outside.json", str(outside), "seals/../../outside.json", "..", ""):
        with pytest.raises(TamperedError, match="which gates never wrote"):
            read_seal(tmp_path / "prereg", sha256(b"{}"), file)


def test_an_unknown_schema_is_refused(tmp_path: Path) -> None:
    data = json.dumps(seal().as_json() | {"schema": "gates.seal/9"}).encode()
    (tmp_path / "seals").mkdir()
    (tmp_path / "seals" / "s.json").write_bytes(data)
    with pytest.raises(
        RecordError, match=r"s\.json: not a record of this version: schema: Input should be 'gates\.seal/1'"
    ):
        read_seal(tmp_path, sha256(data), "seals/s.json")


@pytest.mark.parametrize("body", [{}, {"seal": 3, "file": "f"}, {"seal": HASH}, {"seal": HASH, "file": ["f"]}])
def test_a_ledger_record_that_says_nothing_sensible_is_tampered(tmp_path: Path, body: dict) -> None:
    Ledger(tmp_path).append("seal", "demo", body, Stamp("t", "b"))
    with pytest.raises(TamperedError, match=r"\(seal of 'demo'\): (seal|file) is .*, which is no str"):
        latest_seal(tmp_path, "demo")


def test_binding_changes_are_all_listed(tmp_path: Path) -> None:
    made = write_seal(tmp_path, seal())
    refuse_changes(made, binding(), made.seal.gate)
    now = binding(
        gate=OTHER,
        texts={"train": {"t/b.txt": HASH}},
        adapters={"a": AdapterIdentity(files=None, card={"root": "x"})},
        seat={"version": "1.1", "fingerprint": None},
    )
    with pytest.raises(RefusedError) as refused:
        refuse_changes(made, now, a_gate(question="Another?"))
    assert refused.value.message.split("\n") == [
        f"what {made.path.name} binds has changed since it was sealed:",
        '  adapters.a.card: sealed null, now {"root": "x"}',
        f'  adapters.a.files: sealed {{"a.gguf": "{HASH}"}}, now null',
        '  seat.version: sealed "1.0", now "1.1"',
        f'  texts.train.t/a.txt: sealed "{HASH}", now missing',
        f'  texts.train.t/b.txt: not sealed, now "{HASH}"',
        f'  gate.question: sealed "{made.seal.gate.question}", now "Another?"',
    ]
    # The hash of the gate says nothing to a person, and is all there is to say where no field differs.
    assert changes(made.seal, binding(gate=OTHER), made.seal.gate) == [f'gate: sealed "{HASH}", now "{OTHER}"']


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, JSON)
def test_differences_are_none_exactly_for_equal_values(sealed: object, now: object) -> None:
    assert differences(sealed, sealed) == []
    same = json.dumps(sealed, sort_keys=True) == json.dumps(now, sort_keys=True)
    assert (differences(sealed, now) == []) is same


def test_a_long_value_is_cut_in_the_message() -> None:
    (line,) = differences({"a": "x" * 500}, {"a": 1})
    assert line == f'a: sealed "{"x" * 76}..., now 1'
