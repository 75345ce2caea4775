"""A Kafka cluster alone: three brokers and a controller of their own, without the rest of a site.

The controller is a process of its own, as in production: brokers can then be killed and frozen in any number, and
somebody is left who decides about leaders. Every node can be killed, frozen, thawed and started by its number; each of
these returns when the kernel shows that it took effect.
"""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from zerotail.deadline import Deadline, wait_until
from zerotail.errors import Unfinished
from zerotail.kafka.admin import wait_until_brokers_live
from zerotail.lab.broker import ENVIRONMENT, format_node, java_command, new_cluster_id
from zerotail.lab.ports import release_ports, reserve_ports
from zerotail.lab.process import Command, Process, kill, processes_of, send, start

BROKERS = (1, 2, 3)
CONTROLLER = 9
SESSION_SECONDS = 3.0
"""How long a broker may be silent until the controller counts it as gone; Kafka's default is 9 s."""
_PATIENCE_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class BrokerCluster:
    """The nodes by number: brokers 1 to 3, and the controller."""

    folder: Path
    ports: dict[int, int]

    @property
    def bootstrap(self) -> str:
        """The brokers' addresses."""
        return ",".join(f"127.0.0.1:{self.ports[number]}" for number in BROKERS)

    def folder_of(self, number: int) -> Path:
        """Settings, data and log of a node."""
        return self.folder / _part(number)

    def kill(self, numbers: Iterable[int]) -> tuple[int, ...]:
        """Kill -9, all at once; answers the pids that are gone."""
        gone = kill(self.folder, {_part(number) for number in numbers}, Deadline.after(_PATIENCE_SECONDS))
        return tuple(sorted(process.pid for process in gone))

    def freeze(self, numbers: Iterable[int]) -> tuple[int, ...]:
        """SIGSTOP: the nodes keep their connections and say nothing; answers the pids that stand still."""
        return self._signal(numbers, signal.SIGSTOP, lambda process: process.state == "T")

    def thaw(self, numbers: Iterable[int]) -> tuple[int, ...]:
        """SIGCONT; answers the pids that run again."""
        return self._signal(numbers, signal.SIGCONT, lambda process: process.state != "T")

    def start(self, numbers: Iterable[int]) -> None:
        """Start nodes that are not running; does not wait until they serve."""
        for number in numbers:
            command = Command(
                _part(number), [*java_command(), "kafka.Kafka", "server.properties"], self.folder_of(number)
            )
            start(self.folder, command, ENVIRONMENT)

    def _signal(
        self, numbers: Iterable[int], which: signal.Signals, took: Callable[[Process], bool]
    ) -> tuple[int, ...]:
        parts = {_part(number) for number in numbers}

        def all_took() -> tuple[Process, ...] | None:
            mine = tuple(process for process in processes_of(self.folder) if process.part in parts)
            waiting = [process for process in mine if not took(process)]
            for process in waiting:
                send(process, which)
            return mine if mine and not waiting else None

        what = f"{', '.join(sorted(parts))} obey {which.name}"
        done = wait_until(what, all_took, Deadline.after(_PATIENCE_SECONDS), every_seconds=0.005, late=Unfinished)
        return tuple(sorted(process.pid for process in done))


@contextmanager
def temporary_cluster() -> Iterator[BrokerCluster]:
    """Three brokers and their controller, for the length of a block."""
    with tempfile.TemporaryDirectory(prefix="zerotail-") as scratch:
        folder = Path(scratch)
        numbers = (*BROKERS, CONTROLLER)
        cluster = BrokerCluster(folder, dict(zip(numbers, reserve_ports(len(numbers), folder), strict=True)))
        try:
            identity = new_cluster_id()
            with ThreadPoolExecutor(len(numbers)) as pool:
                list(pool.map(lambda number: _format(cluster, number, identity), numbers))
            cluster.start(numbers)
            wait_until_brokers_live(cluster.bootstrap, len(BROKERS), Deadline.after(_PATIENCE_SECONDS))
            yield cluster
        finally:
            cluster.kill(numbers)
            release_ports(folder)


def _part(number: int) -> str:
    return "controller" if number == CONTROLLER else f"kafka.{number}"


def _format(cluster: BrokerCluster, number: int, identity: str) -> None:
    folder = cluster.folder_of(number)
    folder.mkdir()
    settings = _controller_settings(cluster) if number == CONTROLLER else _broker_settings(cluster, number)
    text = "".join(f"{name}={value}\n" for name, value in settings.items())
    format_node(cluster.folder, _part(number), folder, text, identity)


def _shared_settings(cluster: BrokerCluster, number: int) -> dict[str, object]:
    return {
        "node.id": number,
        "controller.quorum.voters": f"{CONTROLLER}@127.0.0.1:{cluster.ports[CONTROLLER]}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "LOCAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": "data",
    }


def _controller_settings(cluster: BrokerCluster) -> dict[str, object]:
    return {
        **_shared_settings(cluster, CONTROLLER),
        "process.roles": "controller",
        "listeners": f"CONTROLLER://127.0.0.1:{cluster.ports[CONTROLLER]}",
        "broker.session.timeout.ms": int(SESSION_SECONDS * 1000),
        # Leaders move when somebody dies or asks for it, and at no other time.
        "auto.leader.rebalance.enable": "false",
    }


def _broker_settings(cluster: BrokerCluster, number: int) -> dict[str, object]:
    address = f"LOCAL://127.0.0.1:{cluster.ports[number]}"
    return {
        **_shared_settings(cluster, number),
        "process.roles": "broker",
        "listeners": address,
        "advertised.listeners": address,
        "inter.broker.listener.name": "LOCAL",
        "broker.heartbeat.interval.ms": int(SESSION_SECONDS * 150),
        "auto.create.topics.enable": "false",
        # What is on the disk for certain is written down at once, not each minute.
        "log.initial.task.delay.ms": 250,
        "log.flush.offset.checkpoint.interval.ms": 250,
    }
