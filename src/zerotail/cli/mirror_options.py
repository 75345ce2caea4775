"""What the commands of `zerotail mirror` have in common."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from zerotail.config import Configuration

config_option = click.option("--config", "path", metavar="PATH", help="The configuration; else as for `config check`.")
name_argument = click.argument("name", metavar="[MIRROR]", required=False)


def state_of(configuration: Configuration) -> Path:
    """The folder for what a mirror says of itself."""
    from zerotail.operate.notebook import state_folder

    return state_folder(configuration.name, os.environ)


def load_configuration(path: str | None) -> Configuration:
    """The configuration that a command is to use."""
    from zerotail.config import find_configuration_file, load

    return load(str(find_configuration_file(path)))
