"""Named bugs."""

from contextlib import nullcontext


def planted(name):
    return nullcontext()
