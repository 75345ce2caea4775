# `make demo` and `make test` are all a newcomer needs; each target sets up what it needs and may be repeated.

PYTHON  ?= python3
BIN     := .venv/bin
SEED    ?= 1
CRASHES ?= 100000

.PHONY: help setup demo test test-fast nightly check bench figures simulate lock clean

help:            ## this list
	@grep -hE '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## /  make \1\t/' | expand -t 22

setup:           ## virtual environment, packages, Java, jars
	@$(PYTHON) tools/setup.py

demo: setup      ## two real sites on this machine, one of them lost
	@$(BIN)/zerotail demo

test: check      ## everything that a change must pass, with real servers
	@$(BIN)/python -m pytest -n 3 --durations 40 -m "fast or servers"

test-fast: setup ## what starts no servers, in under 3 minutes
	@$(BIN)/python -m pytest -n 2 --durations 40 -m fast

nightly: setup   ## everything else, up to 6 hours: all drills, long kills, clusters; goes on where it was broken off
	@$(BIN)/python tools/nightly.py

check: setup     ## ruff, mypy --strict, import-linter
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

simulate: setup  ## crash the simulated pair of sites: SEED=1 CRASHES=1000000
	@$(BIN)/python -m zerotail.simulation --seed $(SEED) --crashes $(CRASHES) --processes 2

bench: setup     ## the programs in bench/, which take long; published figures: make figures
	@for program in bench/*.py; do echo "== $$program"; $(BIN)/python $$program || exit 1; done

figures: setup   ## measure every published figure again and write the pages; hours, goes on where broken off: FIGURES="--only flow"
	@$(BIN)/python tools/figures.py $(FIGURES)

lock: setup      ## write the requirement files and the jars' lock anew
	@$(BIN)/python tools/lock_packages.py
	@$(BIN)/python tools/lock_jars.py

clean:           ## remove environment and caches; labs, drills/ and the cache of jars stay
	@rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage build dist
