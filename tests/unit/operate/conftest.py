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
        name: {"kafka": {"bootstrap": f"{name}:1"}, "database": {"dsn": f"host={name}"}} for name in ("east", "west")
    }
    path.write_text(yaml.safe_dump({"name": "bank", "sites": sites}))
    return load(str(path))
