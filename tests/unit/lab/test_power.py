"""What is left of a log after an emulated power loss."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from zerotail.lab.power import Cut, cut_unflushed_tail, read_checkpoint

pytestmark = pytest.mark.fast

TOPIC = "a-topic.with-dashes"


def batch(first: int, count: int, payload: int = 40) -> bytes:
    """A batch of records as Kafka frames it, as far as its frame is read."""
    body = struct.pack(">ibIhi", 0, 2, 0, 0, count - 1) + bytes(payload)
    return struct.pack(">qi", first, len(body)) + body


def data_folder(tmp_path: Path, recovery_point: int, segments: dict[int, list[bytes]], topic: str = TOPIC) -> Path:
    (tmp_path / "recovery-point-offset-checkpoint").write_text(f"0\n1\n{topic} 0 {recovery_point}\n")
    folder = tmp_path / f"{topic}-0"
    folder.mkdir()
    for first, batches in segments.items():
        for suffix in ("index", "timeindex"):
            (folder / f"{first:020d}.{suffix}").write_bytes(b"index")
        (folder / f"{first:020d}.log").write_bytes(b"".join(batches))
    return tmp_path


def offsets_left(data: Path) -> list[int]:
    """The first offset of each batch that is still there."""
    found = []
    for segment in sorted((data / f"{TOPIC}-0").glob("*.log")):
        content, place = segment.read_bytes(), 0
        while place < len(content):
            first, length = struct.unpack_from(">qi", content, place)
            found.append(first)
            place += 12 + length
        assert place == len(content), "a batch is torn"
    return found


@pytest.mark.parametrize(
    ("recovery_point", "left", "records"),
    [(0, [], 10), (3, [0], 7), (5, [0, 3], 5), (6, [0, 3, 5], 4), (10, [0, 3, 5, 6], 0), (99, [0, 3, 5, 6], 0)],
)
def test_a_log_is_cut_at_its_recovery_point(tmp_path: Path, recovery_point: int, left: list[int], records: int) -> None:
    data = data_folder(tmp_path, recovery_point, {0: [batch(0, 3), batch(3, 2)], 5: [batch(5, 1), batch(6, 4)]})
    cut = cut_unflushed_tail(data, [TOPIC])
    assert offsets_left(data) == left
    assert (cut.records, cut.partitions) == (records, int(records > 0))
    assert (data / f"{TOPIC}-0" / f"{0:020d}.log").exists(), "the first segment stays, if empty"


def test_indexes_of_a_cut_segment_are_removed_and_others_stay(tmp_path: Path) -> None:
    data = data_folder(tmp_path, 6, {0: [batch(0, 5)], 5: [batch(5, 1), batch(6, 4)]})
    cut_unflushed_tail(data, [TOPIC])
    assert sorted(path.name for path in (data / f"{TOPIC}-0").glob("*index")) == [
        f"{0:020d}.index",
        f"{0:020d}.timeindex",
    ]


def test_a_partition_without_a_recovery_point_loses_everything(tmp_path: Path) -> None:
    data = data_folder(tmp_path, 5, {0: [batch(0, 5)]})
    (data / "recovery-point-offset-checkpoint").unlink()
    assert cut_unflushed_tail(data, [TOPIC]).records == 5


def test_a_topic_that_flushes_every_record_and_other_topics_keep_everything(tmp_path: Path) -> None:
    data = data_folder(tmp_path, 0, {0: [batch(0, 5)]})
    assert cut_unflushed_tail(data, [TOPIC], flushed=[TOPIC]) == Cut(0, 0, 0)
    assert cut_unflushed_tail(data, ["another"]) == Cut(0, 0, 0)
    assert offsets_left(data) == [0]


def test_a_checkpoint_is_read_by_topic_and_partition(tmp_path: Path) -> None:
    (tmp_path / "point").write_text("0\n2\na 0 7\nb-c 12 9\n")
    assert read_checkpoint(tmp_path / "point") == {("a", 0): 7, ("b-c", 12): 9}
    assert read_checkpoint(tmp_path / "none") == {}
