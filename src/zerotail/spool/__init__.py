"""The spool: a durable queue on the local disk, drained into instruction rows behind the gate.

`frame` says how entries lie in a file, `folder` and `store` keep the files, `commit` lets threads share an `fsync`,
`spool` is what a service uses, `drain` brings the entries to the active site, `status` looks from outside.
"""

from zerotail.spool.spool import Spool

__all__ = ["Spool"]
