"""Restorations: the records of a partition, in whatever order they lie there, come out in the order of the
journal.

skip        nobody puts the order right: what the vector covers is passed over, the rest follows as it lies
unbounded   one read; whatever is early is kept
bounded     limited memory, at most producers + 1 reads; finishes for every interleaving
scatter     one read, for logs in which even one producer's records may stand in any order

All of them drop and count repeats, foreign records and records beyond the journal's end, and refuse by name
when a record is missing. The sequence that leaves is the same for all that restore.
"""

from zerotail.core.restoration.batch import Batch, Log
from zerotail.core.restoration.bounded import CacheLimit, Spill, bounded
from zerotail.core.restoration.scatter import scatter
from zerotail.core.restoration.skip import skip
from zerotail.core.restoration.statistics import Restored, Statistics
from zerotail.core.restoration.unbounded import unbounded

__all__ = [
    "Batch",
    "CacheLimit",
    "Log",
    "Restored",
    "Spill",
    "Statistics",
    "bounded",
    "scatter",
    "skip",
    "unbounded",
]
