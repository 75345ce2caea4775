"""What a stored result says of its measuring."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from zerotail.bench import stamp as stamps
from zerotail.bench.result import JournalCost
from zerotail.bench.stamp import MEASURED, RECORDED, Stamp, command_of, is_current, make_stamp, told
from zerotail.bench.stored import Stored, join, read_stored, told_stamps, write_stored
from zerotail.errors import Misused

pytestmark = pytest.mark.fast

ROOT = Path(__file__).parents[3]
COST = JournalCost(2_000, 1_000, 0.86, 0.76, 80.0, 1e-6, 2e-5, 126.0, {"bytes_per_message": True})


def stamp(command: str = "zerotail bench journal", date: str = "2026-11-18T10:00:00+00:00") -> Stamp:
    machine = {"cores": "2", "processor": "A processor", "memory": "4.0 GiB", "kernel": "Linux 6", "load": "3.1"}
    return Stamp(date, "a" * 40, False, machine, {"Kafka": "4.3.1", "psycopg": "3"}, command)


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=zerotail", "-c", "user.email=zerotail@localhost")
    done = subprocess.run(["git", "-C", folder, *identity, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of its own in the place of ours."""
    git(tmp_path, "init", "-q")
    for name in ("src/a.py", "docs/page.md", "bench/results/journal.json", "README.md"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("one\n")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "one")
    monkeypatch.setattr(stamps, "_ROOT", tmp_path)
    return tmp_path


def test_it_names_the_commit_the_machine_and_what_took_part(tree: Path) -> None:
    made = make_stamp(["bench", "journal"])
    assert made.commit == git(tree, "rev-parse", "HEAD")
    assert made.dirty is False
    assert made.source == MEASURED
    assert made.date.endswith("+00:00")
    assert {"cores", "processor", "memory", "kernel", "load"} <= made.machine.keys()
    assert {"Python", "Spark", "Kafka", "PostgreSQL", "librdkafka", "Java"} <= made.versions.keys()


@pytest.mark.parametrize("name", ["docs/page.md", "bench/results/journal.json", "README.md"])
def test_a_result_that_joins_another_and_the_page_that_shows_it_are_not_what_is_measured(tree: Path, name: str) -> None:
    (tree / name).write_text("two\n")
    assert make_stamp([]).dirty is False


def test_a_new_file_of_code_is_told(tree: Path) -> None:
    (tree / "src" / "b.py").write_text("one\n")
    assert make_stamp([]).dirty is True


def test_a_result_is_of_this_code_until_something_that_is_measured_changes(tree: Path) -> None:
    made = make_stamp([])
    (tree / "docs" / "page.md").write_text("two\n")
    git(tree, "commit", "-qam", "a page")
    assert is_current(made)
    (tree / "src" / "a.py").write_text("two\n")
    assert not is_current(made)
    assert not is_current(make_stamp([])), "what is in no commit cannot be measured again"
    git(tree, "commit", "-qam", "code")
    assert not is_current(made)
    assert is_current(make_stamp([]))
    assert not is_current(replace(make_stamp([]), source=RECORDED))


def test_code_that_is_in_no_commit_is_told(tree: Path) -> None:
    (tree / "src" / "a.py").write_text("two\n")
    made = make_stamp([])
    assert made.dirty is True
    assert "with changes that are in no commit" in told(made)


def test_where_there_is_no_repository_there_is_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stamps, "_ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert (make_stamp([]).commit, make_stamp([]).dirty) == ("", None)


def test_the_command_is_what_measures_the_same_and_not_where_it_was_put() -> None:
    typed = ["bench", "flow", "--count", "5", "--result", "some/where.json", "--keep", "--page=a.md", "--json"]
    assert command_of(typed) == "zerotail bench flow --count 5"


def test_a_run_of_the_same_command_takes_the_place_of_the_earlier_one_and_another_stands_behind() -> None:
    one, four = stamp("zerotail bench flow"), stamp("zerotail bench flow --partitions 4")
    again = replace(one, date="2026-11-19T10:00:00+00:00")
    assert join((one, four), again) == (four, again)
    assert join((one,), four) == (one, four)


def test_what_is_stored_is_read_again_and_something_else_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "new" / "journal.json"
    stored = Stored((stamp(),), COST)
    write_stored(file, stored)
    assert read_stored(file, JournalCost) == stored
    assert [one.name for one in file.parent.iterdir()] == ["journal.json"]
    file.write_text('{"messages": 1}')
    with pytest.raises(Misused, match="holds no result of this benchmark"):
        read_stored(file, JournalCost)


def test_a_page_tells_every_run_and_says_what_only_history_knows() -> None:
    assert told(stamp()) == (
        "Measured 2026-11-18 at `aaaaaaaaaa` on 2 cores, A processor, 4.0 GiB, Linux 6, "
        "at a load of 3.1 before it began, Kafka 4.3.1, by `zerotail bench journal`."
    )
    old = replace(stamp(), source=RECORDED, machine={"cores": "2"})
    assert told(old).startswith("Stored 2026-11-18 at `aaaaaaaaaa`")
    assert "Measured" not in told(old)
    assert list(told_stamps(Stored((stamp(), old), COST))) == [f"- {told(stamp())}", f"- {told(old)}"]
