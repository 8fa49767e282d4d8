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

.PHONY: demo test evidence evidence-all fuzz trust test-lowest test-newest coverage mutation lock build-check lint format bench docs pictures readme peers peers-r test-browser chromium clean

demo: $(VENV)/.installed
	$(BIN)/python examples/demo.py

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python requirements/check.py

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Campaigns that take longer than a test may; results are committed and quoted on docs/reliability.md.
MINUTES ?= 10
FUZZ_MINUTES ?= $(MINUTES)
FUZZ_SEED ?= 0
fuzz: $(VENV)/.dev
	cd tests && ../$(BIN)/python -m fuzz.run --minutes $(FUZZ_MINUTES) --seed $(FUZZ_SEED) --out fuzz/results.json

trust: $(VENV)/.dev
	$(BIN)/python tests/trust/campaign.py $(MINUTES)

# Branches of src that the suite runs, and by which test: about twice as slow as the suite.
coverage: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(JOBS) --cov --cov-context=test --cov-report= \
	  --junitxml=.coverage.xml -o junit_family=xunit1
	$(BIN)/python -m coverage json --quiet -o .coverage.json
	$(BIN)/python tests/mutation/coverage_figures.py

# Wrong changes to the folders of src/gp4c from model to classical that no test notices.
# Needs the tests by line of `make coverage`, which it runs if they are not there; goes on where it
# was stopped.
mutation: $(VENV)/.dev $(VENV)/.mutation
	@test -e .coverage || $(MAKE) --no-print-directory coverage
	$(BIN)/python tests/mutation/run.py

# The lock files: newest versions that fit together, on every supported Python.
lock: $(VENV)/.lock
	$(BIN)/python requirements/lock.py

# Wheel and sdist, each installed where nothing else is, and used; needs the registry.
build-check: $(VENV)/.dev $(VENV)/.lock
	$(BIN)/python requirements/build_check.py  # python -m build

# The suite with the oldest versions that pyproject.toml admits, and with the newest of today, each
# in an environment of its own; PYTHON chooses the interpreter.
test-lowest: RESOLUTION = lowest-direct
test-newest: RESOLUTION = highest
test-lowest test-newest: test-%: $(VENV)/.lock
	$(BIN)/uv venv --quiet --clear --python "$$(command -v $(PYTHON))" $(VENV)-$*
	$(BIN)/uv pip install --quiet --python $(VENV)-$* --resolution $(RESOLUTION) --editable ".[all,test]"
	$(BIN)/uv pip freeze --quiet --python $(VENV)-$* --exclude-editable
	$(VENV)-$*/bin/python -m pytest -n $(JOBS) -p no:cacheprovider

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/run.py

# Every committed result: its command, its date, whether its source has changed since, who quotes it.
# evidence-all makes those anew that are stale or unfinished, quick ones first, and the tables of
# pages after them: an evening and more; it goes on where it was stopped.
evidence: $(VENV)/.dev
	$(BIN)/python benchmarks/evidence.py

evidence-all: $(VENV)/.dev
	$(BIN)/python benchmarks/evidence.py --all
	$(MAKE) --no-print-directory readme

# gp4c beside other packages, in environments that it does not share: half an hour, resumable.
# What cannot be installed is skipped, and the result says so. R's packages are the distribution's.
$(VENV)-peers/.installed: NAMES = statsmodels surpyval numpyro "jax[cpu]" pandas
$(VENV)-peers-gpflow/.installed: NAMES = gpflow tensorflow-cpu pandas
peers: $(VENV)/.dev
	-$(MAKE) --no-print-directory $(VENV)-peers/.installed
	-$(MAKE) --no-print-directory $(VENV)-peers-gpflow/.installed
	@command -v Rscript >/dev/null || $(MAKE) --no-print-directory peers-r || \
	  echo "R could not be installed: mgcv and glmmTMB are skipped."
	$(BIN)/python benchmarks/run.py peers
	$(BIN)/python docs/images/make_peers.py
	$(BIN)/python docs/_extensions/peer_tables.py

$(VENV)-peers/.installed $(VENV)-peers-gpflow/.installed:
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install --quiet $(NAMES)
	@touch $@

peers-r:
	@SUDO=$$([ "$$(id -u)" = 0 ] || echo "sudo -n"); \
	  $$SUDO env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
	  r-cran-mgcv r-cran-glmmtmb

docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html
	@echo "Documentation: docs/_build/html/index.html"

# Pictures and numbers of the README; its tables, and those of the documentation, from results.
pictures: $(VENV)/.browser
	$(BIN)/python docs/images/make_images.py
	$(BIN)/python docs/images/make_peers.py
	$(MAKE) --no-print-directory readme

readme: $(VENV)/.installed
	$(BIN)/python docs/_extensions/readme_tables.py
	$(BIN)/python docs/_extensions/reliability_tables.py
	$(BIN)/python docs/_extensions/peer_tables.py
	$(BIN)/python docs/_extensions/guide_tables.py

test-browser: $(VENV)/.browser
	GP4C_TEST_BROWSER=1 $(BIN)/python -m pytest tests/browser

# Packages come from the lock files, checked against their hashes: requirements/install.py.
$(VENV)/.installed: pyproject.toml requirements/run.lock requirements/install.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "gp4c needs Python 3.11 or newer; point PYTHON at one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python requirements/install.py run
	@touch $@

$(VENV)/.dev $(VENV)/.docs $(VENV)/.mutation $(VENV)/.lock: $(VENV)/.%: $(VENV)/.installed requirements/%.lock
	$(BIN)/python requirements/install.py $*
	@touch $@

# Headless Chromium, the distribution's own. Where it is missing, installing it needs apt and root
# (or sudo without a password); elsewhere install it by hand.
$(VENV)/.browser: $(VENV)/.dev requirements/browser.lock
	$(BIN)/python requirements/install.py browser
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || $(MAKE) --no-print-directory chromium
	@touch $@

chromium:
	@command -v apt-get >/dev/null || { echo "$(NO_BROWSER)"; exit 1; }
	@SUDO=$$([ "$$(id -u)" = 0 ] || echo "sudo -n"); \
	  { $$SUDO apt-get update -qq && \
	    $$SUDO env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium >/dev/null; } || \
	  { echo "$(NO_BROWSER)"; exit 1; }

clean:
	rm -rf $(VENV) $(VENV)-lowest $(VENV)-newest $(VENV)-peers $(VENV)-peers-gpflow docs/_build docs/gallery docs/benchmarks.md docs/api/generated .pytest_cache .ruff_cache .mypy_cache
