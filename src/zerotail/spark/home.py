"""A home for Spark whose Python processes need not compile pyspark again.

Spark puts `python/lib/pyspark.zip` of its home in front of everything that its Python processes import. Python keeps
nothing compiled for an archive, so each of the dozen processes of a session compiles what it imports of it: half a
second of processor time each. In a home without that archive they find the installed pyspark: the same, and compiled.

The home lies inside the Spark that it belongs to, and goes with it. Where that cannot be written to, or somebody has
set a home of his own, everything works as Spark has it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pyspark

_SHARED = ("bin", "jars")


def spark_home() -> Path:
    """Where the home is, or would be."""
    return Path(pyspark.__file__).with_name("zerotail")


def use_spark_home() -> None:
    """Let Spark start from there; has no effect on one that was started before."""
    home = spark_home()
    with suppress(OSError):
        home.mkdir(exist_ok=True)
        for name in _SHARED:
            with suppress(FileExistsError):
                (home / name).symlink_to(Path("..") / name)
    if all((home / name).is_dir() for name in _SHARED):
        os.environ.setdefault("SPARK_HOME", str(home))
