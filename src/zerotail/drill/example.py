"""The example system, fitted for a drill."""

from __future__ import annotations

from typing import Any

import yaml

from zerotail.lab.example import CONFIGURATION
from zerotail.lab.layout import SITES, Layout
from zerotail.private import write_file

SILENCE_SECONDS = 4.0
"""After this long a watcher takes over, if one runs."""


def prepare_example(layout: Layout, *, replayed: bool = False, strategy: str = "auto") -> None:
    """zerotail numbers all instructions, since the business submits again what it got no answer for.

    `replayed`: after a takeover the state is rebuilt from the journal, and not taken from the database.
    """
    for site in SITES:
        path = layout.path / site / CONFIGURATION
        content: dict[str, Any] = yaml.safe_load(path.read_text())
        for producer in content["producers"].values():
            producer["serials"] = "numbered"
        # The scenario itself kills what is to be out; a second blow by a program of its own would only take time.
        del content["takeover"]["fence"]
        content["takeover"] |= {"automatic": True, "after": f"{SILENCE_SECONDS:g}s"}  # for scenarios with a watcher
        for channel in content["channels"].values():
            channel["batch"] = 1000
        content["restore"] = {"strategy": strategy}
        if replayed:
            for stage in content["stages"].values():
                stage["state"] = "replay"
        write_file(path, yaml.safe_dump(content, sort_keys=False))
