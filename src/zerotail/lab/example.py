"""The example system, a small bank, for a lab: its configuration with the lab's addresses, and its handlers beside it.

    LAB/zerotail.yaml        for people and programs that stand outside: every server is reached directly
    LAB/east/zerotail.yaml   for what runs in east: its own servers directly, those of west through the link
    LAB/west/zerotail.yaml   the other way round

Each has `flows.py` in its folder, because that is where handlers are looked up. What the file says of producers, stages
and channels is the example's; addresses, the receiver's class and the numbers of copies and partitions are the lab's.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import yaml

import zerotail
from zerotail.errors import Refused
from zerotail.lab.database import dsn
from zerotail.lab.layout import SITES, LabSettings, Layout
from zerotail.lab.spark import secret_of

EXAMPLES = {"bank": "zerotail.yaml", "two-stages": "two_stages.yaml"}
"""The variants of the example, and the file of each."""
CONFIGURATION = "zerotail.yaml"
HANDLERS = "flows.py"
EXAMPLE_FILES = (CONFIGURATION, HANDLERS)
"""What the example puts into a folder; Python adds `__pycache__`."""
_WINDOW = 100
"""For R3: each window costs a commit and a question at the gate, and one message at a time is slower than a drill."""


def example_folder() -> Path:
    """Where the example lies: inside an installed package, or at the top of a clone."""
    package = Path(zerotail.__file__).parent
    for folder in (package / "examples" / "bank", package.parents[1] / "examples" / "bank"):
        if (folder / HANDLERS).is_file():
            return folder
    raise Refused("the example is not part of this installation.", tries=["pip install --force-reinstall zerotail"])


def write_example(layout: Layout, settings: LabSettings) -> None:
    """Put the example into the lab's folder and into those of its sites."""
    for place in (None, *SITES):
        folder = layout.path / place if place else layout.path
        folder.mkdir(exist_ok=True)
        shutil.copyfile(example_folder() / HANDLERS, folder / HANDLERS)
        (folder / CONFIGURATION).write_text(_text(layout, settings, place))


def remove_example(folder: Path) -> None:
    """Take the example out of a folder again."""
    for name in EXAMPLE_FILES:
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder / "__pycache__", ignore_errors=True)


def _text(layout: Layout, settings: LabSettings, seen_from: str | None) -> str:
    written = yaml.safe_dump(plan_configuration(layout, settings, seen_from), sort_keys=False, width=110)
    who = f"in {seen_from}" if seen_from else "outside the two sites"
    return f"# The example `{settings.example}` in this lab, for what runs {who}.\n{written}"


def plan_configuration(layout: Layout, settings: LabSettings, seen_from: str | None) -> dict[str, Any]:
    """The example's configuration for this lab, with the addresses as they are seen from a site, or from outside."""
    if layout.stretch:
        return _plan_stretched(layout, seen_from)
    content: dict[str, Any] = yaml.safe_load((example_folder() / EXAMPLES[settings.example]).read_text())
    content["sites"] = _sites(layout, seen_from)
    for act, verb in (("fence", "fence"), ("stop", "stop-database"), ("attach", "rejoin")):
        words = [sys.executable, "-m", "zerotail", "lab", verb, "{site}", "--dir", str(layout.path)]
        content.setdefault("takeover", {})[act] = words
    copies = min(3, settings.brokers)
    for topic in content["topics"].values():
        topic.update(partitions=settings.partitions, replication=copies, min_insync=max(1, copies - 1))
    for channel in content["channels"].values():
        if channel["kind"] == "http":
            del channel["last_number_url"]
            channel.update(_receiver(layout))
    if layout.spark_cluster and seen_from == SITES[0]:  # where the cluster is: nobody else may depend on it
        content["spark"]["master"] = layout.spark_master
        secret = f"${{file:{secret_of(layout)}}}"
        content["spark"].setdefault("settings", {})["spark.authenticate.secret"] = secret
    return content


def _sites(layout: Layout, seen_from: str | None) -> dict[str, Any]:
    return {
        site: {
            "kafka": {"bootstrap": layout.bootstrap(site, seen_from=seen_from)},
            "database": {"dsn": dsn(layout.database(site), seen_from=seen_from)},
        }
        for site in SITES
    }


def _plan_stretched(layout: Layout, seen_from: str | None) -> dict[str, Any]:
    """One cluster for both sites: there is nothing to take over and nothing to mirror, but something to audit."""
    return {
        "name": "stretch",
        "sites": _sites(layout, seen_from),
        "clusters": {"wide": {"bootstrap": layout.wide_bootstrap}},
        "mirrors": [{"name": "wide", "topology": "stretch", "source": "wide", "topics": [".*"]}],
    }


def _receiver(layout: Layout) -> dict[str, str | int]:
    """The lab's receiver as a channel names it; which fields there are depends on what it can do."""
    url = f"http://127.0.0.1:{layout.receiver_port}"
    named: dict[str, str | int] = {"url": f"{url}/batches", "receiver": layout.receiver_class}
    if layout.receiver_class in ("R0", "R2"):
        named["last_number_url"] = f"{url}/claims"
    if layout.receiver_class == "R3":
        named |= {"policy": "hold", "window": _WINDOW}
    return named
