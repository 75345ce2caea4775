"""The example's handlers, imported from where the example lies."""

from __future__ import annotations

import importlib.util
from typing import Any

from zerotail.lab.example import example_folder


def _load() -> Any:
    spec = importlib.util.spec_from_file_location("flows", example_folder() / "flows.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


flows = _load()
