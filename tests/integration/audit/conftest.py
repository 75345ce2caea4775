"""Sites with three brokers each, for the audit alone: its tests set servers wrongly."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.audit.audited import TOPIC, Audited
from zerotail.config import load
from zerotail.core.identity import SiteName, TopicName
from zerotail.kafka.log import admin_client, ensure_topic
from zerotail.lab.layout import SITES, LabSettings
from zerotail.lab.up import bring_up, take_down
from zerotail.running.prepare import cluster_of, topics_of


@pytest.fixture(scope="module")
def no_loss_profile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Audited]:
    """A lab of three brokers per site as `zerotail lab up --brokers 3` makes it, and the topic as `run` makes it."""
    scratch = Path(tmp_path_factory.mktemp("audit"))
    layout = bring_up(LabSettings(scratch / "lab", brokers=3))
    try:
        audited = Audited(layout, scratch)
        configuration = load(audited.config)
        for site in SITES:
            client = admin_client(cluster_of(configuration, SiteName(site)))
            ensure_topic(client, TopicName(TOPIC), topics_of(configuration)[TopicName(TOPIC)])
        yield audited
    finally:
        take_down(scratch / "lab")


@pytest.fixture
def sites(no_loss_profile: Audited) -> Iterator[Audited]:
    """Nothing to be found after the test, and so before the next one."""
    yield no_loss_profile
    no_loss_profile.wait_until_clean()
