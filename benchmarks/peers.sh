#!/usr/bin/env bash
# Install each peer into an environment of its own, for some exclude each other: benchmarks/peers.sh FOLDER
set -euo pipefail
cd "$(dirname "$0")"
grep -v '^#' peers.txt | while read -r name requirement; do
    [ -x "$1/$name/ready" ] && continue
    python3 -m venv "$1/$name"
    # shellcheck disable=SC2086 - several requirements
    "$1/$name/bin/pip" install -q --disable-pip-version-check --only-binary=:all: $requirement ||
        { echo "$name cannot be installed here" >&2; continue; }
    touch "$1/$name/ready" && chmod +x "$1/$name/ready"
done
