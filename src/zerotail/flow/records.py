"""Records of rows: what a producer's transform makes of them, up to the first one of which it makes none."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from zerotail.handler import NOT_ITS_OWN, describe

Transform = Callable[[bytes], bytes]


def make_records(transform: Transform, rows: Sequence[bytes], made: list[bytes]) -> str:
    """Append the value of each row's record to `made`; why the next one has none, empty when all have one.

    What is not the transform's own leaves it, with `made` as far as it came.
    """
    place = -1
    try:
        for place, row in enumerate(rows):  # noqa: B007 - whoever interrupts reads there which row it is
            made.append(_bytes_of(transform(row)))
    except NOT_ITS_OWN:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever somebody's code raises
        return f"the transform cannot take it: {describe(error)}"
    return ""


def _bytes_of(value: object) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise TypeError(f"it gave {type(value).__name__}, not bytes")
    return bytes(value)
