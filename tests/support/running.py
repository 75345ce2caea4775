"""A system that is run as a user runs it: a configuration, code beside it, and `zerotail run` as processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Any

from psycopg.conninfo import make_conninfo

from support.backend_log import STATEMENTS_LOGGED
from support.command import call
from zerotail.deadline import Deadline, wait_until
from zerotail.lab.database import dsn
from zerotail.lab.layout import Layout
from zerotail.lab.receiver import ReceiverControl
from zerotail.lab.receiver.protocol import PartitionTotals
from zerotail.postgres.connection import session

PATIENCE_SECONDS = 180.0
FLOWS = '''
import os
import signal
import sys
import time

from zerotail import Emission, Given, Record, State


class Settle:
    """Adds an amount to an account and tells the bank."""

    version = "{version}"

    def keys(self, record: Record) -> list[str]:
        return [record.value["account"]]

    def apply(self, record: Record, state: State, given: Given) -> list[Emission]:
        account = record.value["account"]
        state[account] = balance = state.get(account, 0) + record.value["amount"]
        if record.value.get("poison"):
            raise ValueError("cannot settle this")
        harm(record.value.get("harm"))
        return [Emission("{channel}", {{"account": account, "balance": balance}})]


def harm(how: str | None) -> None:
    if how == "hangs":
        try:
            time.sleep(3600)
        except OSError:
            raise
    elif how == "is deaf":
        sum(iter(int, 1))
    elif how == "exits":
        os._exit(3)
    elif how == "is killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif how == "is slow":
        time.sleep(1.2)
    elif how == "takes its time":
        time.sleep(0.7)
    elif how == "leaves":
        sys.exit(3)
    elif how == "is stubborn":
        while True:
            try:
                time.sleep(3600)
            except Exception:
                pass


def doubled(value: bytes) -> bytes:
    return value.replace(b'"amount":', b'"amount":2')


def picky(value: bytes) -> bytes:
    if b"no record" in value:
        raise ValueError("no record can be made of this")
    if b"the door " in value:
        harm(value.split(b"the door ")[1].split(b'"')[0].decode())
    return value.replace(b"huge", b"x" * 2_000_000)
'''
_INSERT = """
insert into zerotail.instruction (producer, partition, serial, id, value)
select producer.producer, %(partition)s, n, n::text || '/' || %(partition)s,
       convert_to(json_build_object('account', 'account ' || n %% 997, 'amount', n)::text, 'utf8')
  from zerotail.producer cross join generate_series(%(first)s::bigint, %(last)s::bigint) as n
 where producer.name = %(name)s
"""


@dataclass
class Running:
    """One such system in the warm lab, apart from every other by its names."""

    lab: Layout
    folder: Path
    name: str
    partitions: int = 1
    producers: tuple[str, ...] = ("cards", "wires")
    numbered: tuple[str, ...] = ()
    """Producers whose rows come without a serial."""
    spooled: tuple[str, ...] = ()
    """Producers whose rows come from the queue of a service, in the folder `queue`."""
    receiver: str = "R2"
    spark: dict[str, Any] = field(default_factory=dict)
    stage: dict[str, Any] = field(default_factory=dict)
    ways: dict[str, int] = field(default_factory=dict)
    """By site: the port by which its processes reach the database there; else straight."""
    takeover: dict[str, Any] = field(default_factory=dict)
    transform: str = ""
    """A function of the code beside the configuration, for all producers."""
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    inserted: dict[tuple[str, int], int] = field(default_factory=dict)
    submitted: int = 0
    """Rows that were inserted without a serial."""
    skipped: int = 0
    """Instructions that an operator passed over: they owe the outside nothing."""

    @property
    def config(self) -> Path:
        return self.folder / "zerotail.yaml"

    @property
    def log(self) -> Path:
        return self.folder / "log"

    @property
    def channel(self) -> str:
        return f"bank-{self.name}"

    @property
    def topic(self) -> str:
        return f"payments-{self.name}"

    @property
    def stage_name(self) -> str:
        return f"settle-{self.name}"

    @property
    def database(self) -> str:
        return dsn(self.lab.database("east"))

    def content(self) -> dict[str, Any]:
        """The configuration."""
        judge = f"http://127.0.0.1:{self.lab.receiver_port}"
        sites: dict[str, Any] = {
            site: {
                "kafka": {"bootstrap": self.lab.bootstrap(site, seen_from="east")},
                "database": {"dsn": dsn(self.lab.database(site), seen_from="east")},
            }
            for site in ("east", "west")
        }
        for site, port in self.ways.items():
            sites[site]["database"] = {"dsn": make_conninfo(dsn(self.lab.database(site)), port=port)}
        bank: dict[str, Any] = {"kind": "http", "url": f"{judge}/batches", "receiver": self.receiver, "batch": 500}
        if self.receiver in ("R0", "R2"):
            bank["last_number_url"] = f"{judge}/claims"
        return {
            "name": self.name,
            "sites": sites,
            "topics": {self.topic: {"partitions": self.partitions, "replication": 1, "min_insync": 1}},
            "producers": {
                f"{producer}-{self.name}": {"topic": self.topic, "serials": serials, "resend_after": "2s"}
                | ({"transform": f"flows_{self.name}:{self.transform}"} if self.transform else {})
                for serials, names in (("given", self.producers), ("numbered", self.numbered))
                for producer in names
            }
            | {
                f"{producer}-{self.name}": {
                    "topic": self.topic,
                    "source": "spool",
                    "spool": "queue",
                    "resend_after": "2s",
                }
                for producer in self.spooled
            },
            "stages": {
                self.stage_name: {
                    "consumes": self.topic,
                    "handler": f"flows_{self.name}:Settle",
                    "emits": [self.channel],
                    **self.stage,
                }
            },
            "channels": {self.channel: bank},
            "spark": self.spark,
            "takeover": self.takeover,
        }

    def write(self, version: str = "1") -> None:
        """Write configuration and code."""
        self.config.write_text(json.dumps(self.content()))
        (self.folder / f"flows_{self.name}.py").write_text(FLOWS.format(version=version, channel=self.channel))

    def start(self, *what: str, site: str = "east") -> subprocess.Popen[bytes]:
        """Start `zerotail run …`."""
        command = [sys.executable, "-m", "zerotail", "run", *what, "--site", site, "--config", str(self.config)]
        with self.log.open("ab") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self.processes.append(process)
        return process

    def insert(self, count: int, *, producers: tuple[str, ...] | None = None, locally: bool = False) -> None:
        """So many instructions more of each producer, in each partition; `locally` waits for no other site."""
        with session(self.database, Deadline.after(PATIENCE_SECONDS)) as primary:
            if locally:
                primary.execute("set synchronous_commit = local")
            for producer in producers or self.producers:
                for partition in range(self.partitions):
                    last = self.inserted.get((producer, partition), 0)
                    place = {
                        "name": f"{producer}-{self.name}",
                        "partition": partition,
                        "first": last + 1,
                        "last": last + count,
                    }
                    assert primary.execute(_INSERT, place).rowcount == count
                    self.inserted[producer, partition] = last + count

    def insert_value(self, producer: str, partition: int, value: bytes) -> int:
        """One instruction with this very value; its serial."""
        serial = self.inserted.get((producer, partition), 0) + 1
        with session(self.database, Deadline.after(PATIENCE_SECONDS)) as primary:
            primary.execute(
                "insert into zerotail.instruction (producer, partition, serial, id, value) "
                "select producer, %s, %s, %s, %s from zerotail.producer where name = %s",
                (partition, serial, f"{serial}/{partition}", value, f"{producer}-{self.name}"),
            )
        self.inserted[producer, partition] = serial
        return serial

    @property
    def expected(self) -> int:
        """Messages that the outside is to get."""
        return sum(self.inserted.values()) + self.submitted - self.skipped

    def totals(self) -> list[PartitionTotals]:
        control = ReceiverControl(self.lab.receiver_control_port)
        found = control.totals(deadline=Deadline.after(PATIENCE_SECONDS)).partitions
        return [totals for totals in found if totals.channel == self.channel]

    def accepted(self) -> int:
        return sum(totals.accepted for totals in self.totals())

    def wait_until_all_arrived(self, seconds: float = PATIENCE_SECONDS) -> None:
        self.wait(f"{self.expected} messages have arrived", lambda: self.accepted() >= self.expected, seconds)

    def wait_for_progress(self, messages: int = 200) -> None:
        """Return when messages arrive that were not there before."""
        before = self.accepted()
        self.wait("it goes on", lambda: self.accepted() > before + messages)

    def status(self) -> dict[str, Any]:
        """What `zerotail status` says."""
        return call("status", "--config", str(self.config), "--json").answer("status")

    def words(self, role: str) -> dict[int | None, dict[str, Any]]:
        """What the processes of a role say of themselves, by partition; for several of one partition, the last."""
        said = self.status()["processes"]
        return {one["partition"]: one for one in said if one["role"] == role and one["name"].endswith(f"-{self.name}")}

    def counted(self, role: str, counter: str) -> int:
        """The sum of a counter since the processes began."""
        name = f"%-{self.name}"
        rows = self.sql(
            "select coalesce(sum((counters ->> %s)::bigint), 0)::bigint from zerotail.process "
            "where role = %s and name like %s",
            counter,
            role,
            name,
        )
        return int(rows[0][0])

    def require_exactly_once(self) -> None:
        """The receiver has every message, in order, none twice, none missing."""
        totals = self.totals()
        assert sum(one.accepted for one in totals) == self.expected
        for one in totals:
            assert (one.accepted, one.missing, one.out_of_order) == (one.distinct, 0, 0)
            assert one.different_bytes == 0

    def wait_for_line(self, text: str, seconds: float = PATIENCE_SECONDS) -> None:
        self.wait(f"the log says {text!r}", lambda: text in self.log.read_text(), seconds)

    def wait(self, what: str, probe: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> None:
        try:
            wait_until(what, probe, Deadline.after(seconds), every_seconds=0.1)
        except Exception as error:
            raise AssertionError(f"{error}; the log ends with: {self.log.read_text()[-2000:]}") from error

    def sql(self, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        with session(self.database, Deadline.after(PATIENCE_SECONDS)) as primary:
            return primary.execute(query.encode(), parameters).fetchall()

    def end(self) -> None:
        """End what still runs, first as a user would."""
        for process in self.processes:
            if process.poll() is None:
                process.terminate()
        for process in self.processes:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                for pid in [*descendants(process.pid), process.pid]:
                    os.kill(pid, signal.SIGKILL)
                process.wait()


@contextmanager
def running_system(lab: Layout, folder: Path, name: str, **options: Any) -> Iterator[Running]:
    """A system whose processes are gone behind the block."""
    system = Running(lab, folder, name, **options)
    system.write()
    try:
        yield system
    finally:
        system.end()


@contextmanager
def trickle(system: Running, rows: int = 40, every_seconds: float = 0.1, *, locally: bool = False) -> Iterator[None]:
    """Instructions all the time, as long as the block runs."""
    stop = Event()

    def insert() -> None:
        while not stop.wait(every_seconds):
            system.insert(rows, locally=locally)

    thread = Thread(target=insert)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def wait_for_progress(system: Running) -> None:
    """Return when messages arrive that were not there before."""
    before = system.accepted()
    system.wait("it goes on", lambda: system.accepted() > before + 200)


def reconcile(system: Running) -> None:
    """`zerotail reconcile` finds nothing wrong at either site."""
    command = [sys.executable, "-m", "zerotail", "reconcile", "--config", str(system.config), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["ok"]


def kill_points(folder: Path) -> dict[str, str]:
    """The environment in which processes heed what is armed in this folder (`support/killpoints`)."""
    ours = Path(__file__).with_name("killpoints")
    return {
        "ZT_KILL_POINTS": str(folder),
        "PYTHONPATH": os.pathsep.join([str(ours), os.environ.get("PYTHONPATH", "")]),
        "PGOPTIONS": STATEMENTS_LOGGED,
    }


def descendants(pid: int) -> list[int]:
    """Children of a process, and theirs."""
    found = []
    for child in _children(pid):
        found += [child, *descendants(child)]
    return found


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits for its parent does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def find_worker(root: int) -> int | None:
    """A Python worker of Spark that carries out tasks: a process that was forked by our daemon."""
    daemons = [pid for pid in descendants(root) if "zerotail.spark.daemon" in command_line(pid)]
    workers = [child for daemon in daemons for child in _children(daemon) if is_alive(child)]
    return workers[0] if workers else None


def command_line(pid: int) -> str:
    """What a process was started as; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def find_process(root: int, *words: str) -> int | None:
    """The first descendant whose command line has all these words."""
    for pid in descendants(root):
        if all(word in command_line(pid) for word in words):
            return pid
    return None


def _children(pid: int) -> list[int]:
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(child) for thread in threads for child in (thread / "children").read_text().split()]
    except OSError:
        return []
