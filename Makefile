# Each target makes and fills .venv by itself; a fresh machine needs Python 3.11 or newer and make.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-all check clean

demo: .venv/.installed
	$(BIN)/parley demo

test: .venv/.tested
	$(BIN)/python -m pytest -q -n 2 -m "not slow"

test-all: .venv/.tested
	$(BIN)/python -m pytest -q -n 2

check: .venv/.checked
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

.venv/.installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

.venv/.tested: .venv/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test]"
	touch $@

.venv/.checked: .venv/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test,check]"
	touch $@

clean:
	rm -rf .venv dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
