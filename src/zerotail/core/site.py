"""Which sites there are, by what the database says: an act rests on the names and numbers that stand there.

Each machine reads a file of its own. Were a number taken from a file, two sites could open the same epoch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from zerotail.core.identity import Epoch, SiteName, site_number_of
from zerotail.errors import Refused


def require_known_sites(named: Collection[SiteName], known: Mapping[SiteName, int]) -> None:
    """`Refused` unless the configuration names the very sites that the database knows."""
    if set(named) != set(known):
        raise Refused(
            f"the configuration names the sites {_told(named)}, and the database knows {_told(known)}.",
            code="ZT438",
            why="An epoch carries the number that the database gives to its site.",
            tries=("zerotail config show",),
        )


def number_sites(named: Iterable[SiteName], opened: Iterable[tuple[Epoch, SiteName]]) -> dict[SiteName, int]:
    """A number for each site: that of the epochs which it has opened, else the lowest one that is left.

    Where files of two orders have given one number to both sites, the one that used it first keeps it.
    """
    numbers: dict[SiteName, int] = {}
    opened = sorted(opened)
    for epoch, site in opened:
        if site not in numbers and site_number_of(epoch) not in numbers.values():
            numbers[site] = site_number_of(epoch)
    for site in (*(site for _, site in opened), *named):
        if site not in numbers:
            numbers[site] = next(number for number in range(256) if number not in numbers.values())
    return numbers


def _told(sites: Iterable[SiteName]) -> str:
    return " and ".join(sorted(sites))
