"""A site's database has one address: who answers the gate is who is promoted."""

from __future__ import annotations

from pathlib import Path

import pytest

from unit.config.configurations import changed, found

pytestmark = pytest.mark.fast

DSN = "host=127.1.0.9 dbname=core user=zerotail"


@pytest.mark.parametrize(
    "dsn",
    [
        "host=127.1.0.9,127.1.0.8 dbname=core",
        "host=127.1.0.9,127.1.0.8 target_session_attrs=any dbname=core",
        "hostaddr=127.1.0.9,127.1.0.8 dbname=core",
        "host=127.1.0.9 port=5432,5433 dbname=core",
        "host=127.1.0.9 load_balance_hosts=random dbname=core",
        "postgresql://zerotail@127.1.0.9,127.1.0.8/core",
        "postgresql://zerotail@127.1.0.9:5432,127.1.0.9:5433/core?target_session_attrs=any",
    ],
)
def test_several_servers_behind_a_sites_dsn_are_a_problem(tmp_path: Path, dsn: str) -> None:
    (problem,) = found(tmp_path, changed(DSN, dsn), {"T": "x"})
    assert problem.key == ("sites", "east", "database", "dsn")
    assert problem.sentence == "leads to several servers: one could answer the gate, and another one be promoted"


@pytest.mark.parametrize(
    "dsn", ["host=127.1.0.9 target_session_attrs=read-write dbname=core", "host=127.1.0.9 load_balance_hosts=disable"]
)
def test_one_address_is_none(tmp_path: Path, dsn: str) -> None:
    assert found(tmp_path, changed(DSN, dsn), {"T": "x"}) == ()
