# Everything starts here; nothing but make, a Python 3.11+ and the right to install tmux is expected.

PY := .venv/bin/python
PYTEST_ARGS ?=
BENCH_ARGS ?=

# Lets `make PYTHON=/path/to/python3 setup` choose the interpreter.
export PYTHON

.DEFAULT_GOAL := help
.PHONY: help setup tmux up test check format bench pins clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: ## make .venv with the pinned versions and perdure itself
	@scripts/setup

tmux: ## see that tmux 3.2 or newer is there, install it where that is allowed
	@scripts/need-tmux

up: setup tmux ## save this machine's panes and show them
	@.venv/bin/perdure save
	@.venv/bin/perdure ls

test: setup tmux check ## all checks and all tests, apart from those that need real agents
	@$(PY) -m pytest -q -n auto --maxprocesses 4 $(PYTEST_ARGS)

check: setup ## lint, layout, types
	@$(PY) -m ruff check --quiet
	@$(PY) -m ruff format --check --quiet || { echo "Some files are not formatted: make format"; exit 1; }
	@$(PY) -m mypy --no-error-summary

format: setup ## put every file into its layout
	@$(PY) -m ruff check --quiet --fix-only
	@$(PY) -m ruff format --quiet

bench: setup tmux ## measure
	@$(PY) -m bench $(BENCH_ARGS)

pins: setup ## take the newest versions into requirements/dev.txt
	@$(PY) scripts/pin.py

clean: ## remove what was built, .venv included
	@rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis bench/results
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
