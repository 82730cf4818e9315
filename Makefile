PYTHON ?= python3
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
PINNED := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt
CHECKED := src tests
PYTEST := $(BIN)/pytest

.DEFAULT_GOAL := help
.PHONY: help setup demo test bench soak lint format mixin clean programs

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.ready-test ## make .venv and install the pinned dependencies

demo: $(VENV)/.ready-demo ## run Northwind, the demo (ARGS="--runs 50 --seed 7")
	@$(BIN)/handoffwatch demo $(ARGS)

test: setup programs lint ## set up, lint, and run all tests but the benchmarks
	$(PYTEST) -m "not bench" $(ARGS)

bench: setup ## print the ratios against the frozen baselines
	$(PYTEST) tests/benchmarks -m bench -s $(ARGS)

soak: setup programs ## run the long seeded tests whole
	HANDOFFWATCH_SOAK=1 $(PYTEST) -m soak $(ARGS)

lint: setup ## check style, types and import layers
	$(BIN)/ruff check $(CHECKED)
	$(BIN)/ruff format --check $(CHECKED)
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup ## rewrite the code in the one style
	$(BIN)/ruff check --fix $(CHECKED)
	$(BIN)/ruff format $(CHECKED)

mixin: setup ## render the dashboards and rules again
	$(BIN)/handoffwatch mixin render --docs

clean: ## remove .venv and everything that tools left behind
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache handoffwatch-ledger.db*
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

programs:
	@tests/support/install-programs

$(BIN)/python:
	@command -v "$(PYTHON)" >/dev/null || { \
	  echo "error: no program named $(PYTHON)" >&2; \
	  echo "hint: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; exit 2; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "error: handoffwatch needs Python 3.11 or newer, $(PYTHON) is $$("$(PYTHON)" -V 2>&1)" >&2; \
	  echo "hint: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; exit 2; }
	@"$(PYTHON)" -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "error: $(PYTHON) cannot make a virtual environment" >&2; \
	  echo "hint: on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 2; }

$(VENV)/.ready-%: pyproject.toml constraints.txt | $(BIN)/python
	$(PINNED) -e '.[$*]'
	@touch $@
