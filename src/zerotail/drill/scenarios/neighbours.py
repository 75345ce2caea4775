"""Neighbours that bring what nobody can take: rows of clients, answers of a receiver. Trouble reaches no further."""

from __future__ import annotations

from typing import get_args

from zerotail.deadline import Deadline, wait_until
from zerotail.drill import bad_input, blows
from zerotail.drill.acts import take_over
from zerotail.drill.bad_input import LISTED_SECONDS, UnfitRow
from zerotail.drill.rehearsal import PATIENCE_SECONDS, Rehearsal
from zerotail.drill.running import EMITTER, Running, part_of
from zerotail.drill.scenarios.scenario import MESSAGES, Scenario
from zerotail.lab.receiver.rudeness import Rudeness
from zerotail.status.observation import observe_status

_KEEPS = 0.1
"""Of the usual pace, on a machine that everything shares; who waits for somebody else's trouble does nothing."""
_REPAIRED = b'{"id":"repaired","account":"a0001","amount":1}'


def _poison_at_the_door(rehearsal: Rehearsal) -> None:
    site, last = rehearsal.active, bad_input.partitions_of(rehearsal) - 1
    number = len(rehearsal.earlier_faults)
    rows = (
        UnfitRow("cards", 0, f"unfit-{number}", b"x"),
        UnfitRow("wires", last, f"unreadable-{number}", b"\xff\xfe{}"),
    )
    places = {row.place for row in rows}
    usual = bad_input.pace_of_producers(rehearsal, places)
    fault = bad_input.submit_unfit(rehearsal, rows)
    listed = bad_input.seconds_until_listed(rehearsal, rows)
    rehearsal.promise(f"they are listed within {LISTED_SECONDS:g} s: {listed:.2f} s", listed < LISTED_SECONDS)
    said = observe_status(rehearsal.configuration(site)).reasons[:1]
    rehearsal.promise(f"status begins with one: {' '.join(said)}", "stands at serial" in "".join(said))
    pace = bad_input.pace_of_producers(rehearsal, places)
    told = f"{pace:.0f} rows a second, {usual:.0f} before"
    rehearsal.promise(f"all other producers and partitions go on: {told}", pace > _KEEPS * usual)
    bad_input.decide_about(rehearsal, rows[0], "skip")
    rehearsal.wait_for_new(MESSAGES)
    lost = blows.kill_site(rehearsal, site)
    take_over(rehearsal, rehearsal.standby)
    waiting = {(one.producer_name, one.partition) for one in bad_input.standing(rehearsal)}
    rehearsal.promise("what nobody decided about waits at the other site, too", waiting == {rows[1].place})
    bad_input.decide_about(rehearsal, rows[1], "replace", _REPAIRED)
    rehearsal.healed(fault, "both rows are decided about")
    rehearsal.fault = lost


def _rude_receiver(rehearsal: Rehearsal) -> None:
    lane, site = bad_input.partitions_of(rehearsal) - 1, rehearsal.active
    running = rehearsal.processes[site]
    sender = _senders(running)
    usual = bad_input.pace_of_lanes(rehearsal, lane)
    remembers = rehearsal.layout.receiver_class in ("R0", "R2")
    for how in get_args(Rudeness)[1:]:
        if how == "ahead" and not remembers:
            continue  # who is never asked where it stands cannot lie about it
        fault = bad_input.be_rude(rehearsal, how, lane)
        why = wait_until(
            "the lane says why it stands",
            lambda: bad_input.lane_says(rehearsal, lane),
            Deadline.after(PATIENCE_SECONDS),
        )
        rehearsal.note("found", f"{how}: {why}")
        pace = bad_input.pace_of_lanes(rehearsal, lane)
        told = f"{pace:.0f} messages a second, {usual:.0f} before"
        rehearsal.promise(f"{how}: the other lanes go on: {told}", pace > _KEEPS * usual)
        if how == "ahead":
            stops = wait_until(
                "the lane stops", lambda: "ZT601" in bad_input.lane_says(rehearsal, lane), Deadline.after(30)
            )
            rehearsal.promise("a receiver that has what was never sent stops its lane", stops)
        bad_input.be_polite(rehearsal, fault)
        if how == "ahead":
            bad_input.resume_lane(rehearsal, lane)
        bad_input.wait_for_lane(rehearsal, lane)
        wait_until(
            "the lane has nothing to say of its receiver any more",
            lambda: not bad_input.lane_says(rehearsal, lane),
            Deadline.after(PATIENCE_SECONDS),
        )
    rehearsal.wait_for_new(MESSAGES)
    rehearsal.promise("the sender is the same process all the time", _senders(running) == sender)
    rude = bad_input.be_rude(rehearsal, "redirect", lane)
    lost = blows.kill_site(rehearsal, site)
    take_over(rehearsal, rehearsal.standby)
    pace = bad_input.pace_of_lanes(rehearsal, lane)
    rehearsal.promise(f"the other site sends on all other lanes: {pace:.0f} messages a second", pace > 0)
    bad_input.be_polite(rehearsal, rude)
    rehearsal.fault = lost


def _senders(running: Running) -> list[int]:
    return [pid for pid in running.members() if part_of(pid) == EMITTER]


SCENARIOS = (
    Scenario(
        "poison-at-the-door",
        "clients bring rows of which no record can be made; the active site is lost before all are decided about",
        _poison_at_the_door,
        ("unfit-rows", "site-loss"),
    ),
    Scenario(
        "rude-receiver",
        "the receiver answers one lane in every way that is of no protocol; then the active site is lost",
        _rude_receiver,
        (*(f"receiver-{how}" for how in get_args(Rudeness)[1:] if how != "ahead"), "site-loss"),
    ),
)
