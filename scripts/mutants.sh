#!/usr/bin/env bash
# Mutation testing of gates/judge or gates/measure: scripts/mutants.sh judge [FOLDER]
#
# Works on a copy of what is committed, in an environment of its own, for half an hour on two cores. Sentences are left
# as they are (scripts/mutants.py). Then, in FOLDER/gates, `../venv/bin/mutmut results` lists the survivors, `mutmut
# show NAME` shows one, and `mutmut results | ../venv/bin/python scripts/survivors.py tests/measure` tries them again,
# each in a process of its own. The last results are in scripts/mutants.out.md.
set -euo pipefail
part=${1:?"name what is mutated: judge or measure"}
folder=${2:-$(mktemp -d)}
here=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$folder"
git clone -q "$here" "$folder/gates"
python3 -m venv "$folder/venv"
cd "$folder/gates"
"$folder/venv/bin/pip" install -q 'mutmut>=3.8' -e '.[dev]'
tests="\"tests/$part\""
[ "$part" = judge ] && tests="$tests, \"tests/record/test_standing.py\", \"tests/cli/test_compare.py\""
# A mutant runs every test that reaches it: few examples of each property are enough to see it.
sed -i 's/"quick", max_examples=[0-9]*/"quick", max_examples=12/' tests/conftest.py
cat >> pyproject.toml << EOF

[tool.mutmut]
source_paths = ["gates/$part/"]
pytest_add_cli_args_test_selection = [$tests]
also_copy = ["gates", "tests", "prereg", "corpora", "docs"]
EOF
echo "in $folder/gates"
"$folder/venv/bin/python" scripts/mutants.py run --max-children "$(nproc)"
"$folder/venv/bin/mutmut" results
