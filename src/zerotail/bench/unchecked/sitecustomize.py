"""Takes checks out of what runs: that a value is the one of its digest, and that a record is of this installation.

Python imports this module at the start of every interpreter whose path has this folder, and only `zerotail bench
checks` puts it there: the code that is shipped has no switch.
"""

# mypy: disable-error-code="assignment"

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from zerotail.core import record
from zerotail.flow import apply

_checked = record.decode_column


def _nothing_is_compared(_: apply.Order) -> None:
    return


def _nothing_is_strange(column: Any, _: object = None) -> record.Headers:
    """What a column says, whoever has written it; one with rows of others is read as always."""
    if hasattr(column, "chunks"):
        return record._concatenate([_nothing_is_strange(chunk) for chunk in column.chunks])
    own, rows = record._rows_of(column)
    if not own.all():
        return _checked(column)
    return record.Headers(
        own=own,
        epochs=(rows["epoch"] & record._LARGEST_EPOCH).astype(np.int64),
        producers=rows["producer"].astype(np.int64),
        serials=rows["serial"].astype(np.int64),
        digests=rows["digest"].astype(np.uint64),
    )


apply._require_own_values = _nothing_is_compared
record.decode_column = _nothing_is_strange
sys.stderr.write("without the checks\n")
