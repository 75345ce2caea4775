"""What a lab consists of, and which parts a target names."""

from __future__ import annotations

from pathlib import Path

import pytest

from zerotail.errors import Misused, Refused
from zerotail.lab.broker import server_properties
from zerotail.lab.layout import (
    LabSettings,
    Layout,
    all_targets,
    find_layout,
    parts_of,
    plan_layout,
    ports_needed,
    require_layout,
    write_layout,
)

pytestmark = pytest.mark.fast


def planned(folder: Path, brokers: int = 1) -> Layout:
    settings = LabSettings(folder, brokers=brokers)
    return plan_layout(settings, list(range(20000, 20000 + ports_needed(settings))))


@pytest.mark.parametrize("brokers", [1, 3])
def test_every_port_is_given_once_and_none_is_left_over(tmp_path: Path, brokers: int) -> None:
    layout = planned(tmp_path, brokers)
    given = [port for part in layout.parts for port in layout.ports_of(part)]
    assert sorted(given) == list(range(20000, 20000 + ports_needed(LabSettings(tmp_path, brokers=brokers))))


@pytest.mark.parametrize(
    ("target", "parts"),
    [
        ("west", ["west.kafka.1", "west.kafka.2", "west.kafka.3", "west.postgres"]),
        ("east.spark", ["east.spark-master", "east.spark-worker-1", "east.spark-worker-2"]),
        ("east.spark-worker", ["east.spark-worker-1", "east.spark-worker-2"]),
        ("east.spark-worker-2", ["east.spark-worker-2"]),
        ("east.kafka", ["east.kafka.1", "east.kafka.2", "east.kafka.3"]),
        ("east.kafka.2", ["east.kafka.2"]),
        ("west.postgres", ["west.postgres"]),
        ("link", ["link"]),
        ("outside", ["outside.kafka.1", "outside.postgres", "outside.receiver"]),
        ("outside.receiver", ["outside.receiver"]),
    ],
)
def test_a_target_names_its_parts(tmp_path: Path, target: str, parts: list[str]) -> None:
    assert parts_of(planned(tmp_path, 3), target) == parts


def test_everything_of_a_site_is_named_by_it(tmp_path: Path) -> None:
    layout = planned(tmp_path)
    assert parts_of(layout, "east") == [part for part in layout.parts if part.startswith("east.")]


def test_the_spark_cluster_is_there_on_demand_unless_up_starts_it(tmp_path: Path) -> None:
    settings = LabSettings(tmp_path, spark_cluster=True)
    ports = list(range(20000, 20000 + ports_needed(settings)))
    assert "east.spark-master" in planned(tmp_path).on_demand
    assert plan_layout(settings, ports).on_demand == {"outside.kafka.1", "outside.postgres"}


def test_a_stretched_cluster_has_one_node_in_each_of_three_sites(tmp_path: Path) -> None:
    settings = LabSettings(tmp_path, stretch=True)
    layout = plan_layout(settings, list(range(20000, 20000 + ports_needed(settings))))
    nodes = [(place.part, place.node) for place in layout.cluster("east")]
    assert nodes == [("east.kafka.1", 1), ("west.kafka.1", 2), ("outside.kafka.1", 3)]
    assert layout.cluster("west") == layout.cluster("east")
    assert "outside.kafka.1" not in layout.on_demand
    assert layout.wide_bootstrap.count(",") == 2
    for place, site in zip(layout.brokers, ("east", "west", "outside"), strict=True):
        lines = server_properties(layout, place).splitlines()
        assert {f"broker.rack={site}", "min.insync.replicas=2", "default.replication.factor=3"} <= {*lines}


def test_a_target_is_no_prefix_of_a_word(tmp_path: Path) -> None:
    with pytest.raises(Misused, match="no target 'eas'"):
        parts_of(planned(tmp_path), "eas")


def test_an_unknown_target_is_answered_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(Misused, match=r"did you mean east\.postgres"):
        parts_of(planned(tmp_path), "east.postgers")


def test_every_name_that_is_offered_names_something(tmp_path: Path) -> None:
    layout = planned(tmp_path, 3)
    assert all(parts_of(layout, target) for target in all_targets(layout))


def test_a_client_of_the_other_site_goes_through_the_link(tmp_path: Path) -> None:
    layout = planned(tmp_path)
    broker = layout.broker("west.kafka.1")
    assert layout.bootstrap("west") == f"127.0.0.1:{broker.port}"
    assert layout.bootstrap("west", seen_from="west") == f"127.0.0.1:{broker.port}"
    assert layout.bootstrap("west", seen_from="east") == f"127.0.0.1:{broker.link_port}"


def test_a_layout_is_found_again_as_it_was_written(tmp_path: Path) -> None:
    layout = planned(tmp_path, 3)
    write_layout(layout)
    assert find_layout(tmp_path) == layout
    assert [entry.name for entry in tmp_path.iterdir()] == ["lab.json"]


def test_a_folder_without_a_lab_is_refused_by_name(tmp_path: Path) -> None:
    assert find_layout(tmp_path) is None
    with pytest.raises(Refused, match="there is no lab in"):
        require_layout(tmp_path)


@pytest.mark.parametrize("keep", [0, 1, 100, -1])
def test_a_half_written_state_file_is_refused(tmp_path: Path, keep: int) -> None:
    write_layout(planned(tmp_path))
    whole = (tmp_path / "lab.json").read_bytes()
    (tmp_path / "lab.json").write_bytes(whole[: keep if keep >= 0 else len(whole) - 3])
    with pytest.raises(Refused, match=r"lab\.json is damaged") as refused:
        require_layout(tmp_path)
    assert refused.value.code == "ZT203"


def test_a_lab_of_another_version_or_folder_is_refused(tmp_path: Path) -> None:
    layout = planned(tmp_path)
    write_layout(layout)
    text = (tmp_path / "lab.json").read_text()
    (tmp_path / "lab.json").write_text(text.replace(str(tmp_path), "/elsewhere"))
    with pytest.raises(Refused, match="another folder"):
        require_layout(tmp_path)
    (tmp_path / "lab.json").write_text(text.replace('"version": 3', '"version": 1'))
    with pytest.raises(Refused, match="another version"):
        require_layout(tmp_path)


def test_a_file_in_place_of_the_folder_is_no_lab(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    assert find_layout(tmp_path / "file") is None


def test_a_folder_that_cannot_be_looked_into_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="cannot be read"):
        find_layout(tmp_path / ("x" * 300))
