"""The commands of `zerotail mirror` that copy and look at copies."""

from __future__ import annotations

import click

COMMANDS: tuple[click.Command, ...] = ()
