# Everything starts here; nothing but make, a Python 3.11+ and the right to install tmux is expected.

PY := .venv/bin/python
PYTEST_ARGS ?=
BENCH_ARGS ?=

# Lets `make PYTHON=/path/to/python3 setup` choose the interpreter.
export PYTHON

.DEFAULT_GOAL := help
.PHONY: help setup tmux shells sshd web chromium up screenshots test test-real test-live real-agents check format bench pins clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: ## make .venv with the pinned versions and perdure itself
	@scripts/setup

tmux: ## see that tmux 3.2 or newer is there, install it where that is allowed
	@scripts/need-tmux

shells:
	@scripts/need-shells

sshd:
	@scripts/need-sshd

web: ## build the dashboard into the package; needs Node.js 20.19 or newer
	@scripts/web build

chromium:
	@scripts/need-chromium >/dev/null || echo "The tests in a browser are left out."

up: setup tmux ## watch this machine's panes and save what changes, until Ctrl-C
	@exec .venv/bin/perdure up

# Four at once on however few cores: part of the time a test waits for tmux, an agent, a browser or a database.
# First, beside the checks, all tests are read once and kept as bytecode: whoever runs them would do so each for itself.
test: setup tmux shells sshd chromium ## all checks and all tests, apart from those that need real agents
	@unset PYTHONDONTWRITEBYTECODE; $(PY) -m pytest -qq --collect-only >/dev/null 2>&1 & \
	$(MAKE) --no-print-directory check; checked=$$?; wait; exit $$checked
	@unset PYTHONDONTWRITEBYTECODE; $(PY) -m pytest -q -rs -n 4 --dist worksteal $(PYTEST_ARGS)

real-agents: ## install the real agent programs the tests know, in their pinned versions
	@scripts/real-agents

# Two at once: some of these programs take a gigabyte each. What is not installed is skipped, with the reason.
test-real: setup tmux ## the tests that run real agents against a stub model
	@$(PY) -m pytest -q -m "real_agent and not crowd" -rs -n 2 --dist worksteal tests/real_agents $(PYTEST_ARGS)

# One at a time, and not by continuous integration: ten agents at once, each followed by the second.
test-live: setup tmux ## the tests that watch all real agents at once; they need a quiet machine
	@$(PY) -m pytest -q -m crowd -rs tests/real_agents $(PYTEST_ARGS)

screenshots: setup tmux chromium ## take the pictures of the dashboard in docs/images
	@$(PY) -m scripts.screenshots

check: setup ## lint, layout, types, and the dashboard's own checks and tests
	@$(PY) -m ruff check --quiet
	@$(PY) -m ruff format --check --quiet || { echo "Some files are not formatted: make format"; exit 1; }
	@$(PY) -m mypy --no-error-summary
	@scripts/web check

format: setup ## put every file into its layout
	@$(PY) -m ruff check --quiet --fix-only
	@$(PY) -m ruff format --quiet

bench: setup tmux ## measure
	@$(PY) -m bench $(BENCH_ARGS)

pins: setup ## take the newest versions into requirements/dev.txt
	@$(PY) scripts/pin.py

clean: ## remove what was built, .venv included
	@rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis bench/results web/node_modules src/perdure/web_dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
