"""Copies partitions in a process of its own, so that it can be killed at any moment.

python copier_process.py SOURCE TARGET TOPIC PARTITIONS TOKEN
"""

from __future__ import annotations

import sys

from support.copiers import orders
from zerotail.kafka.copy import PartitionCopier


def main() -> None:
    """Copy until killed, in transactions that are small and therefore many."""
    source, target, topic, partitions, token = sys.argv[1:]
    copiers = [PartitionCopier(order) for order in orders(source, target, topic, int(partitions), token, most=40)]
    sys.stdout.write("copying\n")
    sys.stdout.flush()
    while True:
        for copier in copiers:
            copier.work(0, 0.2)


if __name__ == "__main__":
    main()
