"""A configuration of two sites that nobody is asked about."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from zerotail.config import Configuration, load


@pytest.fixture
def configuration(tmp_path: Path) -> Configuration:
    path = tmp_path / "zerotail.yaml"
    sites = {
        name: {"kafka": {"bootstrap": f"127.0.0.1:{port}"}, "database": {"dsn": f"host=127.0.0.1 port={port}"}}
        for port, name in enumerate(("east", "west"), 1)
    }
    path.write_text(yaml.safe_dump({"name": "bank", "sites": sites}))
    return load(str(path))
