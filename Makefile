# Everything happens in .venv, made once and again when pyproject.toml or a lock changes.
# Needs Python 3.11 or newer and make, nothing else. `make help` lists what there is.

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq
CHROMIUM ?= $(shell command -v chromium || command -v chromium-browser || command -v google-chrome || echo chromium)
AXE := 4.14.0# of axe-core, which checks that everybody can use the page; the hash is that of axe.min.js
AXE_SHA256 := 20c09fe157a8a34a30e241aaa1fcdade657734f08ab379ecfbeb7d45cc46e878
TORCH := $(shell grep '^torch==' constraints.txt)
# Wheels alone, each with a hash in locks/: nothing is built, and a file that was changed is refused.
LOCKED := $(PIP) install --require-hashes --no-deps --only-binary :all: -r
# The first of these that runs, is new enough and can make an environment; `make PYTHON=…` overrules.
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	$$python -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$python && break; done)

export OMP_NUM_THREADS ?= 1
# What one process has compiled, the next one loads: the tests start hundreds.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo test browser chromium check slow docs wheel lock clean
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

help: ## list these targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1|\2/p' Makefile | awk -F'|' '{ printf "  %-12s %s\n", $$1, $$2 }'

demo: $(VENV)/ready-all ## set up, remember mnemic's documentation, ask it, show the evidence
	@$(BIN)/mnemic demo
	@echo "(mnemic is $(BIN)/mnemic; \`source $(BIN)/activate\` puts it on the path.)"

test: $(VENV)/ready-test ## set up and run the tests
	@echo "test: pytest, on all cores"
	@$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

browser: chromium $(VENV)/ready-test $(VENV)/ready-browser $(VENV)/axe-core/axe.min.js ## test the page in the system's Chromium
	@echo "browser: pytest -m browser, with $$($(CHROMIUM) --version 2>/dev/null)"
	@CHROMIUM="$(CHROMIUM)" $(BIN)/python -m pytest -m browser tests/browser

# Debian's, for root, if there is none yet.
chromium:
	@command -v "$(CHROMIUM)" >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && echo "set up: Debian's chromium" && apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium >/dev/null && command -v "$(CHROMIUM)" >/dev/null; } || { echo "make: there is no chromium here; install it (apt-get install chromium), or give its path: make browser CHROMIUM=/path/to/chromium" >&2; exit 2; }

slow: $(VENV)/ready-test ## run the long proofs
	@echo "slow: pytest -m slow"
	@$(BIN)/python -m pytest -m slow

check: $(VENV)/ready-check ## lint, format, types
	@echo "check: ruff check, ruff format --check, mypy"
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet . || { $(BIN)/ruff format --check . ; exit 1; }
	@$(BIN)/mypy --no-error-summary

docs: $(VENV)/ready-docs ## build docs/_build/html; a warning is an error
	@echo "docs: sphinx-build -W"
	@$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html
	@echo "docs: docs/_build/html/index.html"

# The time of the last commit in place of the clock's: the same commit gives the same bytes.
wheel: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 1577836800)
wheel: $(VENV)/ready ## build dist/mnemic-*.whl and the list of what it needs (SBOM)
	@rm -rf build
	@umask 022 && $(PIP) wheel --no-deps --no-build-isolation -w dist .
	@$(BIN)/python tools/sbom.py dist
	@ls dist/*

lock: $(VENV)/ready-test $(VENV)/ready-browser $(VENV)/ready-check $(VENV)/ready-docs ## write locks/ anew, from constraints.txt
	@$(BIN)/python tools/lock.py

clean: ## remove the environment and everything that was built
	rm -rf $(VENV) build dist docs/_build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The package and what it needs. Torch comes alone, exactly as pinned and without a hash: its build
# (CPU or CUDA) is then chosen by pip's own configuration and by nothing else.
$(VENV)/ready: pyproject.toml constraints.txt locks/base.txt
	@test -n "$(PYTHON)" || { echo "make: no Python 3.11 or newer with venv here; install one or give its path: make PYTHON=/path/to/python3.12" >&2; exit 2; }
	@echo "set up: $(VENV) with $$($(PYTHON) --version), $(TORCH) and mnemic (a few minutes the first time)"
	@$(PYTHON) -m venv $(VENV)
	@$(LOCKED) locks/base.txt
	@$(PIP) install -c constraints.txt $(TORCH)
	@$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

# What an extra of pyproject.toml adds.
$(VENV)/ready-%: $(VENV)/ready locks/%.txt
	@echo "set up: what mnemic[$*] adds"
	@$(LOCKED) locks/$*.txt
	@touch $@

# A single file of a package of npm, for `make browser` alone.
$(VENV)/axe-core/axe.min.js: Makefile | $(VENV)/ready
	@command -v npm >/dev/null || { echo "make: npm fetches axe-core $(AXE) (apt-get install npm)" >&2; exit 2; }
	@mkdir -p $(@D)
	@cd $(@D) && npm pack --silent axe-core@$(AXE) >/dev/null && tar -xzf axe-core-$(AXE).tgz --strip-components 1 package/axe.min.js
	@echo "$(AXE_SHA256)  $@" | $(BIN)/python -c 'import hashlib, sys; digest, path = sys.stdin.read().split(); sys.exit(hashlib.sha256(open(path, "rb").read()).hexdigest() != digest and f"make: {path} has another hash than the Makefile says")'
	@touch $@
