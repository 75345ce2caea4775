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


def _nothing_is_compared(_: apply.Order) -> None:
    return


def _nothing_is_strange(rows: Any, _: object) -> Any:
    return np.zeros(len(rows), dtype=np.bool_)


apply._require_own_values = _nothing_is_compared
record._strange = _nothing_is_strange
sys.stderr.write("without the checks\n")
