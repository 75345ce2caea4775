"""Spark's daemon of Python workers, which here has imported everything before it forks one.

    spark.python.daemon.module = zerotail.spark.daemon

As Spark has it, every worker imports for itself: a second of processor time each, several of them at every start of a
site. A worker that is forked with everything imported is ready at once, and its memory is shared.

A process with threads must not be forked, and both NumPy and Arrow start one when they are imported, unless they are
told not to. If one is there nevertheless, Spark's own daemon takes over the process before anybody has asked for it.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path

_SPARKS_OWN = "pyspark.daemon"
_WITHOUT_THREADS = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}


def main() -> None:
    os.environ.update(_WITHOUT_THREADS)
    from zerotail.spark.worker import load_code, settle_worker  # Arrow comes with it, hence behind its setting

    load_code()
    settle_worker()
    if len(list(Path("/proc/self/task").iterdir())) > 1:
        os.execv(sys.executable, [sys.executable, "-m", _SPARKS_OWN, *sys.argv[1:]])  # noqa: S606 - the same program
    import_module(_SPARKS_OWN).manager()


if __name__ == "__main__":
    main()
