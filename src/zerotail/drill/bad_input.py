"""Blows that come from neighbours: rows of which no record can be made, and a receiver that keeps to no protocol."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

from zerotail.core.identity import ChannelName, PartitionNumber, ProducerName
from zerotail.core.record import digest_of
from zerotail.deadline import Deadline, wait_until
from zerotail.drill.blows import blow
from zerotail.drill.history import SubmitInvoked, SubmitUnknown
from zerotail.drill.rehearsal import CHANNEL, PATIENCE_SECONDS, STAGE, Fault, Rehearsal
from zerotail.lab.fault import FaultReport
from zerotail.lab.receiver.rudeness import Rudeness
from zerotail.postgres.connection import session
from zerotail.postgres.lane_stop import resume_lanes
from zerotail.postgres.remedy import Spoiled, Wish, decide, list_spoiled

LISTED_SECONDS = 5.0
"""Within which a row that stops its producer is listed."""
_PACE_SECONDS = 3.0
_OPERATOR = "drill"
_INSERT = """
insert into zerotail.submission (producer, partition, id, value)
select producer, %s, %s, %s from zerotail.producer where name = %s
"""
_TAKEN = """
select producer.name, partition, coalesce((vector ->> producer::text)::bigint, 0)
  from zerotail.producer join zerotail.head on stage = consumer where channel = ''
"""
_FOUND = """
select extract(epoch from max(found_at - submitted_at))::float8
  from zerotail.poison join zerotail.instruction using (producer, partition, serial) where id = any(%s)
"""
_OF_A_RECEIVER = ("the receiver", "in doubt")
Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class UnfitRow:
    """A row that a client brings by SQL, and that no transform of the example can read."""

    producer: str
    partition: int
    id: str
    value: bytes

    @property
    def place(self) -> Place:
        """Where it stands."""
        return self.producer, self.partition


@blow
def submit_unfit(rehearsal: Rehearsal, rows: Collection[UnfitRow]) -> FaultReport:
    """Clients are told that their rows are stored, and no record can be made of them."""
    with session(rehearsal.database, Deadline.after(PATIENCE_SECONDS)) as primary:
        for row in rows:
            digest = digest_of(row.value).hex()
            named = {"producer": ProducerName(row.producer), "partition": PartitionNumber(row.partition)}
            rehearsal.business.noted.append(
                SubmitInvoked(id=row.id, digest=digest, time=time.monotonic_ns(), **named)  # type: ignore[arg-type]
            )
            primary.execute(_INSERT.encode(), (row.partition, row.id, row.value, row.producer))
            said = "the commit returned, and nobody asked the gate"
            rehearsal.business.noted.append(SubmitUnknown(id=row.id, reason=said, time=time.monotonic_ns()))
    wait_until(
        "their producers stand",
        lambda: {row.place for row in rows} <= {_place_of(one) for one in standing(rehearsal)},
        Deadline.after(PATIENCE_SECONDS),
    )
    found = [one for one in standing(rehearsal) if _place_of(one) in {row.place for row in rows}]
    evidence = tuple(
        f"{one.producer_name}/{one.partition} stands at serial {one.serial}: {one.reason}" for one in found
    )
    return FaultReport("unfit-rows", rehearsal.active, len(found) == len(rows), evidence)


def standing(rehearsal: Rehearsal) -> list[Spoiled]:
    """The rows at which producers stand, as `zerotail poison list` has them."""
    with session(rehearsal.database, Deadline.after(PATIENCE_SECONDS)) as connection:
        return [one for one in list_spoiled(connection) if one.at_door and one.waits]


def seconds_until_listed(rehearsal: Rehearsal, rows: Collection[UnfitRow]) -> float:
    """By the database's clock, of the slowest."""
    with session(rehearsal.database, Deadline.after(PATIENCE_SECONDS)) as connection:
        (seconds,) = connection.execute(_FOUND.encode(), ([row.id for row in rows],)).fetchone() or (None,)
    return float("inf") if seconds is None else float(seconds)


def decide_about(rehearsal: Rehearsal, row: UnfitRow, remedy: str, instead: bytes | None = None) -> None:
    """The operator's word on a row at which a producer stands, at the active site."""
    (one,) = [one for one in standing(rehearsal) if _place_of(one) == row.place]
    wish = Wish(one.stage, one.partition, one.producer, one.serial, one.digest, remedy, instead, _OPERATOR)
    with session(rehearsal.database, Deadline.after(PATIENCE_SECONDS)) as primary, primary.transaction():
        decide(primary, wish)
    rehearsal.note("act", f"poison {remedy}: serial {one.serial} of {row.producer}, partition {row.partition}")


def _place_of(one: Spoiled) -> Place:
    return one.producer_name, one.partition


def pace_of_producers(rehearsal: Rehearsal, without: Collection[Place] = ()) -> float:
    """Rows a second that the stage takes of all producers and partitions but these."""

    def taken() -> int:
        with session(rehearsal.database, Deadline.after(PATIENCE_SECONDS)) as connection:
            rows = connection.execute(_TAKEN.encode()).fetchall()
        return sum(last for name, partition, last in rows if (name, partition) not in without)

    return _per_second(taken)


def pace_of_lanes(rehearsal: Rehearsal, without: int) -> float:
    """Messages a second that the receiver accepts on all lanes but one."""
    return _per_second(lambda: sum(one.accepted for one in rehearsal.totals() if one.partition != without))


def accepted_on(rehearsal: Rehearsal, partition: int) -> int:
    """Messages that the receiver has accepted on one lane."""
    return sum(one.accepted for one in rehearsal.totals() if one.partition == partition)


def wait_for_lane(rehearsal: Rehearsal, partition: int) -> None:
    """Return when a lane goes on."""
    before = accepted_on(rehearsal, partition)
    wait_until("the lane goes on", lambda: accepted_on(rehearsal, partition) > before, Deadline.after(PATIENCE_SECONDS))


def _per_second(counted: Callable[[], int]) -> float:
    before, began = counted(), time.monotonic()
    time.sleep(_PACE_SECONDS)
    return (counted() - before) / (time.monotonic() - began)


def partitions_of(rehearsal: Rehearsal) -> int:
    """Of the topic that the example's stage reads."""
    configuration = rehearsal.configuration(rehearsal.active)
    (topic,) = (stage.consumes for name, stage in configuration.stages.items() if name == STAGE)
    return configuration.topics[topic].partitions


@blow
def be_rude(rehearsal: Rehearsal, how: Rudeness, partition: int) -> FaultReport:
    """The receiver answers the sender of one lane what is of no protocol."""
    control, deadline = rehearsal.receiver, Deadline.after(PATIENCE_SECONDS)
    before = control.misbehave(rudeness=how, rude_to=partition, deadline=deadline).rude_answers
    given = wait_until(
        "a rude answer is given", lambda: control.behaviour(deadline=deadline).rude_answers - before or None, deadline
    )
    evidence = (f"{given} answers on lane {partition} were {how} so far",)
    return FaultReport(f"receiver-{how}", f"{CHANNEL}/{partition}", given > 0, evidence)


def be_polite(rehearsal: Rehearsal, fault: Fault) -> None:
    """The receiver keeps to its protocol again."""
    given = rehearsal.receiver.misbehave(rudeness="", deadline=Deadline.after(PATIENCE_SECONDS)).rude_answers
    rehearsal.healed(fault, f"the receiver is polite again, {given} rude answers in all")


def lane_says(rehearsal: Rehearsal, partition: int) -> str:
    """What the sender of a lane says of its receiver, by its own words in the database; empty while it has none."""
    query = (
        "select doing, reason from zerotail.process where role = 'emitter' and name = %s and partition = %s "
        "and site = %s"
    )
    with session(rehearsal.database, Deadline.after(PATIENCE_SECONDS)) as connection:
        row = connection.execute(query.encode(), (CHANNEL, partition, rehearsal.active)).fetchone()
    return "" if row is None or not any(word in row[1] for word in _OF_A_RECEIVER) else f"{row[0]}: {row[1]}"


def resume_lane(rehearsal: Rehearsal, partition: int) -> None:
    """The operator lets a lane go on that has stopped."""
    with session(rehearsal.database, Deadline.after(PATIENCE_SECONDS)) as primary, primary.transaction():
        resume_lanes(primary, ChannelName(CHANNEL), PartitionNumber(partition), _OPERATOR)
    rehearsal.note("act", f"emissions resume: {CHANNEL}, partition {partition}")
