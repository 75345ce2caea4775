"""A real Spark cluster in a lab: a master and two workers of one core each, from what PySpark brings along.

Executors are children of their worker, and the Python processes are children of an executor: all of them inherit the
marks in a worker's environment, so they are killed, stopped and found with the worker. Handlers are looked up where the
configuration of the cluster's site lies.
"""

from __future__ import annotations

import http.client
import importlib.util
import os
import secrets
import sys
from pathlib import Path

import msgspec

import zerotail
from zerotail.errors import Refused
from zerotail.lab.broker import require_java
from zerotail.lab.layout import SITES, Layout
from zerotail.lab.process import Command, start
from zerotail.private import write_file

_JAVA_OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true")
_SETTINGS = {
    # A second door to the master, on a port that every lab would want.
    "spark.master.rest.enabled": "false",
    # The ports are promised to this lab: the next free one would be somebody else's.
    "spark.port.maxRetries": "0",
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
}
_SECRET_VARIABLE = "_SPARK_AUTH_SECRET"  # noqa: S105 - a name: where Spark looks, so that no command line shows it
_CORES, _MEMORY = "1", "1g"
_ANSWER_SECONDS = 2.0


class _Worker(msgspec.Struct, frozen=True):
    port: int
    state: str


class _Page(msgspec.Struct, frozen=True):
    """What we want to know of the master's page."""

    status: str
    workers: list[_Worker]


def require_spark() -> Path:
    """The folder with Spark's jars and programs; `Refused` when PySpark is not installed."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise Refused("PySpark is not installed.", code="ZT107", tries=["pip install 'zerotail[spark]'"])
    return Path(spec.submodule_search_locations[0])


def start_spark(layout: Layout, part: str) -> int:
    """Start the master or a worker; answers its pid."""
    place, folder = layout.spark_place(part), layout.folder_of(part)
    (folder / "tmp").mkdir(parents=True, exist_ok=True)
    listen = ["--host", _host(layout, part), "--port", str(place.port), "--webui-port", str(place.page_port)]
    if place == layout.spark[0]:
        program = ["org.apache.spark.deploy.master.Master", *listen]
    else:
        resources = ["--cores", _CORES, "--memory", _MEMORY, "--work-dir", str(folder / "work")]
        program = ["org.apache.spark.deploy.worker.Worker", *listen, *resources, layout.spark_master]
    settings = [f"-D{name}={value}" for name, value in {**_SETTINGS, "java.io.tmpdir": folder / "tmp"}.items()]
    arguments = [require_java(), *_JAVA_OPTIONS, *settings, "-cp", f"{require_spark()}/jars/*", *program]
    return start(layout.path, Command(part, arguments, folder), _environment(layout, folder))


def secret_of(layout: Layout) -> Path:
    """The file with the secret of the lab's cluster, made when it is first asked for."""
    file = layout.path / SITES[0] / "spark-secret"
    if not file.exists():
        write_file(file, secrets.token_hex(32))
    return file


def _host(layout: Layout, part: str) -> str:
    """Two names of one address: Spark runs a second attempt of a task only where it sees another host."""
    return "localhost" if part == layout.spark[-1].part else "127.0.0.1"


def _environment(layout: Layout, folder: Path) -> dict[str, str]:
    """What Spark's own scripts would set; settings of another Spark on this machine are left aside."""
    handlers, ours = layout.path / SITES[0], Path(zerotail.__file__).parents[1]
    paths = [str(handlers), str(ours), *filter(None, [os.environ.get("PYTHONPATH")])]
    home = require_spark()
    (core,) = (home / "jars").glob("spark-core_*.jar")
    return {
        "SPARK_HOME": str(home),
        "SPARK_SCALA_VERSION": core.name.removeprefix("spark-core_").partition("-")[0],
        "SPARK_CONF_DIR": str(folder),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder / "tmp"),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(paths),
        "LC_ALL": "C.UTF-8",
        _SECRET_VARIABLE: secret_of(layout).read_text(),
    }


def spark_serves(layout: Layout, part: str) -> bool:
    """Whether the master is at work, or knows the worker as one that is."""
    page = _find_page(layout.spark[0].page_port)
    if page is None or page.status != "ALIVE":
        return False
    place = layout.spark_place(part)
    alive = {worker.port for worker in page.workers if worker.state == "ALIVE"}
    return place == layout.spark[0] or place.port in alive


def _find_page(port: int) -> _Page | None:
    """The master's page; None when nobody answers there."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_ANSWER_SECONDS)
    try:
        connection.request("GET", "/json/")
        return msgspec.json.decode(connection.getresponse().read(), type=_Page)
    except (OSError, http.client.HTTPException, msgspec.DecodeError):
        return None
    finally:
        connection.close()
