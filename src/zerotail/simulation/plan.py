"""What happens in a run, decided before it begins: sizes, and a list of faults, each at one step.

Everything is drawn from one seed. The probabilities themselves are drawn first, and many of them are zero,
so that different seeds look for different trouble. A plan is a value: a failure is reproduced from its
seed, and made small by taking faults out of the plan.

A *step* is one effect of one process. Faults that hit a process hit the one whose effect has that number.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from zerotail.core.receiver import DoubtPolicy, ReceiverClass
from zerotail.simulation.outside import Kind

# Faults of the process whose effect it is.
CRASH_BEFORE, CRASH_AFTER = "crash before", "crash after"
FREEZE, SECOND = "freeze", "second instance"
LOSE_REQUEST, LOSE_ANSWER, LATE = "lose request", "lose answer", "deliver late"
PROCESS_FAULTS = (CRASH_BEFORE, CRASH_AFTER, FREEZE, SECOND, LOSE_REQUEST, LOSE_ANSWER, LATE)

# Faults of the world.
KAFKA_TRUNCATE, KAFKA_WIPE, KAFKA_RETAIN = "kafka loses its tail", "kafka is wiped", "kafka forgets"
KAFKA_MARK, KAFKA_REPEAT, KAFKA_DOWN = "kafka marker", "kafka repeats", "kafka is down"
KAFKA_FOREIGN, KAFKA_SPOILS = "kafka takes a foreign record", "kafka spoils a value"
KAFKA_OTHERS = "kafka takes a record of another installation"
DB_RESTART, DB_CANCEL, DB_TERMINATE = "database restarts", "wait cancelled", "session terminated"
DB_ROLLBACK = "database comes back as it was a while ago"
DB_REPLICA = "a replica of the site waits to be promoted"
DB_ANOTHER = "another standby of the site answers"
"""In narrowed plans only: one that answers while the gate asks the other one breaks what E8 rests on, one address."""
DB_NAMES, DB_FAILOVER = "standby names emptied", "database fails over inside"
OUTSIDE_OTHERS = "another installation sends to a receiver"
LINK_CUT, LINK_ONE_WAY, OUTSIDE_CUT = "link is cut", "link is cut one way", "outside is cut off"
SITE_DOWN, SITE_DESTROYED = "site is down", "site is destroyed"
WORLD_FAULTS = (
    KAFKA_TRUNCATE,
    KAFKA_WIPE,
    KAFKA_RETAIN,
    KAFKA_MARK,
    KAFKA_REPEAT,
    KAFKA_DOWN,
    KAFKA_FOREIGN,
    KAFKA_SPOILS,
    DB_RESTART,
    DB_CANCEL,
    DB_TERMINATE,
    DB_NAMES,
    DB_FAILOVER,
    LINK_CUT,
    LINK_ONE_WAY,
    OUTSIDE_CUT,
    SITE_DOWN,
    SITE_DESTROYED,
)

# Acts of operators.
TAKEOVER, TAKEOVER_BOTH, HANDOVER = "takeover", "takeover at both sites", "handover"
REJOIN, EXPOSE = "rejoin", "expose"
OPERATOR_ACTS = (TAKEOVER, TAKEOVER_BOTH, HANDOVER, REJOIN, EXPOSE)


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault at one step. `length` is for how long, `choice` picks a victim where there are several."""

    step: int
    kind: str
    length: int = 0
    choice: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """One run."""

    seed: int
    partitions: int = 1
    producers: int = 2
    clients: int = 1
    """Per producer; each submits one instruction after the other."""
    instructions: int = 6
    receiver: ReceiverClass = ReceiverClass.R2
    kind: Kind = Kind.HTTP
    """What receivers of class R0 are."""
    policy: DoubtPolicy = DoubtPolicy.HOLD
    two_stages: bool = False
    synchronous: bool = False
    fence: bool = False
    batch: int = 3
    window: int = 2
    horizon: int = 300
    """Faults happen below this step; then everything is healed."""
    errant: bool = False
    """Operators believe that a site is out which is only cut off, and take over at one that they declared
    out.
    """
    forgetful: bool = False
    """Operators do not know which site went on last, and take over wherever the plan of a takeover lets them."""
    waiting: bool = False
    """Clients take nothing for accepted that is stored at one site only."""
    careless: int = 0
    """One instruction in so many should not be taken: it is for a partition that is not there, has the identifier of
    another one, or a value that no record can hold; 0 for none.
    """
    given: bool = False
    """Clients draw the serials of their instructions themselves, and store them in any order. In narrowed plans only:
    one that gives up a serial leaves a hole at the end of a run, which no rule tells from a loss.
    """
    poison: int = 0
    """One instruction in so many stops its partition, until an operator decides about it; 0 for none."""
    faults: tuple[Fault, ...] = ()
    heal: str = REJOIN
    """What operators do when all is healed: bring the other site back, or also hand over to it."""


def draw(seed: int) -> Plan:
    """The plan of a seed."""
    random = Random(seed)  # noqa: S311
    two_stages = random.random() < 0.25
    partitions = random.choice((1, 1, 2)) if not two_stages else random.choice((1, 1, 1, 2))
    horizon = random.choice((150, 300, 500, 900))
    receiver = random.choice(list(ReceiverClass))
    kind = Random(seed ^ 0x0D0).choice(list(Kind))  # noqa: S311
    # Two histories are noticed only where an older sender is refused.
    errant = receiver.remembers and random.random() < 0.06 and (receiver, kind) != (ReceiverClass.R0, Kind.HTTP)
    return Plan(
        seed=seed,
        partitions=partitions,
        producers=random.choice((1, 2, 2, 3)),
        clients=random.choice((1, 1, 2)),
        instructions=random.choice((3, 6, 10, 16)),
        receiver=receiver,
        kind=kind,
        policy=random.choice(list(DoubtPolicy)),
        two_stages=two_stages,
        synchronous=random.random() < 0.3,
        fence=random.random() < 0.2,
        batch=random.choice((1, 2, 3, 8)),
        window=random.choice((1, 2, 5)),
        horizon=horizon,
        errant=errant,
        faults=tuple(
            sorted(
                (
                    *_draw_faults(random, horizon),
                    *_draw_rollbacks(seed, horizon),
                    *_draw_others(seed, horizon),
                    *_draw_replicas(seed, horizon),
                ),
                key=_step,
            )
        ),
        heal=random.choice((REJOIN, REJOIN, HANDOVER, TAKEOVER)),
        poison=random.choice((0, 0, 0, 2, 5)),
        forgetful=not errant and _is_asked(receiver, kind) and Random(seed ^ 0xE7).random() < 0.3,  # noqa: S311
        waiting=Random(seed ^ 0xE16).random() < 0.2,  # noqa: S311
        careless=Random(seed ^ 0xE12).choice((0, 0, 0, 0, 3)),  # noqa: S311
    )


def _is_asked(receiver: ReceiverClass, kind: Kind) -> bool:
    """Whether a plan can ask a receiver who claimed it last."""
    return receiver is ReceiverClass.R2 or (receiver is ReceiverClass.R0 and kind is Kind.POSTGRES)


def _draw_faults(random: Random, horizon: int) -> list[Fault]:
    """Process faults by density, and a handful of larger ones."""
    faults: list[Fault] = []
    kinds = [kind for kind in PROCESS_FAULTS if random.random() < 0.5]
    if random.random() < 0.9:
        kinds += [CRASH_BEFORE, CRASH_AFTER] * random.choice((1, 3))
    if kinds:
        gap = random.choice((3, 4, 5, 6, 8, 12, 30))
        step = random.randrange(1, 2 * gap)
        while step < horizon:
            faults.append(_fault(random, step, random.choice(kinds)))
            step += 1 + int(random.expovariate(1.0 / gap))
    larger = [kind for kind in WORLD_FAULTS if random.random() < 0.3]
    acts = [kind for kind in OPERATOR_ACTS if random.random() < 0.6]
    for kinds_of, most in ((larger, 6), (acts, 5)):
        if kinds_of:
            faults += [
                _fault(random, random.randrange(horizon), random.choice(kinds_of))
                for _ in range(random.randrange(most + 1))
            ]
    if random.random() < 0.25:
        # A failover inside a site hurts most when the other site has not seen the last rows.
        for _ in range(random.randrange(1, 4)):
            step = random.randrange(horizon)
            faults.append(_fault(random, step, random.choice((LINK_CUT, LINK_ONE_WAY))))
            faults.append(_fault(random, step + random.randrange(2, 24), DB_FAILOVER))
    if SITE_DOWN in larger or SITE_DESTROYED in larger:
        faults.append(_fault(random, random.randrange(horizon), TAKEOVER))
    faults.sort(key=lambda fault: fault.step)
    return faults


def _draw_rollbacks(seed: int, horizon: int) -> list[Fault]:
    """In one run of eight the storage of a database comes back as it was; by a chance of its own."""
    random = Random(seed ^ 0x115E)  # noqa: S311
    count = random.randrange(1, 3) if random.random() < 0.125 else 0
    return [_fault(random, random.randrange(horizon), DB_ROLLBACK) for _ in range(count)]


def _step(fault: Fault) -> int:
    return fault.step


def _draw_others(seed: int, horizon: int) -> list[Fault]:
    """Records of another installation, drawn apart, so that everything else of a seed stays as it was."""
    random = Random(seed ^ 0x1D5)  # noqa: S311
    if random.random() > 0.2:
        return []
    others = (KAFKA_OTHERS, OUTSIDE_OTHERS)
    return [_fault(random, random.randrange(horizon), random.choice(others)) for _ in range(random.randrange(1, 8))]


def _draw_replicas(seed: int, horizon: int) -> list[Fault]:
    """In one run of eight a replica inside the active site is promoted late, and somebody takes over meanwhile."""
    random = Random(seed ^ 0xE5)  # noqa: S311
    if random.random() > 0.125:
        return []
    step = random.randrange(horizon)
    return [
        _fault(random, step, DB_REPLICA),
        Fault(step + random.randrange(1, 9), TAKEOVER, 0, 4 * random.randrange(9)),
    ]


def _fault(random: Random, step: int, kind: str) -> Fault:
    length = int(random.expovariate(1.0 / random.choice((20, 100, 600))))
    return Fault(step, kind, length, random.randrange(1 << 16))
