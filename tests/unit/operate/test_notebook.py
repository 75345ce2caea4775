"""The operators' notebook: written whole, read back, one act at a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from zerotail.core.identity import Epoch, Lsn, SiteName
from zerotail.errors import Refused
from zerotail.operate.notebook import Note, Notebook, StepNote, state_folder

pytestmark = pytest.mark.fast

EAST, WEST = SiteName("east"), SiteName("west")
BEGUN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def note(act: str = "takeover", site: SiteName = WEST, *, minutes: int = 0) -> Note:
    return Note(act, site, EAST, "0123456789", "somebody", ("--accept-loss",), BEGUN + timedelta(minutes=minutes))


def book(folder: Path) -> Notebook:
    folder.mkdir(exist_ok=True)
    return Notebook(folder)


def test_a_note_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    written = msgspec.structs.replace(note(), steps=(StepNote(Epoch(513), 3, BEGUN),), stopped_at=Lsn(7), tail="file")
    book(tmp_path).write(written)
    assert book(tmp_path).find_last(("takeover",)) == written


def test_only_the_newest_act_of_a_kind_can_be_unfinished(tmp_path: Path) -> None:
    notes = book(tmp_path)
    notes.write(note())
    assert notes.find_unfinished(("takeover",), WEST) == note()
    assert notes.find_unfinished(("takeover",), EAST) is None
    assert notes.find_unfinished(("handover",)) is None
    finished = msgspec.structs.replace(note(minutes=1), finished_at=BEGUN)
    notes.write(finished)
    assert notes.find_last(("takeover",)) == finished
    assert notes.find_unfinished(("takeover",)) is None


def test_one_act_at_a_time_is_under_way(tmp_path: Path) -> None:
    notes = Notebook(tmp_path / "new" / "folder")
    with notes.locked():
        with pytest.raises(Refused, match="under way") as refused, Notebook(notes.folder).locked():
            pass
        assert refused.value.code == "ZT455"
    with notes.locked():
        pass


def test_a_folder_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Refused, match="cannot be used") as refused, Notebook(tmp_path / "file" / "notes").locked():
        pass
    assert refused.value.code == "ZT458"


def test_a_damaged_note_is_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "20260102-takeover-west.json").write_text("{")
    with pytest.raises(Refused, match="cannot be read") as refused:
        Notebook(tmp_path).find_last(("takeover",))
    assert refused.value.code == "ZT458"


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"ZEROTAIL_STATE": "/notes", "XDG_STATE_HOME": "/state", "HOME": "/home/me"}, "/notes"),
        ({"XDG_STATE_HOME": "/state", "HOME": "/home/me"}, "/state/zerotail/pair"),
        ({"HOME": "/users/me"}, "/users/me/.local/state/zerotail/pair"),
    ],
)
def test_notes_lie_where_the_environment_says(environment: dict[str, str], folder: str) -> None:
    assert state_folder("pair", environment) == Path(folder)
