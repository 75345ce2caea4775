"""Get the locked jars: with Maven, or with the Ivy inside PySpark where there is no Maven.

Both tools know the central repository by themselves, so no address stands here. Every jar is asked for exactly, without
what it depends on (the lock file lists that too). The jars land in a scratch folder, are compared with the lock, and
only then appear under their name in one rename: a half-filled folder is never seen.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from zerotail.errors import Refused, Unavailable
from zerotail.jars.lock import FOLDERS, Folder, Jar, find_wrong_jar, jars_folder, locked_jars
from zerotail.machine import find_java

_TIMEOUT_SECONDS = 900


def install_jars() -> list[Path]:
    """Bring every folder of jars up to the lock file; answers the folders that had to be filled."""
    return [where for folder in FOLDERS if (where := _install_folder(folder))]


def _install_folder(folder: Folder) -> Path | None:
    where = jars_folder(folder)
    jars = [jar for jar in locked_jars() if jar.folder == folder]
    if find_wrong_jar(jars, where) is None:
        return None
    where.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=where.parent, prefix=f".{folder}-") as scratch:
        filled = Path(scratch) / "jars"
        _fetch(jars, Path(scratch), filled)
        if trouble := find_wrong_jar(jars, filled):
            raise Refused(f"the jars of {folder} were loaded, but {trouble}.", code="ZT101")
        shutil.rmtree(where, ignore_errors=True)
        filled.rename(where)
    return where


def _fetch(jars: Sequence[Jar], scratch: Path, target: Path) -> None:
    if maven := shutil.which("mvn"):
        command = _maven_command(maven, jars, scratch, target)
    elif ivy := find_ivy():
        command = _ivy_command(ivy, jars, scratch, target)
    else:
        raise Refused(
            "neither Maven nor PySpark's Ivy is here to load the jars with.",
            code="ZT102",
            tries=["apt-get install maven", "pip install 'zerotail[spark]'"],
        )
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_SECONDS,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"{command[0]} did not finish in {_TIMEOUT_SECONDS} s.", code="ZT103") from error
    if done.returncode != 0:
        last = (done.stdout + done.stderr).strip().splitlines()[-3:]
        raise Unavailable(f"{command[0]} could not load the jars: {' / '.join(last)}", code="ZT103")


def _maven_command(maven: str, jars: Sequence[Jar], scratch: Path, target: Path) -> list[str]:
    alone = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
    entries = "".join(
        f"<dependency><groupId>{jar.group}</groupId><artifactId>{jar.artifact}</artifactId>"
        f"<version>{jar.version}</version>{alone}</dependency>"
        for jar in jars
    )
    (scratch / "pom.xml").write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>zerotail</groupId><artifactId>jars</artifactId>"
        f"<version>1</version><dependencies>{entries}</dependencies></project>"
    )
    pom = str(scratch / "pom.xml")
    return [maven, "-q", "-B", "-f", pom, "dependency:copy-dependencies", f"-DoutputDirectory={target}"]


def find_ivy() -> Path | None:
    """The Ivy that PySpark carries, if PySpark is installed."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        return None
    return next(iter(sorted(Path(spec.submodule_search_locations[0]).glob("jars/ivy-*.jar"))), None)


def _ivy_command(ivy: Path, jars: Sequence[Jar], scratch: Path, target: Path) -> list[str]:
    (scratch / "settings.xml").write_text(
        f'<ivysettings><caches defaultCacheDir="{scratch / "ivy"}"/><settings defaultResolver="central"/>'
        '<resolvers><ibiblio name="central" m2compatible="true"/></resolvers></ivysettings>'
    )
    entries = "".join(
        f'<dependency org="{jar.group}" name="{jar.artifact}" rev="{jar.version}" transitive="false" '
        'conf="default->master"/>'
        for jar in jars
    )
    (scratch / "ivy.xml").write_text(
        '<ivy-module version="2.0"><info organisation="zerotail" module="jars"/>'
        f"<configurations><conf name='default'/></configurations><dependencies>{entries}</dependencies></ivy-module>"
    )
    target.mkdir()
    return [
        find_java() or "java",
        *("-jar", str(ivy), "-warn", "-settings", str(scratch / "settings.xml")),
        *("-ivy", str(scratch / "ivy.xml"), "-retrieve", f"{target}/[artifact]-[revision].[ext]"),
    ]
