# `make demo` and `make test` set everything up by themselves, each in a virtual environment of its own.
PYTHON ?= python3
comma := ,
UV := $(shell command -v uv 2>/dev/null)
ifdef UV
environment = $(UV) venv -q --allow-existing --python $(PYTHON) $(1) && $(UV) pip install -q --python $(1)/bin/python -e '.[$(2)]'
else
environment = $(PYTHON) -m venv $(1) && $(1)/bin/python -m pip install -q --disable-pip-version-check -e '.[$(2)]'
endif

.PHONY: demo test test-external test-slow test-clouds test-long coverage lint audit lock docs clean

demo: .venv/ready
	.venv/bin/gates demo

test: .venv-dev/ready
	.venv-dev/bin/python -m pytest -n 2 --dist loadgroup

test-external: .venv-dev/ready
	.venv-dev/bin/python -m pytest -n 2 -m external --timeout 900

test-slow: .venv-dev/ready
	.venv-dev/bin/python -m pytest -n 2 --dist loadgroup -m slow --timeout 600

test-clouds: .venv-clouds/ready
	.venv-clouds/bin/python -m pytest -m clouds

# Of measures, judges and records, by the tests that are about them; the last true output is in scripts/coverage.txt.
coverage: .venv-dev/ready
	.venv-dev/bin/coverage run -m pytest tests/judge tests/measure tests/record tests/cli/test_ledger.py \
	  tests/cli/test_compare.py $(addprefix tests/flow/test_,blind.py floors.py judging.py recheck.py rescore.py review.py \
	  seats.py sharing.py signoff.py)
	.venv-dev/bin/coverage report

test-long: .venv-dev/ready
	.venv-dev/bin/python -m pytest -m long --timeout 3600

lint: .venv-dev/ready
	.venv-dev/bin/ruff check
	.venv-dev/bin/ruff format --check
	.venv-dev/bin/mypy
	.venv-dev/bin/lint-imports
	NO_MKDOCS_2_WARNING=1 .venv-dev/bin/mkdocs build -q

audit: .venv-dev/ready
	.venv-dev/bin/python scripts/audit.py

lock: .venv-dev/ready
	.venv-dev/bin/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	  --upgrade --extra all pyproject.toml -o requirements.lock

docs: .venv-dev/ready
	.venv-dev/bin/mkdocs serve

.venv/ready: pyproject.toml
	$(call environment,.venv,embedded)
	@touch $@

.venv-clouds/ready: pyproject.toml
	$(call environment,.venv-clouds,dev$(comma)clouds)
	@touch $@

.venv-dev/ready: pyproject.toml
	$(call environment,.venv-dev,dev)
	@touch $@

clean:
	rm -rf .venv .venv-clouds .venv-dev
