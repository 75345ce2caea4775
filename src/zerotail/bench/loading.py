"""A load as a process of its own, so that it does not share an interpreter with whoever measures."""

from __future__ import annotations

import argparse

from zerotail.config import load
from zerotail.deadline import Deadline
from zerotail.lab.load import Load, LoadSettings, find_database

_REGISTERED_SECONDS = 60.0


def main() -> None:
    """Insert what the arguments say."""
    parser = argparse.ArgumentParser(prog="python -m zerotail.bench.loading", description=__doc__)
    parser.add_argument("--config", required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--rate", type=float, default=0.0)
    parser.add_argument("--accounts", type=int, default=20_000)
    options = parser.parse_args()
    configuration = load(options.config)
    settings = LoadSettings(options.count, options.rate, accounts=options.accounts)
    database = find_database(configuration)
    Load(configuration, database, settings, Deadline.after(_REGISTERED_SECONDS)).run()


if __name__ == "__main__":
    main()
