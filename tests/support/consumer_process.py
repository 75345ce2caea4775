"""Members of a consumer group that can be killed, frozen and slowed down.

    python -m support.consumer_process

Each line on stdin starts one: `{"bootstrap": …, "group": …, "topic": …, "dsn": …, "settings": {…}}`; it is forked, so
that a start costs no imports, and `started PID` is said. The work inserts every record into the table `result`. Some
values make it misbehave:

    freeze NAME   the first member that meets it stops in the middle of its transaction (SIGSTOP)
    slow NAME     the first member that meets it takes longer than Kafka waits for a poll
    stuck         never comes back
    nap           takes a moment
    bad NAME      fails until NAME is in the table `allowed`
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import Any

from zerotail.consume import Record, consume
from zerotail.postgres.connection import Connection

SLOW_SECONDS = 9.0
TABLES = (
    "create table if not exists result (number bigserial, topic text, partition int, record bigint, worker int)",
    "create table if not exists allowed (name text)",
    "create table if not exists met (name text primary key)",
)


def is_first(dsn: str, name: str) -> bool:
    """Whether nobody has met this value before; remembered at once, in a transaction of its own."""
    from zerotail.deadline import Deadline
    from zerotail.postgres.connection import session

    with session(dsn, Deadline.after(30)) as connection:
        return connection.execute("insert into met values (%s) on conflict do nothing", (name,)).rowcount == 1


def run(asked: dict[str, Any]) -> None:
    def work(record: Record, transaction: Connection) -> None:
        word, _, name = (record.value or b"").decode().partition(" ")
        transaction.execute(
            "insert into result (topic, partition, record, worker) values (%s, %s, %s, %s)",
            (*record.partition, record.offset, os.getpid()),
        )
        if word == "freeze" and is_first(asked["dsn"], name):
            os.kill(os.getpid(), signal.SIGSTOP)
        elif word == "slow" and is_first(asked["dsn"], name):
            time.sleep(SLOW_SECONDS)
        elif word == "stuck":
            signal.pause()
        elif word == "nap":
            time.sleep(0.05)
        elif word == "bad" and not transaction.execute("select 1 from allowed where name = %s", (name,)).fetchone():
            raise ValueError(name)

    consume(asked["bootstrap"], asked["group"], [asked["topic"]], asked["dsn"], work, settings=asked["settings"])


def main() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how they ended
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            run(json.loads(line))
            os._exit(0)
        sys.stdout.write(f"started {child}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
