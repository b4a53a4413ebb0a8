"""A key that is planted in the environment stands in nothing that any command writes, prints or raises."""

from __future__ import annotations

import base64
from html import escape
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.flow.conftest import Ended, gates
from tests.flow.threaded import Seat, running
from tests.record.test_signing import make_key
from tests.seat.faulty import Request, Wire, error
from tests.small import small_workspace

KEY = "sk-planted/Very+Secret&77<=="
"""It holds what URLs, JSON in HTML and base64 write otherwise."""

FORMS = {
    "plain": KEY,
    "quoted": quote(KEY, safe=""),
    "of HTML": escape(KEY),
    **{f"base64, {place}": base64.b64encode(b"x" * place + KEY.encode()).decode()[4:-4] for place in range(3)},
}


def found_in(texts: dict[str, str]) -> list[str]:
    return [f"{form} in {place}" for place, text in texts.items() for form, said in FORMS.items() if said in text]


@pytest.mark.slow
def test_a_planted_key_is_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATES_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PLANTED", KEY)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    told: dict[str, str] = {}

    def do(*words: object) -> Ended:
        ended = gates(*words)
        told[" ".join(map(str, words))] = ended.stdout + ended.stderr
        return ended

    heard: list[str] = []

    async def refusing(request: Request, wire: Wire) -> None:
        heard.append(request.headers.get("authorization", ""))
        await wire.send(error(f"Incorrect API key provided: {KEY}; sent {request.headers}", "Unauthorized", 401), 401)

    with running(Seat) as seat:
        home = tmp_path / "work"
        gate = small_workspace(
            home, tmp_path / "cache", seat={"base_url": seat.faulty.url, "api_key_env": "PLANTED", "attempts": 1}
        )
        run = home / "reports" / "small" / "001"
        assert do("seal", gate, "--yes").returncode == 0
        tell, seat.faulty.always = seat.faulty.always, refusing
        assert do("run", gate).returncode == 4
        seat.faulty.always = tell
        do("run", gate)
        assert (run / "verdict.json").is_file(), told
        seat.faulty.always = refusing
        assert do("recheck", run).returncode == 4
        assert do("seat", "status", "--seat", seat.faulty.url, "--api-key-env", "PLANTED").returncode in {0, 1, 2, 4}
        seat.faulty.always = tell
        do("recheck", run)
    assert heard, "the key was not even sent to the seat that repeats it"
    assert set(heard) == {f"Bearer {KEY}"}
    for words in (
        ("check", gate), ("show", "small", "--workspace", home), ("status", run), ("verify", home, "--json"),
        ("rescore", run, "--rule", "pairwise-calibrated@1", "--reason", "r"), ("table", run), ("card", run),
        ("ci", run, "--junit", tmp_path / "j.xml"), ("report", run), ("report", run, "--share", tmp_path / "shared"),
        ("list", "--workspace", home, "--html"), ("export", run, "--format", "intoto", "--arm", "one"),
        ("export", run, "--format", "inspect", "--to", tmp_path / "logs"), ("ledger", "--workspace", home),
        ("review", run, "--list"), ("power", gate),
        ("signoff", run, "--arm", "one", "--decision", "hold", "--reason", "r", "--key", make_key(tmp_path)),
    ):  # fmt: skip
        ended = do(*words)
        assert "Traceback" not in ended.stderr, ended
        assert ended.returncode != 2 or words[0] == "signoff", ended
    written = {str(path): path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*") if path.is_file()}
    assert len(written) > 40
    assert found_in(told | written) == []


def test_the_search_finds_each_form() -> None:
    for form, said in FORMS.items():
        assert f"{form} in there" in found_in({"there": f"before {said} after"})
