"""The link's configuration file: which ports it forwards, between which sites."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from zerotail.errors import Misused
from zerotail.lab.link.protocol import BOTH

Port = Annotated[int, msgspec.Meta(ge=1, le=65535)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]


class ForwardSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who connects to `listen_port` reaches `target_port`; `source` opens the connections, `target` is
    reached.
    """

    name: Name
    source: Name = msgspec.field(name="from")
    target: Name = msgspec.field(name="to")
    listen_port: Port
    target_port: Port

    @property
    def outward(self) -> str:
        """The direction of the bytes sent by whoever opened the connection."""
        return f"{self.source}->{self.target}"

    @property
    def homeward(self) -> str:
        """The direction of the answers."""
        return f"{self.target}->{self.source}"


class LinkSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    control_port: Port
    forwards: tuple[ForwardSettings, ...]
    latency_ms: Annotated[float, msgspec.Meta(ge=0, le=60_000)] = 0


def read_settings(path: Path) -> LinkSettings:
    """The settings in the file; `Misused` with everything a person needs to correct it."""
    try:
        settings = msgspec.json.decode(path.read_bytes(), type=LinkSettings)
    except OSError as error:
        raise Misused(f"the link's configuration {path} cannot be read: {error.strerror}") from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Misused(f"the link's configuration {path} is wrong: {error}") from error
    problems = list(_contradictions(settings))
    if problems:
        raise Misused(f"the link's configuration {path} is wrong: {'; '.join(problems)}")
    return settings


def _contradictions(settings: LinkSettings) -> list[str]:
    problems = []
    ports = [settings.control_port, *(forward.listen_port for forward in settings.forwards)]
    problems += [f"port {port} is listened on twice" for port in sorted({p for p in ports if ports.count(p) > 1})]
    names = [forward.name for forward in settings.forwards]
    problems += [f"two forwards are named {name!r}" for name in sorted({n for n in names if names.count(n) > 1})]
    problems += [
        f"forward {forward.name!r} leads from {forward.source!r} to itself"
        for forward in settings.forwards
        if forward.source == forward.target
    ]
    if any(BOTH in (forward.source, forward.target) for forward in settings.forwards):
        problems.append(f"no site may be named {BOTH!r}")
    return problems
