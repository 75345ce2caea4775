"""The example in a lab: three configurations that can be used, with the addresses as each reader sees them."""

from __future__ import annotations

from pathlib import Path

import pytest

from zerotail.config import HttpChannel, TopicChannel, load
from zerotail.core.identity import ChannelName, SiteName
from zerotail.lab.database import dsn
from zerotail.lab.example import example_folder, remove_example, write_example
from zerotail.lab.layout import LabSettings, Layout, plan_layout, ports_needed

pytestmark = pytest.mark.fast

SITES = ("east", "west")


def written(settings: LabSettings) -> Layout:
    layout = plan_layout(settings, list(range(20000, 20000 + ports_needed(settings))))
    write_example(layout, settings)
    return layout


@pytest.mark.parametrize("example", ["bank", "two-stages"])
@pytest.mark.parametrize("receiver", ["R0", "R1", "R2", "R3"])
@pytest.mark.parametrize("brokers", [1, 3])
def test_every_file_is_a_configuration_that_can_be_used(
    tmp_path: Path, example: str, receiver: str, brokers: int
) -> None:
    settings = LabSettings(tmp_path, brokers, receiver_class=receiver, example=example, partitions=5)
    layout = written(settings)
    for folder in (tmp_path, tmp_path / "east", tmp_path / "west"):
        configuration = load(folder / "zerotail.yaml")
        bank = configuration.channels[ChannelName("bank")]
        assert isinstance(bank, HttpChannel)
        assert bank.url.reveal() == f"http://127.0.0.1:{layout.receiver_port}/batches"
        assert bank.receiver == receiver
        assert {topic.partitions for topic in configuration.topics.values()} == {5}
        assert {topic.replication for topic in configuration.topics.values()} == {brokers}
        assert (folder / "flows.py").read_bytes() == (example_folder() / "flows.py").read_bytes()


def test_the_two_stages_are_joined_by_a_topic(tmp_path: Path) -> None:
    written(LabSettings(tmp_path, example="two-stages"))
    configuration = load(tmp_path / "zerotail.yaml")
    assert isinstance(configuration.channels[ChannelName("moves")], TopicChannel)
    assert list(configuration.stages) == ["settle", "ledger"]


@pytest.mark.parametrize("seen_from", [None, *SITES])
def test_a_site_reaches_its_own_servers_directly_and_the_others_through_the_link(
    tmp_path: Path, seen_from: str | None
) -> None:
    layout = written(LabSettings(tmp_path))
    configuration = load(tmp_path / (seen_from or "") / "zerotail.yaml")
    for site in SITES:
        found = configuration.sites[SiteName(site)]
        place, broker = layout.database(site), layout.cluster(site)[0]
        across = seen_from not in (None, site)
        assert found.database.dsn.reveal() == dsn(place, seen_from=seen_from)
        assert f"port={place.link_port if across else place.port} " in found.database.dsn.reveal()
        assert found.kafka.bootstrap == f"127.0.0.1:{broker.link_port if across else broker.port}"


def test_only_the_site_that_has_the_cluster_runs_on_it(tmp_path: Path) -> None:
    layout = written(LabSettings(tmp_path, spark_cluster=True))
    assert load(tmp_path / "east" / "zerotail.yaml").spark.master == layout.spark_master
    assert load(tmp_path / "west" / "zerotail.yaml").spark.master == "local[2]"
    assert load(tmp_path / "zerotail.yaml").spark.master == "local[2]"


def test_a_stretched_lab_says_that_there_is_one_cluster_and_nothing_to_run(tmp_path: Path) -> None:
    layout = written(LabSettings(tmp_path, stretch=True))
    configuration = load(tmp_path / "zerotail.yaml")
    assert configuration.clusters["wide"].bootstrap == layout.wide_bootstrap
    assert [mirror.topology for mirror in configuration.mirrors] == ["stretch"]
    assert not configuration.stages


def test_what_is_removed_is_the_example_and_nothing_else(tmp_path: Path) -> None:
    settings = LabSettings(tmp_path)
    written(settings)
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "flows.pyc").touch()
    (tmp_path / "mine").touch()
    remove_example(tmp_path)
    remove_example(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["east", "mine", "west"]
