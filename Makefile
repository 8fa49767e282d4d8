# Every target sets up what it needs: Python 3.11+, make and the package registry suffice.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 2
# Small matrices: one BLAS thread each, parallelism is over tests.
export OPENBLAS_NUM_THREADS ?= 1
export OMP_NUM_THREADS ?= 1
export PIP_DISABLE_PIP_VERSION_CHECK ?= 1
NO_BROWSER := No Chromium found and none could be installed (that takes apt and root). Install chromium with the package manager of this machine, then run make test-browser again.

.PHONY: demo test lint format bench docs pictures readme test-browser chromium clean

demo: $(VENV)/.installed
	$(BIN)/python examples/demo.py

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(JOBS)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/run.py

docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html
	@echo "Documentation: docs/_build/html/index.html"

# Pictures and numbers of the README, and its tables from these and the benchmarks' results.
pictures: $(VENV)/.browser
	$(BIN)/python docs/images/make_images.py
	$(MAKE) --no-print-directory readme

readme: $(VENV)/.installed
	$(BIN)/python docs/_extensions/readme_tables.py

test-browser: $(VENV)/.browser
	GP4C_TEST_BROWSER=1 $(BIN)/python -m pytest tests/browser

$(VENV)/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "gp4c needs Python 3.11 or newer; point PYTHON at one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	@touch $@

$(VENV)/.docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable ".[docs]"
	@touch $@

# Headless Chromium, the distribution's own. Where it is missing, installing it needs apt and root
# (or sudo without a password); elsewhere install it by hand.
$(VENV)/.browser: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --editable ".[browser]"
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || $(MAKE) --no-print-directory chromium
	@touch $@

chromium:
	@command -v apt-get >/dev/null || { echo "$(NO_BROWSER)"; exit 1; }
	@SUDO=$$([ "$$(id -u)" = 0 ] || echo "sudo -n"); \
	  { $$SUDO apt-get update -qq && \
	    $$SUDO env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium >/dev/null; } || \
	  { echo "$(NO_BROWSER)"; exit 1; }

clean:
	rm -rf $(VENV) docs/_build docs/gallery docs/benchmarks.md docs/api/generated .pytest_cache .ruff_cache .mypy_cache
