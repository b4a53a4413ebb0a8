"""Ask the advisory service about every pinned dependency: fails on a known vulnerability, says what was not asked.

    python scripts/audit.py [requirements.lock]

Where no service can be reached it says so and ends with 0: a build must not hang on somebody else's server. Anything
else that keeps it from asking, such as a lock that cannot be read, ends with 1.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path


def told(found: Mapping[str, list[dict[str, object]]]) -> tuple[list[str], int]:
    """What pip-audit's document comes to: sentences, and the exit code."""
    packages = found["dependencies"]
    skipped = [package for package in packages if "skip_reason" in package]
    sentences = []
    for package in packages:
        for advisory in package.get("vulns", []):  # type: ignore[attr-defined]
            fixed = ", ".join(advisory["fix_versions"]) or "no version"
            sentences.append(f"{package['name']} {package['version']}: {advisory['id']}, fixed in {fixed}")
    failed = bool(sentences)
    sentences.append(f"{len(packages) - len(skipped)} of {len(packages)} packages audited, {len(sentences)} advisories")
    return sentences, int(failed)


_UNREACHABLE = re.compile(r"requests\.exceptions\.|Could not connect to|not redirecting properly|ServiceError")
"""How pip-audit says that the service does not answer."""


def not_told(stderr: str) -> tuple[list[str], int]:
    """What it comes to when pip-audit wrote no document: sentences, and the exit code."""
    reason = (stderr.strip().splitlines() or ["no reason given"])[-1][:200]
    if _UNREACHABLE.search(stderr):
        return [f"not audited: no advisory service answered ({reason})"], 0
    return [f"not audited: pip-audit failed ({reason})"], 1


def main(lock: str = "requirements.lock") -> int:
    """Run pip-audit and tell."""
    with tempfile.TemporaryDirectory() as folder:
        document = Path(folder, "audit.json")
        command = [sys.executable, "-m", "pip_audit", "-r", lock, "--disable-pip", "-f", "json", "-o", str(document)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        asked = document.is_file()
        sentences, code = told(json.loads(document.read_text("utf-8"))) if asked else not_told(ended.stderr)
    print("\n".join(sentences))
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
