"""Who is who: files that disagree about the sites, and two installations that share what each took for its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from zerotail.config import Configuration
from zerotail.core.identity import Epoch, SiteName, site_number_of
from zerotail.deadline import Deadline
from zerotail.drill import blows, stranger
from zerotail.drill.acts import bring_back, refusal_of_rejoin, take_over
from zerotail.drill.commands import go_on_alone
from zerotail.drill.rehearsal import PATIENCE_SECONDS, Rehearsal
from zerotail.drill.scenarios.scenario import MESSAGES, Scenario
from zerotail.postgres.connection import session
from zerotail.postgres.lineage import read_standing
from zerotail.postgres.site import read_numbers


def _site_order(rehearsal: Rehearsal) -> None:
    """Both operators go on, each by a file that lists his own site first; clients and receivers see one of them only,
    since nobody could tell two histories apart at a receiver without memory.
    """
    alone, other = rehearsal.active, rehearsal.standby
    blows.list_own_sites_first(rehearsal)
    fault = blows.cut(rehearsal)
    rehearsal.processes[alone].end()
    rehearsal.note("act", f"{alone}: its processes are ended, and it reaches nobody outside")
    take_over(rehearsal, other)
    rehearsal.wait_for_new(MESSAGES)
    with _clients_of(rehearsal, other):
        go_on_alone(rehearsal, alone)
        epochs = {site: _epoch_of(rehearsal, site) for site in (alone, other)}
        told = ", ".join(f"{epoch} of {site}" for site, epoch in epochs.items())
        rehearsal.promise(f"no epoch belongs to both sites ({told})", len(set(epochs.values())) == 2)
        numbered = {site: site_number_of(epoch) for site, epoch in epochs.items()}
        rehearsal.promise(
            "each site opened its epoch under its own number", numbered == _numbers(rehearsal, other) and bool(numbered)
        )
        blows.heal(rehearsal, fault)
        rehearsal.promise("a rejoin sees two histories", refusal_of_rejoin(rehearsal, alone) == "ZT437")
        blows.kill_part(rehearsal, f"{alone}.postgres")
        bring_back(rehearsal, alone)
    rehearsal.fault = fault


@contextmanager
def _clients_of(rehearsal: Rehearsal, site: str) -> Iterator[None]:
    """Clients reach this site only, for the length of a block."""
    everywhere, only = rehearsal.business.configurations, SiteName(site)
    _reach(rehearsal, {only: everywhere[only]})
    try:
        yield
    finally:
        _reach(rehearsal, {only: everywhere[only]} | everywhere)


def _reach(rehearsal: Rehearsal, configurations: Mapping[SiteName, Configuration]) -> None:
    rehearsal.business.stop()
    rehearsal.business.configurations = dict(configurations)
    rehearsal.business.start()


def _epoch_of(rehearsal: Rehearsal, site: str) -> Epoch:
    with session(rehearsal.dsn(site), Deadline.after(PATIENCE_SECONDS)) as connection:
        return read_standing(connection).lineage.current.epoch


def _numbers(rehearsal: Rehearsal, site: str) -> dict[str, int]:
    with session(rehearsal.dsn(site), Deadline.after(PATIENCE_SECONDS)) as connection:
        return {str(name): number for name, number in read_numbers(connection).items()}


def _two_installations(rehearsal: Rehearsal) -> None:
    second = stranger.begin(rehearsal)
    blows.share_with(rehearsal, second)
    rehearsal.wait_for_new(MESSAGES)
    stranger.promise_apart(rehearsal, second)
    second.business.stop()
    rehearsal.end_strays()
    lost = blows.kill_site(rehearsal, rehearsal.active)
    take_over(rehearsal, rehearsal.standby)
    rehearsal.fault = lost


SCENARIOS = (
    Scenario(
        "site-order",
        "each site's file lists its own site first; the link is cut, and both sites go on",
        _site_order,
        ("site-order", "cut hang", "kill"),
    ),
    Scenario(
        "two-installations",
        "a second installation works on the same topics and the same channel; then the active site is lost",
        _two_installations,
        ("second-installation", "site-loss"),
    ),
)
