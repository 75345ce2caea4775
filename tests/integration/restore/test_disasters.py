"""Random disasters on real servers: every strategy gives the same sequence, byte for byte, and the recorded chain."""

from __future__ import annotations

from random import Random

import pytest

from support.journal import FIRST, SETTLE, superuser
from support.restoring import Disaster, disorder, make_disaster, write_log
from zerotail.core.identity import TopicName, epoch_of
from zerotail.core.restoration.forecast import RestoreStrategy
from zerotail.deadline import Deadline
from zerotail.errors import Broken, Refused
from zerotail.lab.layout import Layout
from zerotail.postgres.connection import connect
from zerotail.postgres.journal import find_head
from zerotail.restore import Wish, plan_restore, run_restore

STATES = ("empty", "mirrored", "refilled", "refilled in part", "with orphans")


def leave_topic(disaster: Disaster, state: str, seed: int) -> None:
    """Bring the topic into a state that a disaster leaves."""
    taken, place, chance = list(disaster.taken), disaster.place, Random(seed)
    part = chance.randint(1, len(taken) - 1)
    if state == "mirrored":
        write_log(place, taken[:part])
    elif state == "refilled":
        write_log(place, disorder(taken, seed))
    elif state == "refilled in part":
        write_log(place, disorder(taken[:part], seed))
    elif state == "with orphans":
        producer, serial, _ = taken[part]
        write_log(place, taken[:part])
        write_log(place, [(producer, serial, b"of another history")], epoch=epoch_of(9, 1))
        write_log(place, disorder(taken, seed))


def recorded_chain(disaster: Disaster) -> str:
    with connect(disaster.place.dsn, Deadline.after(30)) as session:
        head = find_head(session, SETTLE, FIRST)
    assert head is not None
    return head.chain.hex()


@pytest.mark.parametrize(
    ("seed", "state"),
    [
        *(pytest.param(seed, state, marks=pytest.mark.servers) for seed, state in enumerate(STATES, 1)),
        *(pytest.param(seed, state, marks=pytest.mark.nightly) for seed, state in enumerate(STATES * 4, 6)),
    ],
)
def test_all_strategies_give_the_same_sequence_and_the_recorded_chain(lab: Layout, seed: int, state: str) -> None:
    disaster = make_disaster(lab, seed)
    leave_topic(disaster, state, seed)
    expected = [value for _, _, value in disaster.taken]
    chain = recorded_chain(disaster)
    into = TopicName(f"{disaster.place.topic}-in-order")
    refilled = disaster.run("ordered-refill", into=into)
    assert (refilled.chain, [value for _, _, value in disaster.content(into)]) == (chain, expected)
    for strategy, cache in (("unbounded", None), ("bounded", 7), ("bounded", 1_000_000)):
        report, values = disaster.run_collecting(strategy, cache)
        assert values == expected, f"{strategy} {cache}"
        assert report.chain == chain
        assert report.outcome.statistics is not None
        assert report.outcome.statistics.peak_cache_messages <= (cache if cache is not None else 10**9)
    passed = disaster.run("skip")
    assert passed.outcome.statistics is not None
    assert passed.outcome.statistics.total == 0
    assert {record[2] for record in disaster.content()} >= set(expected)


@pytest.mark.servers
def test_a_mirrored_prefix_is_kept_and_only_the_tail_is_written_and_read(lab: Layout) -> None:
    disaster = make_disaster(lab, 21, segments=40, most=200)
    kept = len(disaster.taken) - 300
    write_log(disaster.place, disaster.taken[:kept])
    report = disaster.run("mirror-tail")
    assert report.outcome.writes == 300
    assert report.chain == recorded_chain(disaster)
    assert [value for _, _, value in disaster.content()] == [value for _, _, value in disaster.taken]
    assert report.outcome.reads < 1


@pytest.mark.servers
def test_the_follower_appends_what_is_missing_and_finds_nothing_the_next_time(lab: Layout) -> None:
    disaster = make_disaster(lab, 22)
    write_log(disaster.place, disaster.taken[:-25])
    assert disaster.run("follower").outcome.writes == 25
    assert disaster.run("follower").outcome.writes == 0
    assert [value for _, _, value in disaster.content()] == [value for _, _, value in disaster.taken]


@pytest.mark.servers
def test_auto_takes_the_fastest_that_can_be_used_and_the_others_say_why_not(lab: Layout) -> None:
    disaster = make_disaster(lab, 23)
    plan = plan_restore(disaster.place, Wish()).plan
    assert plan.chosen is RestoreStrategy.ORDERED_REFILL
    reasons = {one.strategy: one.reason for one in plan.forecasts if not one.usable}
    assert "the topic is empty" in reasons[RestoreStrategy.FOLLOWER]
    assert "--engine spark" in reasons[RestoreStrategy.SORT]
    write_log(disaster.place, disaster.taken[:-5])
    assert plan_restore(disaster.place, Wish()).plan.chosen is RestoreStrategy.FOLLOWER
    write_log(disaster.place, disorder(disaster.taken, 23))
    disordered = plan_restore(disaster.place, Wish())
    assert disordered.plan.chosen in (RestoreStrategy.UNBOUNDED, RestoreStrategy.BOUNDED)
    with pytest.raises(Refused, match="another order than the journal's; name another one by --into"):
        disaster.run("ordered-refill")


def spoil(disaster: Disaster, statement: str) -> None:
    with superuser(disaster.place.dsn) as session:
        assert session.execute(statement.encode()).rowcount == 1


@pytest.mark.servers
@pytest.mark.parametrize(
    ("statement", "message", "code"),
    [
        ("delete from zerotail.segment where segment = 5", "damaged at segment 5, position .*is missing", "ZT640"),
        (
            "update zerotail.segment set chain = sha256('x') where segment = 6",
            "segment 6 of settle partition 0, positions .* comes to chain",
            "ZT641",
        ),
        (
            "update zerotail.instruction set value = 'other' where producer = 1 and serial = 40 and partition = 0",
            r"producer 1, serial 40\) at position|segment . of settle",
            "",
        ),
        ("delete from zerotail.instruction where producer = 1 and serial = 40 and partition = 0", "no row", "ZT644"),
    ],
)
def test_a_damaged_journal_stops_every_strategy_with_the_coordinates_and_nothing_of_the_damage_is_written(
    lab: Layout, statement: str, message: str, code: str
) -> None:
    disaster = make_disaster(lab, 31)
    into = f"{disaster.place.topic}-in-order"
    spoil(disaster, statement)
    with pytest.raises(Broken, match=message) as stopped:
        disaster.run("ordered-refill", into=into)
    assert stopped.value.code == code or not code
    expected = [value for _, _, value in disaster.taken]
    written = [value for _, _, value in disaster.content(into)] if code != "ZT640" else []
    assert written == expected[: len(written)]
    write_log(disaster.place, disorder(disaster.taken, 31))
    if "instruction" not in statement:  # a restore at the consumer reads no rows
        for strategy in ("unbounded", "bounded"):
            with pytest.raises(Broken, match=message):
                disaster.run(strategy)


@pytest.mark.servers
def test_a_record_in_the_log_with_another_value_is_named(lab: Layout) -> None:
    disaster = make_disaster(lab, 32)
    records = disorder(disaster.taken, 32, repeats=0.0)
    place = next(i for i, record in enumerate(records) if record[:2] == (1, 33))
    records[place] = (1, 33, b"another")
    write_log(disaster.place, records)
    position = next(i for i, record in enumerate(disaster.taken) if record[:2] == (1, 33))
    values: list[bytes] = []
    seen = plan_restore(disaster.place, Wish(RestoreStrategy.UNBOUNDED))
    with pytest.raises(Broken, match=rf"producer 1, serial 33\) at position {position} of settle") as stopped:
        run_restore(seen, consume=lambda batch: values.extend(batch.column("value").to_pylist()))
    assert stopped.value.code == "ZT642"
    assert values == [value for _, _, value in disaster.taken[: len(values)]]
    assert len(values) <= position
