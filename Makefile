# Every target sets up what it needs by itself; the second time that costs next to nothing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: setup demo test prove lint bench docs clean help

setup: $(READY)  ## install what is needed in .venv (plain 'make' does this)
	@$(BIN)/python -m compileall -q src tests
	@$(if $(filter-out setup,$(MAKECMDGOALS)),,echo "Trinco is set up: try $(BIN)/trinco --help; 'make help' lists the targets")

# What is installed is pinned in constraints.txt, so that a fresh machine gets what we tested with.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Trinco needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	@test "$$($(BIN)/python -V 2>&1)" = "$$($(PYTHON) -V)" || { rm -rf $(VENV); $(PYTHON) -m venv $(VENV); }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@$(BIN)/python -m tests.pythons
	@$(BIN)/python -m tests.stores.binaries
	@touch $(READY)

SHOW = @printf '\n$$ %s\n'

demo: setup  ## a lock on the command line and one in Python
	$(SHOW) 'trinco run nightly -- echo hello'
	@$(BIN)/trinco run nightly -- echo hello
	$(SHOW) 'python -m demo.counter'
	@$(BIN)/python -m demo.counter

test: setup lint  ## lint, and all tests
	@$(BIN)/python -m pytest -n auto

prove: setup  ## check what the docs claim at full size; takes long
	@$(BIN)/python -m tests.prove

lint: setup  ## format, style, types, and who may import whom
	@$(BIN)/ruff format --check --quiet . || { echo "ruff: run '$(BIN)/ruff format .'"; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-logo >/dev/null || $(BIN)/lint-imports

bench: setup  ## measure simulator, checker and locks
	@$(BIN)/python bench/simulator.py
	@$(BIN)/python bench/checker.py
	@$(BIN)/python bench/locks.py

docs: setup  ## write the generated pages again
	@$(BIN)/python docs/generate.py

clean:  ## remove .venv and all caches
	rm -rf $(VENV) .pythons .servers .mypy_cache .ruff_cache .pytest_cache .hypothesis src/*.egg-info

help:  ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/\1\t\2/p' Makefile | expand -t 8
