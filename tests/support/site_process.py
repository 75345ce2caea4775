"""The processes of one site in one process that can be killed and frozen: producers, stages, emitters, followers.

    python -m support.site_process --config FILE --site east

Each story has a thread and is started again when it has ended by itself, as a supervisor would; each end is told on
stdout. At the standby everything but the follower ends at once and waits for its turn.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import Any

from zerotail.channel.configured import sender_of
from zerotail.config import Configuration, load
from zerotail.core.identity import SiteName
from zerotail.deadline import Deadline
from zerotail.failover.follow import follow
from zerotail.failover.takeover import Pipeline
from zerotail.flow.emit import emit
from zerotail.flow.produce import produce
from zerotail.flow.stage import run_stage
from zerotail.operate.adapters import BadDayAdapters
from zerotail.operate.pipeline import read_pipeline
from zerotail.ports import Feed, Story
from zerotail.postgres.connection import session
from zerotail.running.code_versions import versions_of
from zerotail.wiring import drive

AGAIN_SECONDS = 0.1
Stories = dict[str, Callable[[], Story[Any]]]


def stories_of(configuration: Configuration, pipeline: Pipeline, site: SiteName) -> Iterator[tuple[str, Any]]:
    for stage in pipeline.stages:
        name = f"{stage.name}/{stage.partition}"
        yield f"stage {name}", lambda stage=stage: run_stage(stage, site)
        yield f"follower {name}", lambda stage=stage: follow(stage, site)
        for producer in pipeline.producers[stage.name]:
            feed = Feed(producer, stage.topic, stage.partition, stage.name)
            yield f"producer {producer}/{stage.partition}", lambda feed=feed: produce(feed, site)
    for lane in pipeline.lanes:
        sender = sender_of(configuration, lane, site)
        yield f"emitter {lane.channel}/{lane.partition}", lambda sender=sender: emit(sender)


def supervise(name: str, make: Callable[[], Story[Any]], configuration: Configuration, site: SiteName) -> None:
    adapters = BadDayAdapters(configuration, site)
    never = Event()
    told = ""
    while True:
        ended = drive(make(), adapters, never)
        line = f"{name} ended: {ended.name}\n"
        if line != told:
            sys.stdout.write(line)
            sys.stdout.flush()
            told = line
        never.wait(AGAIN_SECONDS)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--site", required=True)
    options = parser.parse_args()
    configuration, site = load(options.config), SiteName(options.site)
    with session(configuration.sites[site].database.dsn.reveal(), Deadline.after(30)) as connection:
        pipeline = read_pipeline(configuration, connection)
    # A takeover goes by the versions in the journal; whoever works notes today's.
    stages = tuple(replace(stage, version=versions_of(configuration, stage.name)[0]) for stage in pipeline.stages)
    pipeline = replace(pipeline, stages=stages)
    threads = [
        Thread(target=supervise, args=(name, make, configuration, site), daemon=True)
        for name, make in stories_of(configuration, pipeline, site)
    ]
    for thread in threads:
        thread.start()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
