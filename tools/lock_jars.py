"""Write `src/zerotail/jars/jars.lock` anew: resolve the roots below with Maven and note every jar's SHA-256.

Run it when a version changes, look at the difference, and run the whole suite with the new jars:

    python tools/lock_jars.py
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

LOCK = Path(__file__).parent.parent / "src" / "zerotail" / "jars" / "jars.lock"

# Kafka stands on SLF4J 1.7 and Spark on 2.0, hence two folders and two classpaths.
ROOTS = {
    "kafka": [
        "org.apache.kafka:kafka_2.13:4.3.1",
        "org.apache.kafka:connect-mirror:4.3.1",
        "org.apache.logging.log4j:log4j-slf4j-impl:2.25.5",
    ],
    # What PySpark does not bring along; each exactly, nothing of what they depend on.
    # The token provider is of 4.0.0: newer ones are not published, and it serves delegation tokens only.
    "spark": [
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
        "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
        "org.apache.kafka:kafka-clients:3.9.2",
        "org.apache.commons:commons-pool2:2.13.1",
    ],
    "agent": ["io.prometheus.jmx:jmx_prometheus_javaagent:1.0.1"],
}
TRANSITIVE = {"kafka": True, "spark": False, "agent": False}


def pom(coordinates: list[str], *, transitive: bool) -> str:
    """A throw-away project that depends on the given coordinates."""
    exclusion = (
        ""
        if transitive
        else "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
    )
    entries = []
    for coordinate in coordinates:
        group, artifact, version = coordinate.split(":")
        entries.append(
            f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
            f"<version>{version}</version>{exclusion}</dependency>"
        )
    return (
        "<project><modelVersion>4.0.0</modelVersion><groupId>zerotail</groupId><artifactId>jars</artifactId>"
        f"<version>1</version><dependencies>{''.join(entries)}</dependencies></project>"
    )


def resolve(folder: str) -> list[str]:
    """The lock's lines for one folder."""
    with tempfile.TemporaryDirectory() as scratch:
        project = Path(scratch)
        (project / "pom.xml").write_text(pom(ROOTS[folder], transitive=TRANSITIVE[folder]))
        maven = ["mvn", "-q", "-B", "-f", str(project / "pom.xml")]
        subprocess.run(
            [*maven, "dependency:list", "-DincludeScope=runtime", f"-DoutputFile={project}/list"], check=True
        )
        subprocess.run(
            [
                *maven,
                "dependency:copy-dependencies",
                "-DincludeScope=runtime",
                f"-DoutputDirectory={project}/out",
            ],
            check=True,
        )
        lines = []
        for entry in (project / "list").read_text().splitlines():
            parts = entry.strip().split(" ")[0].split(":")
            if len(parts) != 5:
                continue
            group, artifact, _kind, version, _scope = parts
            digest = hashlib.sha256((project / "out" / f"{artifact}-{version}.jar").read_bytes()).hexdigest()
            lines.append(f"{folder} {group}:{artifact}:{version} {digest}")
        return sorted(lines)


if __name__ == "__main__":
    head = "# Written by tools/lock_jars.py: folder, group:artifact:version, SHA-256 of the jar.\n"
    LOCK.write_text(head + "".join(f"{line}\n" for folder in ROOTS for line in resolve(folder)))
    sys.stdout.write(f"wrote {LOCK}\n")
