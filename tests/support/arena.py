"""A lab that may be ruined: sites are lost and promoted in it, and then it is put back as it was on its first day.

The databases are set up once and copied; before the next test the copies take the place of what became of them, the
topics are removed, the receiver begins with an empty record. That takes a second or two, a lab of its own takes ten.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.healing import heal, verify_life
from zerotail.deadline import Deadline, wait_until
from zerotail.kafka.cluster import Cluster
from zerotail.kafka.log import admin_client
from zerotail.lab.database import dsn
from zerotail.lab.example import write_example
from zerotail.lab.fault import kill_target, start_target
from zerotail.lab.layout import SITES, LabSettings, Layout
from zerotail.lab.process import processes_of
from zerotail.lab.site import stop_site_database
from zerotail.lab.up import bring_up, take_down
from zerotail.postgres.connection import session
from zerotail.postgres.synchronous import wait_until_streaming

_SECONDS = 60.0


class Arena:
    """Two sites, as often as wanted as good as new."""

    def __init__(self, layout: Layout, first_day: Path) -> None:
        self._layout = layout
        self._first_day = first_day
        self._is_new = False
        self._keep_first_day()

    def renewed(self, example: str = "bank", partitions: int = 2) -> Layout:
        """The lab, as it would be when it had just been brought up with this example."""
        if not self._is_new:
            self._put_back()
        self._is_new = False
        lab = self._layout
        write_example(lab, LabSettings(lab.path, example=example, partitions=partitions))
        return lab

    def _keep_first_day(self) -> None:
        lab = self._layout
        for site in SITES:  # the primary first, so that the standby gets all of its log
            stop_site_database(lab, site, _patience())
        for site in SITES:
            _copy(lab.folder_of(f"{site}.postgres") / "data", self._first_day / site)
        self._start_databases()
        self._is_new = True

    def _put_back(self) -> None:
        lab = self._layout
        for site in SITES:
            kill_target(lab, f"{site}.postgres")
        kill_target(lab, "outside.receiver")
        for site in SITES:
            data = lab.folder_of(f"{site}.postgres") / "data"
            shutil.rmtree(data, ignore_errors=True)
            _copy(self._first_day / site, data)
        shutil.rmtree(lab.folder_of("outside.receiver"), ignore_errors=True)
        heal(lab)
        self._start_databases()
        for site in SITES:
            remove_topics(lab.bootstrap(site))

    def _start_databases(self) -> None:
        for site in SITES:
            start_target(self._layout, f"{site}.postgres")
        with session(dsn(self._layout.database(SITES[0])), _patience()) as primary:
            wait_until_streaming(primary, SITES[1], _patience())
        verify_life(self._layout)


def remove_topics(bootstrap: str) -> None:
    """Remove every topic that is not Kafka's own."""
    admin = admin_client(Cluster(bootstrap))

    def found() -> list[str]:
        return [name for name in admin.list_topics(timeout=10).topics if not name.startswith("__")]

    def none_left() -> bool:
        topics = found()
        if topics:
            for future in admin.delete_topics(topics).values():
                future.exception(_SECONDS)
        return not topics

    wait_until("its topics are gone", none_left, _patience())


def _copy(source: Path, target: Path) -> None:
    # Owners count: as root, the databases run as another user.
    subprocess.run(["cp", "-a", "--reflink=auto", source, target], check=True)


@contextmanager
def open_arena(folder: Path) -> Iterator[Arena]:
    """An arena in a folder of its own, for the length of a block."""
    layout = bring_up(LabSettings(folder / "lab"))
    try:
        (folder / "first-day").mkdir()
        yield Arena(layout, folder / "first-day")
    finally:
        assert processes_of(layout.path)
        take_down(folder / "lab")


def _patience() -> Deadline:
    return Deadline.after(_SECONDS)
