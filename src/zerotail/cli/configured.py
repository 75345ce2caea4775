"""The configuration of a command that runs the user's code, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zerotail.config import Configuration


def load_with_code(path: str | None) -> Configuration:
    """A configuration, found and loaded; the code beside its file can be imported from now on."""
    from zerotail.code import find_code_beside
    from zerotail.config import find_configuration_file, load

    file = find_configuration_file(path)
    find_code_beside(file)
    return load(str(file))
