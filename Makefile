# Every target sets up what it needs by itself; the second time that costs next to nothing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: setup demo test prove lint bench docs clean

setup: $(READY)
	@$(BIN)/python -m compileall -q src tests

# What is installed is pinned in constraints.txt, so that a fresh machine gets what we tested with.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Trinco needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@$(BIN)/python -m tests.pythons
	@touch $(READY)

# Shows a command. An exhibit violates something, so it must exit 1.
SHOW = @printf '\n$$ trinco %s\n'

demo: setup
	$(SHOW) 'sim ricart-agrawala -n 5'
	@$(BIN)/trinco sim ricart-agrawala -n 5
	$(SHOW) 'check ricart-agrawala -n 3 --rounds 2'
	@$(BIN)/trinco check ricart-agrawala -n 3 --rounds 2
	$(SHOW) 'sim quorum-lease --clients 3 --byzantine silent --delay exponential:0.05'
	@$(BIN)/trinco sim quorum-lease --clients 3 --byzantine silent --delay exponential:0.05
	$(SHOW) 'exhibit ricart-agrawala/no-tie-break'
	@$(BIN)/trinco exhibit ricart-agrawala/no-tie-break || test $$? -eq 1

test: setup lint
	@$(BIN)/python -m pytest -n auto

prove: setup
	@$(BIN)/python -m tests.prove

lint: setup
	@$(BIN)/ruff format --check --quiet . || { echo "ruff: run '$(BIN)/ruff format .'"; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-logo >/dev/null || $(BIN)/lint-imports

bench: setup
	@$(BIN)/python bench/simulator.py
	@$(BIN)/python bench/checker.py

docs: setup
	@$(BIN)/python docs/generate.py

clean:
	rm -rf $(VENV) .pythons .mypy_cache .ruff_cache .pytest_cache .hypothesis src/*.egg-info
