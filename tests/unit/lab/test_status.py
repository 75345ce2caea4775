"""Looking at a lab never hangs."""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from zerotail.lab import status
from zerotail.lab.layout import LabSettings, plan_layout, ports_needed
from zerotail.lab.process import Process
from zerotail.lab.status import observe_lab

pytestmark = pytest.mark.fast


def test_silent_servers_are_waited_for_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = LabSettings(tmp_path)
    with ExitStack() as servers:
        silent = [servers.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(ports_needed(settings))]
        layout = plan_layout(settings, [server.getsockname()[1] for server in silent])
        everything = [Process(1, 1, part, "S") for part in layout.parts]
        monkeypatch.setattr(status, "processes_of", lambda _lab: everything)
        began = time.monotonic()
        observed = observe_lab(layout)
        seconds = time.monotonic() - began
    roles = {part.part: part.role for part in observed.parts}
    assert roles["east.postgres"] == roles["west.postgres"] == "no answer"
    assert observed.link is None
    assert seconds < 2 * status._PATIENCE_SECONDS, "two databases and the link were silent"
