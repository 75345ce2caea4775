"""The command line: parses, asks the stories, prints what they answer. It holds no rule of its own."""

from __future__ import annotations


def main() -> None:
    """The `zerotail` program."""
    from zerotail.cli.frame import run

    run()
