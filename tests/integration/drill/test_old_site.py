"""A site that was taken over while it stood still goes on, and comes back as standby with its sender at work.

With a receiver that takes what any sender sends (R1), nobody tells the old sender that it is old before its own
database does. Databases, Kafka and emitters alone: it needs no Spark.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from zerotail.core.identity import SiteName
from zerotail.drill import blows
from zerotail.drill.acts import take_over
from zerotail.drill.example import prepare_example
from zerotail.drill.run import DrillSettings, new_stage
from zerotail.drill.running import EMITTER
from zerotail.drill.scenarios.scenario import old_site_learns
from zerotail.lab.layout import LabSettings
from zerotail.lab.up import temporary_lab
from zerotail.running.prepare import prepare

pytestmark = pytest.mark.servers


def test_the_very_sender_that_was_at_work_is_gone_in_time_once_its_database_tells_it(tmp_path: Path) -> None:
    with temporary_lab(lambda where: LabSettings(where, receiver_class="R1", partitions=2)) as layout:
        prepare_example(layout)
        rehearsal = new_stage(layout, DrillSettings(), tmp_path, print)
        try:
            prepare(rehearsal.configuration("east"), SiteName("east"))
            rehearsal.processes["east"] = rehearsal.start_process("east", "emitter")
            rehearsal.processes["east"].wait_until_says(60, "sending on bank/0", "sending on bank/1")
            frozen = blows.freeze_site(rehearsal, "east")
            take_over(rehearsal, "west")
            leaving = rehearsal.watch_departure(rehearsal.processes["east"])
            blows.thaw_site(rehearsal, frozen)
            assert [one.part for one in leaving.left] == [EMITTER]
            old_site_learns(rehearsal)
            assert rehearsal.findings == []
            assert leaving.left == []
            assert any(event.what.startswith("kept: emitter of the old site: gone") for event in rehearsal.events)
        finally:
            rehearsal.end()
