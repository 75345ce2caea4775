"""The blows of a drill. Each is looked up in the world afterwards, and the evidence says how we know that it fell."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Concatenate, ParamSpec

import yaml

from zerotail.core.identity import SiteName
from zerotail.deadline import Deadline, wait_until
from zerotail.drill.rehearsal import PATIENCE_SECONDS, Fault, Rehearsal
from zerotail.drill.stranger import Stranger, meets
from zerotail.errors import Refused
from zerotail.lab.fault import (
    FaultReport,
    continue_target,
    cut_link,
    destroy_site,
    heal_link,
    kill_target,
    stop_target,
)
from zerotail.lab.layout import Layout, parts_of
from zerotail.lab.link import BOTH, CutMode
from zerotail.lab.process import Process, processes_of, send
from zerotail.lab.replica import keep_replica as keep
from zerotail.lab.replica import promote_replica as promote
from zerotail.lab.rollback import roll_back
from zerotail.postgres.connection import Connection, one_row, session
from zerotail.postgres.lineage import read_standing
from zerotail.postgres.owed import observe_drained
from zerotail.private import write_file

P = ParamSpec("P")
_WAITING = "select count(*) from pg_stat_activity where wait_event = 'SyncRep'"
_BEHIND = """
select coalesce(max(pg_current_wal_insert_lsn() - flush_lsn), -1)::bigint from pg_stat_replication
"""
_APPLIED = "select sum(next_position)::bigint from zerotail.head"
_INSERT = """
set synchronous_commit = local;
insert into zerotail.submission (producer, partition, id, value)
select min(producer), 0, 'from somebody who does not know', '' from zerotail.producer where channel = ''
"""
_CANCEL = """
select count(*) from (select pg_cancel_backend(pid) as done from pg_stat_activity where wait_event = 'SyncRep') as tried
 where done
"""


def blow(dealt: Callable[Concatenate[Rehearsal, P], FaultReport]) -> Callable[Concatenate[Rehearsal, P], Fault]:
    """A blow that is noted. Its fault begins when it is dealt: it may be felt before there is proof that it fell."""

    @wraps(dealt)
    def noted(rehearsal: Rehearsal, /, *args: P.args, **kwargs: P.kwargs) -> Fault:
        began = time.time()
        return rehearsal.bit(dealt(rehearsal, *args, **kwargs), began)

    return noted


@blow
def kill_site(rehearsal: Rehearsal, site: str) -> FaultReport:
    """Everything of a site at once: servers and our own processes."""
    return _lose(rehearsal, site, "site-loss", kill_target)


@blow
def destroy(rehearsal: Rehearsal, site: str) -> FaultReport:
    """Everything of a site at once, and its disks."""
    return _lose(rehearsal, site, "site-destroyed", destroy_site)


@blow
def list_own_sites_first(rehearsal: Rehearsal) -> FaultReport:
    """The file of each site lists that site first, as whoever writes one does."""
    listed = {}
    for site in (rehearsal.active, rehearsal.standby):
        path = rehearsal.config(site)
        content = yaml.safe_load(path.read_text())
        content["sites"] = {site: content["sites"].pop(site), **content["sites"]}
        write_file(path, yaml.safe_dump(content, sort_keys=False))
        listed[site] = list(rehearsal.configuration(site).sites)
    evidence = tuple(f"the file of {site} lists {' and '.join(sites)}" for site, sites in listed.items())
    return FaultReport("site-order", "both", len({tuple(sites) for sites in listed.values()}) == 2, evidence)


@blow
def share_with(rehearsal: Rehearsal, second: Stranger) -> FaultReport:
    """A second installation is at work on the same topics and the same channel."""
    return meets(rehearsal, second)


def keep_replica(rehearsal: Rehearsal) -> None:
    """A replica inside the active site stands still from now on."""
    keep(rehearsal.layout, rehearsal.active, Deadline.after(PATIENCE_SECONDS))
    rehearsal.note("start", f"{rehearsal.active}: a replica of its database, which gets nothing more")


@blow
def promote_replica(rehearsal: Rehearsal) -> FaultReport:
    """The database of the active site is lost, and a replica takes its place that is behind the other site's."""
    site = rehearsal.active
    killed = kill_target(rehearsal.layout, f"{site}.postgres")
    promote(rehearsal.layout, site, Deadline.after(PATIENCE_SECONDS))
    applied = []
    for one in (site, rehearsal.standby):
        with session(rehearsal.dsn(one), Deadline.after(PATIENCE_SECONDS)) as connection:
            applied.append(int(one_row(connection, _APPLIED)[0]))
    evidence = (*killed.evidence, f"the replica has applied {applied[0]:,} records, the other site {applied[1]:,}")
    return FaultReport("replica-behind", site, killed.bit and applied[0] < applied[1], evidence)


def _lose(rehearsal: Rehearsal, site: str, fault: str, strike: Callable[[Layout, str], FaultReport]) -> FaultReport:
    count = rehearsal.processes[site].signal(signal.SIGKILL)
    report = strike(rehearsal.layout, site)
    evidence = (f"{count} processes of ours killed", *report.evidence)
    return FaultReport(fault, site, report.bit and count > 0, evidence)


@blow
def kill_part(rehearsal: Rehearsal, part: str) -> FaultReport:
    """One server."""
    return kill_target(rehearsal.layout, part)


@blow
def freeze_database(rehearsal: Rehearsal, site: str) -> FaultReport:
    """The database's host says nothing any more: its connections are there, are acknowledged, and never answered."""
    report = stop_target(rehearsal.layout, f"{site}.postgres")
    return FaultReport("database-vanished", site, report.bit, report.evidence)


def thaw_database(rehearsal: Rehearsal, fault: Fault) -> None:
    """The database is back, and does not know that it was away."""
    report = continue_target(rehearsal.layout, f"{fault.report.target}.postgres")
    rehearsal.healed(fault, f"the database of {fault.report.target} is back: {'; '.join(report.evidence)}")


@blow
def lose_broker(rehearsal: Rehearsal, site: str, *, empty: bool) -> FaultReport:
    """The Kafka of a site is killed; with `empty` its disk is gone as well."""
    report = kill_target(rehearsal.layout, f"{site}.kafka")
    evidence = report.evidence
    if empty:
        folders = [rehearsal.layout.folder_of(part) / "data" for part in parts_of(rehearsal.layout, f"{site}.kafka")]
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
        gone = not any(folder.exists() for folder in folders)
        evidence = (*evidence, "its data is removed" if gone else "its data is still there")
        return FaultReport("kafka-destroyed", site, report.bit and gone, evidence)
    return FaultReport("kafka-loss", site, report.bit, evidence)


@blow
def freeze_site(rehearsal: Rehearsal, site: str) -> FaultReport:
    """A site that stands still, and may go on later."""
    count = rehearsal.processes[site].signal(signal.SIGSTOP)
    report = stop_target(rehearsal.layout, site)
    evidence = (f"{count} processes of ours stopped", *report.evidence)
    return FaultReport("freeze", site, report.bit and count > 0, evidence)


def thaw_site(rehearsal: Rehearsal, fault: Fault) -> None:
    """The frozen site goes on, and does not know what happened meanwhile."""
    site = fault.report.target
    count = rehearsal.processes[site].signal(signal.SIGCONT)
    report = continue_target(rehearsal.layout, site)
    rehearsal.healed(fault, f"{site} goes on: {count} processes of ours; {'; '.join(report.evidence)}")


@blow
def cut(rehearsal: Rehearsal) -> FaultReport:
    """Nothing passes between the sites any more."""
    return cut_link(rehearsal.layout, BOTH, CutMode.HANG)


def heal(rehearsal: Rehearsal, fault: Fault) -> None:
    """The sites see each other again."""
    report = heal_link(rehearsal.layout, BOTH)
    rehearsal.healed(fault, f"the link is open again: {'; '.join(report.evidence)}")


@blow
def freeze_log_receiver(rehearsal: Rehearsal, clients: int) -> FaultReport:
    """The standby receives the log and stores nothing of it, so that commits of patient clients wait."""
    receiver = _log_receiver(rehearsal, rehearsal.standby)
    bit = receiver is not None and send(receiver, signal.SIGSTOP)
    rehearsal.business.submit_patiently(SiteName(rehearsal.active), clients)
    with session(rehearsal.database, Deadline.after(PATIENCE_SECONDS)) as primary:
        waiting = _wait_until_waiting(primary, clients)
        (behind,) = one_row(primary, _BEHIND)
    evidence = (
        f"the log receiver of {rehearsal.standby} is stopped (pid {receiver.pid if receiver else 0})",
        f"{waiting} commits wait for it, it is {behind:,} bytes behind",
    )
    return FaultReport("log-receiver-frozen", rehearsal.standby, bool(bit and waiting), evidence)


def thaw_log_receiver(rehearsal: Rehearsal, fault: Fault) -> None:
    """The standby stores what had reached its machine."""
    receiver = _log_receiver(rehearsal, fault.report.target)
    if receiver is not None:
        send(receiver, signal.SIGCONT)
    rehearsal.healed(fault, f"the log receiver of {fault.report.target} goes on")


@blow
def cancel_waiting_commits(rehearsal: Rehearsal) -> FaultReport:
    """An impatient administrator: commits that wait return, and their rows exist at one site only."""
    with session(rehearsal.database, Deadline.after(PATIENCE_SECONDS)) as primary:
        cancelled = _cancel_waiting(primary)
    evidence = (f"{cancelled} waiting commits were cancelled, and none waits any more",)
    return FaultReport("commit-wait-cancelled", rehearsal.active, cancelled > 0, evidence)


@blow
def restart_database(rehearsal: Rehearsal, site: str) -> FaultReport:
    """The database of a site that was taken over starts again as the primary it was, and nobody has told it."""
    rehearsal.start_servers(f"{site}.postgres")
    with session(rehearsal.dsn(site), Deadline.after(PATIENCE_SECONDS)) as primary:
        standing = read_standing(primary)
    live = standing.live_at(SiteName(site))
    evidence = (
        f"{site} is a primary, in epoch {standing.epoch}{', live by its own words' if live else ''}",
        "it was started anew" + ("" if standing.life else ", and nobody has verified that"),
    )
    return FaultReport("database-restarted", site, live, evidence)


@blow
def roll_back_storage(rehearsal: Rehearsal) -> FaultReport:
    """The database of the active site comes back as it was when a snapshot of its storage was kept."""
    return roll_back(rehearsal.layout, rehearsal.active)


def takes_rows(rehearsal: Rehearsal, site: str) -> bool:
    """Whether a client who inserts by SQL at this site is let in."""
    try:
        with session(rehearsal.dsn(site), Deadline.after(PATIENCE_SECONDS)) as primary:
            primary.execute(_INSERT.encode())
    except Refused:
        return False
    return True


@blow
def lose_answers(rehearsal: Rehearsal, count: int) -> FaultReport:
    """The receiver takes the next batches and its answers are lost on their way."""
    control, deadline = rehearsal.receiver, Deadline.after(PATIENCE_SECONDS)
    before = rehearsal.accepted()
    control.misbehave(lose_answers=count, deadline=deadline)
    lost = wait_until(
        "answers were lost", lambda: (count - control.behaviour(deadline=deadline).lose_answers) or None, deadline
    )
    evidence = (
        f"{lost} of {count} answers are lost so far, {rehearsal.accepted() - before} messages were taken meanwhile",
    )
    return FaultReport("answers-lost", "outside.receiver", lost > 0, evidence)


def behave(rehearsal: Rehearsal, fault: Fault) -> None:
    """The receiver behaves well again."""
    left = rehearsal.receiver.behaviour(deadline=Deadline.after(PATIENCE_SECONDS)).lose_answers
    rehearsal.receiver.behave(deadline=Deadline.after(PATIENCE_SECONDS))
    rehearsal.healed(fault, f"the receiver behaves well again, {left} answers would still have been lost")


@blow
def detain_message(rehearsal: Rehearsal) -> FaultReport:
    """What the active site sends next stays on the wire."""
    control, deadline = rehearsal.receiver, Deadline.after(PATIENCE_SECONDS)
    control.misbehave(detain=1, deadline=deadline)
    wait_until("a message is on the wire", lambda: control.behaviour(deadline=deadline).detained, deadline)
    return FaultReport("message-detained", rehearsal.active, True, ("1 batch was sent and has not arrived",))


def let_message_arrive(rehearsal: Rehearsal, fault: Fault) -> None:
    """What was on the wire arrives."""
    rehearsal.receiver.misbehave(detain=0, deadline=Deadline.after(PATIENCE_SECONDS))
    rehearsal.note("fault", f"the batch that {fault.report.target} had sent arrives")


@blow
def freeze_stages(rehearsal: Rehearsal) -> FaultReport:
    """The stages of the active site stand still in the middle of their work; its sender does not."""
    with session(rehearsal.database, Deadline.after(PATIENCE_SECONDS)) as connection:
        waiting = wait_until(
            "the stages have work", lambda: observe_drained(connection).instructions, Deadline.after(PATIENCE_SECONDS)
        )
    count = rehearsal.processes[rehearsal.active].signal_flow(signal.SIGSTOP)
    evidence = (f"{count} processes of ours stopped", f"{waiting} instructions were not applied then")
    return FaultReport("stages-frozen", rehearsal.active, count > 0, evidence)


def thaw_stages(rehearsal: Rehearsal, fault: Fault) -> None:
    """They go on with what they had begun."""
    count = rehearsal.processes[fault.report.target].signal_flow(signal.SIGCONT)
    rehearsal.healed(fault, f"{count} processes of the stages go on")


@blow
def freeze_processes(rehearsal: Rehearsal, site: str) -> FaultReport:
    """Our own processes of a site stand still, and are not the site's own any more."""
    frozen = rehearsal.processes.pop(site)
    count = frozen.signal(signal.SIGSTOP)
    rehearsal.strays.append(frozen)
    return FaultReport("freeze", f"{site}.processes", count > 0, (f"{count} processes of ours stopped",))


def thaw_processes(rehearsal: Rehearsal, fault: Fault) -> None:
    """They go on, and do not know what happened meanwhile."""
    count = rehearsal.strays[-1].signal(signal.SIGCONT)
    rehearsal.healed(fault, f"{count} processes that were frozen go on")


def _wait_until_waiting(primary: Connection, clients: int) -> int:
    """Return when the commits of so many clients wait for the standby; how many do."""
    return wait_until(
        "commits wait for the standby",
        lambda: (found := int(one_row(primary, _WAITING)[0])) >= clients and found,
        Deadline.after(10),
    )


def _cancel_waiting(primary: Connection) -> int:
    """Let commits that wait return; how many did."""
    (cancelled,) = one_row(primary, _CANCEL)
    wait_until("nobody waits", lambda: int(one_row(primary, _WAITING)[0]) == 0, Deadline.after(10))
    return int(cancelled)


def _log_receiver(rehearsal: Rehearsal, site: str) -> Process | None:
    """The process that receives the log at a standby, by its title."""
    for process in processes_of(rehearsal.layout.path):
        if process.part == f"{site}.postgres":
            with suppress(OSError), open(f"/proc/{process.pid}/cmdline", "rb") as title:
                if b"walreceiver" in title.read():
                    return process
    return None
