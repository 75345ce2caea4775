"""The receiver's configuration file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from zerotail.errors import Misused
from zerotail.lab.receiver.protocol import ReceiverClass, Text

Port = Annotated[int, msgspec.Meta(ge=1, le=65535)]


class ReceiverSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The whole file. Without a `control_port` the judge's side is served on `port` too."""

    port: Port
    control_port: Port | None = None
    folder: str
    receiver_class: ReceiverClass = ReceiverClass.R2
    channels: dict[Text, ReceiverClass] = {}
    max_body_bytes: Annotated[int, msgspec.Meta(ge=1024, le=1 << 30)] = 8 * 1024 * 1024

    def class_of(self, channel: str) -> ReceiverClass:
        """The class of a channel, known or not."""
        return self.channels.get(channel, self.receiver_class)


def read_settings(path: Path) -> ReceiverSettings:
    """The settings in the file; `Misused` with everything a person needs to correct it."""
    try:
        settings = msgspec.json.decode(path.read_bytes(), type=ReceiverSettings)
    except OSError as error:
        raise Misused(f"the receiver's configuration {path} cannot be read: {error.strerror}") from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Misused(f"the receiver's configuration {path} is wrong: {error}") from error
    if settings.port == settings.control_port:
        raise Misused(f"the receiver's configuration {path} is wrong: port and control_port are the same")
    return settings
