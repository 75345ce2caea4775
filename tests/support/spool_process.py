"""A service with a spool that can be killed at a chosen system call.

    python -m support.spool_process

Each line on stdin asks for one run: `{"phase": …, "folder": …, "config": …, "ids": […]}`. A child is forked, so that a
run costs no imports; it brings itself to the beginning of the phase, says `ready PID` and stops, to be traced and
continued. What it was told is durable it appends to `FOLDER.told`. When it has ended, `ended STATUS` is said.

In the phase `serve` it does not stop: several threads put, and what they put is drained, until somebody kills it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from threading import Thread
from typing import Any

from zerotail import Spool
from zerotail.config import load
from zerotail.errors import ZerotailError
from zerotail.spool.finish import drain_to_end
from zerotail.spool.sites import Sites

PATIENCE_SECONDS = 30.0
PARTITIONS = 2
THREADS = 4
LIMIT_BYTES = 1024 * 1024


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def stop_here() -> None:
    """Until somebody continues us."""
    say(f"ready {os.getpid()}")
    os.kill(os.getpid(), signal.SIGSTOP)


def put_all(spool: Spool, ids: list[str], told: Path) -> None:
    file = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for identifier in ids:
        spool.put(identifier, identifier.encode())
        os.write(file, f"{identifier}\n".encode())


def serve(folder: Path, config: str, run_name: str, told: Path) -> None:
    """Put without end from several threads, each with names and an account of its own."""
    file = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def put(thread: int) -> None:
        for number in range(10**9):
            identifier = f"{run_name}/{thread}/{number:09d}"
            spool.put(identifier, {"account": f"a{thread}", "amount": number}, partition=thread % PARTITIONS)
            os.write(file, f"{identifier}\n".encode())

    with Spool(folder, "cards-spooled", config=config, limit_bytes=LIMIT_BYTES) as spool:
        threads = [Thread(target=put, args=(thread,)) for thread in range(THREADS)]
        for thread in threads:
            thread.start()
        say(f"ready {os.getpid()}")
        for thread in threads:
            thread.join()


def run(phase: str, folder: Path, config: str, ids: list[str]) -> None:
    told = folder.with_suffix(".told")
    if phase == "open":
        stop_here()
        with Spool(folder, "cards-spooled") as spool:
            put_all(spool, ids, told)
    elif phase == "put":
        with Spool(folder, "cards-spooled") as spool:
            stop_here()
            put_all(spool, ids, told)
    elif phase == "serve":
        serve(folder, config, ids[0], told)
    else:
        sites = Sites.of(load(config))
        with Spool(folder, "cards-spooled") as spool:
            stop_here()
            drain_to_end(spool, sites, PATIENCE_SECONDS)
        sites.close()


def main() -> None:
    for line in sys.stdin:
        asked: dict[str, Any] = json.loads(line)
        child = os.fork()
        if child == 0:
            try:
                run(asked["phase"], Path(asked["folder"]), asked["config"], asked["ids"])
            except ZerotailError:
                os._exit(1)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        say(f"ended {os.waitstatus_to_exitcode(status)}")


if __name__ == "__main__":
    main()
