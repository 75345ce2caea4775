# `make demo` and `make test` are all a newcomer needs; each target sets up what it needs and may be repeated.

PYTHON  ?= python3
BIN     := .venv/bin
SEED    ?= 1
CRASHES ?= 100000

.PHONY: help setup demo test test-fast soak check bench simulate lock clean

help:            ## this list
	@grep -hE '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## /  make \1\t/' | expand -t 22

setup:           ## virtual environment, packages, Java, jars
	@$(PYTHON) tools/setup.py

demo: setup      ## two real sites on this machine, one of them lost
	@$(BIN)/zerotail demo

test: setup      ## all tests but those that take minutes (make soak)
	@$(BIN)/python -m pytest -m "fast or servers"

soak: setup      ## the tests that take minutes: a Spark cluster with executors and workers killed, long kills, the demo
	@$(BIN)/python -m pytest -m nightly

test-fast: setup ## the tests that start no servers, in under 3 minutes
	@$(BIN)/python -m pytest -n auto --dist worksteal -m fast

check: setup     ## ruff, mypy --strict, import-linter
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

simulate: setup  ## crash the simulated pair of sites: SEED=1 CRASHES=1000000
	@$(BIN)/python -m zerotail.simulation --seed $(SEED) --crashes $(CRASHES) --processes 2

bench: setup     ## the programs in bench/, which take long; published figures: zerotail bench --help
	@for program in bench/*.py; do echo "== $$program"; $(BIN)/python $$program || exit 1; done

lock: setup      ## write the requirement files and the jars' lock anew
	@$(BIN)/python tools/lock_packages.py
	@$(BIN)/python tools/lock_jars.py

clean:           ## remove environment and caches; labs, drills/ and the cache of jars stay
	@rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage build dist
