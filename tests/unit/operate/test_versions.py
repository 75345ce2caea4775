"""Code of another version that a replay would meet: looked for unless somebody has accepted whatever there is."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from support.standings import WEST
from zerotail.core.identity import StageName
from zerotail.errors import Refused
from zerotail.operate import versions
from zerotail.operate.versions import OtherCode, require_replayable
from zerotail.postgres.reading import MadeBy

pytestmark = pytest.mark.fast

SETTLE = StageName("settle")


@pytest.fixture(autouse=True)
def _code_that_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "require_loadable", lambda _configuration: None)


def stages(state: str) -> Any:
    return SimpleNamespace(stages={SETTLE: SimpleNamespace(state=state)})


def test_where_it_is_accepted_nobody_reads_the_journal_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def reads(*_: object) -> Iterator[OtherCode]:
        pytest.fail("the journal may be long, and a cold copy is slow")

    monkeypatch.setattr(versions, "find_other_code", reads)
    assert require_replayable(stages("replay"), WEST, accepted=True)
    assert not require_replayable(stages("database"), WEST, accepted=True)


def test_where_it_is_not_the_plan_is_refused_with_the_first_segment(monkeypatch: pytest.MonkeyPatch) -> None:
    found = OtherCode(SETTLE, (MadeBy("1", 7), MadeBy("other", 12)), "2")
    monkeypatch.setattr(versions, "find_other_code", lambda *_: iter([found]))
    with pytest.raises(
        Refused, match=r"segments of stage settle, from segment 7 on, were made by version 1, other, and"
    ):
        require_replayable(stages("replay"), WEST, accepted=False)
