# Two commands matter: `make hunt` (find and shrink failures for two minutes) and `make test`.
# Everything else they need is installed into $(VENV) from $(PYTHON), which must be Python 3.11 or newer.
#
#   make hunt ARGS="--libtpu 0.0.50.1 --topology v6e:2x2"     more options: .venv/bin/scanshrink hunt --help
#   make test PYTEST_ARGS="-x -k scan"                        more options reach pytest
#   make test-fast PYTHON=python3.13 VENV=.venv-3.13          another Python beside the first

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV ?= .venv
SECONDS_TO_HUNT ?= 120
ARGS ?=
PYTEST_ARGS ?=

BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
FAST := -m "not slow" --ignore=tests/libtpu

.PHONY: help venv hunt test test-fast lint format wheel clean clean-venv

help:
	@echo "make hunt       hunt for failures of the newest libtpu for $(SECONDS_TO_HUNT) seconds (options: ARGS=...)"
	@echo "make test       lint, types and every test, the real compiler's included"
	@echo "make test-fast  the tests that need no compiler"
	@echo "make lint       ruff and mypy --strict;  make format: ruff's formatter"
	@echo "make wheel      dist/*.whl;  make venv: only install;  make clean, make clean-venv"

venv: $(STAMP)

# The stamp is touched last, so an interrupted install is taken up again by the next make. An environment whose
# Python or pip does not answer (moved, half made, of an uninstalled Python) is made anew: nothing of it can be kept.
$(STAMP): pyproject.toml constraints.txt
	@command -v "$(PYTHON)" >/dev/null || { echo "error: no $(PYTHON) on this machine; install Python 3.11 or newer, or name one: make PYTHON=/path/to/python3.12" >&2; exit 2; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "error: $(PYTHON) is $$("$(PYTHON)" --version 2>&1), and Python 3.11 or newer is needed; name one: make PYTHON=/path/to/python3.12" >&2; exit 2; }
	@rm -f "$(STAMP)"
	@"$(BIN)/python" -m pip --version >/dev/null 2>&1 || { rm -rf "$(VENV)"; "$(PYTHON)" -m venv "$(VENV)" >/dev/null || { rm -rf "$(VENV)"; echo "error: $(PYTHON) cannot make a virtual environment; install its venv module (Debian: apt-get install python3-venv)" >&2; exit 2; }; }
	@echo "Installing scanshrink, JAX and libtpu into $(VENV) (once; about 1 GB on disk)"
	@"$(BIN)/python" -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch "$(STAMP)"

hunt: $(STAMP)
	@"$(BIN)/scanshrink" hunt --seconds $(SECONDS_TO_HUNT) $(ARGS)

test: lint
	"$(BIN)/python" -m pytest --hypothesis-profile=ci $(PYTEST_ARGS)

test-fast: $(STAMP)
	"$(BIN)/python" -m pytest --hypothesis-profile=ci $(FAST) $(PYTEST_ARGS)

lint: $(STAMP)
	"$(BIN)/ruff" check
	"$(BIN)/mypy"

format: $(STAMP)
	"$(BIN)/ruff" check --fix
	"$(BIN)/ruff" format

wheel: $(STAMP)
	"$(BIN)/python" -m build --wheel

# Finds are not cleaned: corpus/ and finds/ stay.
clean:
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage .coverage.*
	find reducer strategies tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

clean-venv:
	rm -rf "$(VENV)"
