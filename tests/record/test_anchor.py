"""A chain that was rebuilt as a whole: the record itself cannot show it, an anchor outside of it does."""

from __future__ import annotations

import subprocess
from pathlib import Path

from gates.record.anchor import committed_breaks
from gates.record.ledger import Ledger, Stamp
from tests.record.test_merging import commit, git


def rebuilt(home: Path, *, by: str, drop: int = 0) -> Ledger:
    """The ledger written anew by a forger: every hash in it holds."""
    ledger = Ledger(home / "prereg")
    entries = ledger.entries()
    ledger.path.unlink()
    ledger.head_path.unlink()
    for stored in entries[: len(entries) - drop]:
        ledger.append(stored.entry.kind, stored.entry.gate, dict(stored.entry.body), Stamp(stored.entry.at, by))
    return ledger


def found(home: Path, ledger: Ledger) -> tuple[str, list[str]]:
    return committed_breaks(home, ledger.path, [stored.sha256 for stored in ledger.entries()])


def test_a_rebuilt_chain_is_found_with_an_anchor_and_not_without(tmp_path: Path) -> None:
    for number in range(3):
        Ledger(tmp_path / "prereg").append("run", "demo", {"run": number}, Stamp("2026-01-01", "ann"))
    honest = Ledger(tmp_path / "prereg").entries()
    forged = rebuilt(tmp_path, by="mallory")
    assert len(forged.entries()) == 3
    assert forged.heads() != (honest[-1].sha256,)
    anchor, breaks = found(tmp_path, forged)
    assert breaks == []
    assert "it cannot catch somebody who rebuilt ledger and head together" in anchor

    rebuilt(tmp_path, by="ann")
    git(tmp_path, "init", "-q")
    commit(tmp_path, "honest")
    anchor, breaks = found(tmp_path, rebuilt(tmp_path, by="mallory"))
    assert "they cannot catch a rewritten git history" in anchor
    assert [sentence.split()[2] for sentence in breaks] == [stored.sha256 for stored in honest]


def test_a_tail_cut_with_its_head_is_found_with_an_anchor(tmp_path: Path) -> None:
    for number in range(3):
        Ledger(tmp_path / "prereg").append("run", "demo", {"run": number}, Stamp("2026-01-01", "ann"))
    last = Ledger(tmp_path / "prereg").entries()[-1].sha256
    git(tmp_path, "init", "-q")
    commit(tmp_path, "honest")
    (sentence,) = found(tmp_path, rebuilt(tmp_path, by="ann", drop=1))[1]
    assert sentence.endswith(f"record {last} was committed and is no longer in the ledger")


def test_a_forged_chain_that_was_committed_too_is_found(tmp_path: Path) -> None:
    """An honest commit stays below the forger's: in a line of commits, in a merge, and where the file was removed."""
    ledger = Ledger(tmp_path / "prereg")
    honest = [ledger.append("run", "demo", {"run": n}, Stamp("2026-01-01", "ann")).sha256 for n in range(2)]
    git(tmp_path, "init", "-q", "-b", "main")
    commit(tmp_path, "honest")
    git(tmp_path, "checkout", "-qb", "side")
    honest.append(ledger.append("run", "demo", {"run": 2}, Stamp("2026-01-01", "ann")).sha256)
    commit(tmp_path, "honest, too")
    git(tmp_path, "checkout", "-q", "main")
    git(tmp_path, "merge", "-q", "--no-ff", "-s", "ours", "side")
    (tmp_path / ".gitattributes").write_text("*.jsonl binary -diff", "utf-8")
    rebuilt(tmp_path, by="mallory")
    commit(tmp_path, "forged")
    ran = tmp_path / "ran"
    git(tmp_path, "config", "core.fsmonitor", f"touch {ran}")
    git(tmp_path, "config", "diff.external", f"touch {ran}")
    assert {sentence.split()[2] for sentence in found(tmp_path, ledger)[1]} == set(honest)
    assert not ran.exists(), "settings of a workspace's git run nothing"
    git(tmp_path, "config", "--unset", "core.fsmonitor")
    git(tmp_path, "rm", "-q", "-r", "--cached", "prereg")
    git(tmp_path, "commit", "-qm", "no ledger")
    assert {sentence.split()[2] for sentence in found(tmp_path, ledger)[1]} == set(honest)


def test_what_a_clone_lacks_is_fetched_from_nowhere(tmp_path: Path) -> None:
    """A partial clone names where to fetch from, and that can be a command."""
    ledger, ran = Ledger(tmp_path / "prereg"), tmp_path / "ran"
    ledger.append("run", "demo", {"run": 1}, Stamp("2026-01-01", "ann"))
    git(tmp_path, "init", "-q")
    commit(tmp_path, "honest")
    name = subprocess.run(
        ["git", "-C", tmp_path, "rev-parse", "HEAD:prereg/ledger.jsonl"], check=True, capture_output=True, text=True
    ).stdout.strip()
    (tmp_path / ".git/objects" / name[:2] / name[2:]).unlink()
    settings = {
        "core.repositoryformatversion": "1",
        "extensions.partialClone": "x",
        "remote.x.promisor": "true",
        "remote.x.url": f"ext::sh -c touch% {ran}",
        "protocol.ext.allow": "always",
    }
    for key, value in settings.items():
        git(tmp_path, "config", key, value)
    assert found(tmp_path, ledger)[1] == []
    assert not ran.exists()
