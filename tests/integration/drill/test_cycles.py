"""The active role goes there and back ten times under load; each time both sites have the same journal and state."""

from __future__ import annotations

from pathlib import Path

import pytest

from zerotail.deadline import Deadline, wait_until
from zerotail.drill.example import prepare_example
from zerotail.drill.rehearsal import Rehearsal
from zerotail.drill.run import DrillSettings, new_stage, play_next
from zerotail.drill.scenarios import SCENARIOS
from zerotail.lab.layout import LabSettings
from zerotail.lab.up import temporary_lab
from zerotail.postgres.comparison import compare_journals
from zerotail.postgres.connection import one_row, session

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(1800)]

CYCLES = 10
STATE = """
select md5(coalesce(string_agg(state::text, '' order by stage, partition, key), '')), count(*) from zerotail.state
"""


def test_there_and_back_ten_times_both_sites_have_the_same(tmp_path: Path) -> None:
    settings = DrillSettings(rate=300, scale=0.3)
    with temporary_lab(lambda where: LabSettings(where, partitions=2)) as layout:
        prepare_example(layout)
        rehearsal = new_stage(layout, settings, tmp_path / "before", print)
        try:
            rehearsal.begin()
            first = rehearsal.active
            seen = set()
            for cycle in range(CYCLES):
                result = play_next(rehearsal, SCENARIOS["failback-cycle"], settings, tmp_path / str(cycle))
                assert result.verdict == "passed", result.reasons
                assert rehearsal.active == first
                seen.add(require_equal(rehearsal))
            assert len(seen) == CYCLES, "each time there was more to compare"
        finally:
            rehearsal.end()


def require_equal(rehearsal: Rehearsal) -> str:
    """Journal and state of both sites are the same; the digest of the state."""
    deadline = Deadline.after(60)
    with session(rehearsal.database, deadline) as here, session(rehearsal.dsn(rehearsal.standby), deadline) as there:
        digest, keys = one_row(here, STATE)
        assert keys > 0
        wait_until("the standby has the same state", lambda: one_row(there, STATE) == (digest, keys), deadline)
        compared = compare_journals(here, there)
        assert compared
        assert not [one for one in compared if one.difference is not None or one.segments_here != one.segments_there]
    return str(digest)
