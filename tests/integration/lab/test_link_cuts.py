"""Cuts: what each end of a connection sees while the line is dead, and after."""

from __future__ import annotations

import pytest

from integration.lab.link_bench import (
    EAST_WEST,
    WEST_EAST,
    LinkBench,
    is_silent,
    kill,
    receive,
)
from zerotail.deadline import wait_until
from zerotail.lab.link import CutMode

pytestmark = pytest.mark.fast


def test_a_hanging_cut_is_silence_and_heal_continues_the_same_connection(bench: LinkBench) -> None:
    east, west = bench.connect()
    done = bench.control.cut(deadline=bench.deadline)
    assert done.evidence.connections_stalled == 1
    assert [way.cut for way in done.status.ways] == [CutMode.HANG, CutMode.HANG]

    east.sendall(b"from east")
    west.sendall(b"from west")
    assert is_silent(west)
    assert is_silent(east, 0)
    assert bench.control.status(deadline=bench.deadline).way(EAST_WEST).delivered_bytes == 0

    bench.control.heal(deadline=bench.deadline)
    assert receive(west, 9) == b"from east"
    assert receive(east, 9) == b"from west"


@pytest.mark.parametrize("opener", [EAST_WEST, WEST_EAST])
def test_a_one_way_cut_stops_the_bytes_of_that_direction_whoever_opened_the_connection(
    bench: LinkBench, opener: str
) -> None:
    client, server = bench.connect(opener)
    east, west = (client, server) if opener == EAST_WEST else (server, client)
    bench.control.cut(EAST_WEST, deadline=bench.deadline)

    west.sendall(b"passes")
    assert receive(east, 6) == b"passes"
    east.sendall(b"waits")
    assert is_silent(west)

    bench.control.heal(EAST_WEST, deadline=bench.deadline)
    assert receive(west, 5) == b"waits"


@pytest.mark.parametrize("direction", [EAST_WEST, WEST_EAST, "both"])
def test_new_connections_reach_nobody_until_a_hanging_cut_heals(bench: LinkBench, direction: str) -> None:
    bench.control.cut(direction, deadline=bench.deadline)
    client = bench.call()
    client.sendall(b"anybody?")
    assert is_silent(bench.targets[EAST_WEST])

    bench.control.heal(deadline=bench.deadline)
    assert receive(bench.answer(), 8) == b"anybody?"


def test_who_came_during_a_cut_and_left_before_it_healed_never_existed(bench: LinkBench) -> None:
    bench.control.cut(deadline=bench.deadline)
    gone = bench.call()
    gone.sendall(b"a payment that its sender gave up")
    gone.close()
    bench.control.heal(deadline=bench.deadline)
    assert is_silent(bench.targets[EAST_WEST])
    assert bench.control.status(deadline=bench.deadline).forward("east->west.echo").connections_total == 0


def test_during_a_hanging_cut_neither_end_learns_that_the_other_died(bench: LinkBench) -> None:
    east, west = bench.connect()
    bench.control.cut(deadline=bench.deadline)
    kill(east)
    assert is_silent(west)
    bench.control.heal(deadline=bench.deadline)
    with pytest.raises(ConnectionResetError):
        west.recv(1)


def test_when_both_ends_have_died_during_a_hold_the_connection_is_forgotten_on_release(
    bench: LinkBench,
) -> None:
    east, west = bench.connect()
    bench.control.hold(WEST_EAST, deadline=bench.deadline)
    west.sendall(b"held for somebody who is gone")
    kill(west)

    def is_lost() -> bool:
        """East notices nothing; the link does, when it cannot pass on what east says."""
        east.sendall(b"x")
        before = delivered_bytes()
        east.sendall(b"x")
        return delivered_bytes() == before

    def delivered_bytes() -> int:
        return bench.control.status(deadline=bench.deadline).way(EAST_WEST).delivered_bytes

    wait_until("the link has lost west", is_lost, bench.deadline)
    kill(east)
    bench.control.release(deadline=bench.deadline)

    def is_forgotten() -> bool:
        status = bench.control.status(deadline=bench.deadline)
        return status.forward("east->west.echo").connections_open == 0

    wait_until("the link forgets the connection", is_forgotten, bench.deadline)
    assert bench.control.status(deadline=bench.deadline).way(WEST_EAST).held_bytes == 0


def test_a_resetting_cut_resets_what_exists_and_refuses_what_comes(bench: LinkBench) -> None:
    east, west = bench.connect()
    done = bench.control.cut(mode=CutMode.RESET, deadline=bench.deadline)
    assert done.evidence.connections_reset == 1
    for end in (east, west):
        with pytest.raises(ConnectionResetError):
            end.recv(1)
    with pytest.raises(ConnectionRefusedError):
        bench.call()

    bench.control.heal(deadline=bench.deadline)
    east, west = bench.connect()
    east.sendall(b"again")
    assert receive(west, 5) == b"again"


def test_a_reset_may_turn_into_silence_and_back(bench: LinkBench) -> None:
    bench.control.cut(mode=CutMode.RESET, deadline=bench.deadline)
    bench.control.cut(mode=CutMode.HANG, deadline=bench.deadline)
    waiting = bench.call()
    bench.control.cut(mode=CutMode.RESET, deadline=bench.deadline)
    with pytest.raises(ConnectionResetError):
        waiting.recv(1)


def test_when_the_target_is_down_the_client_is_reset_and_the_link_lives(bench: LinkBench) -> None:
    bench.targets[EAST_WEST].close()
    with pytest.raises(ConnectionResetError):  # of the call itself, if the answer of the target is quick
        bench.call().recv(1)
    forward = bench.control.status(deadline=bench.deadline).forward("east->west.echo")
    assert (forward.connections_failed, forward.connections_open) == (1, 0)
    east, west = bench.connect(WEST_EAST)
    east.sendall(b"fine")
    assert receive(west, 4) == b"fine"
