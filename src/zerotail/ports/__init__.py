"""Effects: everything that the decisions of this system ask of the world, and everything the world may
answer.

The stories in `flow/` and `failover/` are generators. They yield one of the effects below and receive its
result; they do nothing else, so that one and the same code is driven by psycopg, confluent-kafka and Spark
tasks in production and by the simulated world in tests.

1. An effect is coarse: one database transaction, one poll, one batch. Never one record.
2. An effect works at the site of the process that yields it, unless it names a site.
3. `Unreachable` means that nothing happened. `Indefinite` means that nobody knows: it must be found out by
   reading, never by repeating. `Refused` is a rule of the other side that said no, with its reason.
4. A result that carries rows carries the standing of the database they came from, read in the same
   snapshot; a `position` was taken *after* the rows, so it covers them.
"""

from __future__ import annotations

from zerotail.ports.bad_day import (
    ChangeEpoch,
    CompareCopies,
    CopiesCompared,
    CopyDatabase,
    Drained,
    FenceSite,
    FindPlace,
    JournalRead,
    KeepTail,
    ObserveDrained,
    ObserveSite,
    OpenEpoch,
    Promote,
    ReadJournal,
    RecordRejoined,
    RecordStep,
    RestoreTopic,
    ShutDown,
    SiteObserved,
    StopWaiting,
    StoreStart,
    TopicRestored,
)
from zerotail.ports.outside import (
    Accepted,
    AskGate,
    BeginLife,
    ClaimAtReceiver,
    ClaimLane,
    Conflicting,
    LaneClaimed,
    LaneRead,
    OutOfOrder,
    PositionRead,
    ReadLane,
    ReadPosition,
    RecordAcknowledged,
    RecordDoubts,
    RecordIntent,
    SendEmissions,
    SettleDoubts,
    Superseded,
)
from zerotail.ports.records import Batch, HintLost, LogEnd, Polled, PollRecords, ReadLogEnd, SendRecords, TooLarge
from zerotail.ports.rows import Fed, Feed, Held, ReadFeed, Submit, Submitted
from zerotail.ports.stage import (
    ClaimHead,
    Commit,
    HeadRead,
    LoadState,
    ReadHead,
    RecordPoison,
    RequestAgain,
    StateLoaded,
)
from zerotail.ports.story import Done, Effect, End, Indefinite, Pause, Refused, Result, Standing, Story, Unreachable

__all__ = [
    "Accepted",
    "AskGate",
    "Batch",
    "BeginLife",
    "ChangeEpoch",
    "ClaimAtReceiver",
    "ClaimHead",
    "ClaimLane",
    "Commit",
    "CompareCopies",
    "Conflicting",
    "CopiesCompared",
    "CopyDatabase",
    "Done",
    "Drained",
    "Effect",
    "End",
    "Fed",
    "Feed",
    "FenceSite",
    "FindPlace",
    "HeadRead",
    "Held",
    "HintLost",
    "Indefinite",
    "JournalRead",
    "KeepTail",
    "LaneClaimed",
    "LaneRead",
    "LoadState",
    "LogEnd",
    "ObserveDrained",
    "ObserveSite",
    "OpenEpoch",
    "OutOfOrder",
    "Pause",
    "PollRecords",
    "Polled",
    "PositionRead",
    "Promote",
    "ReadFeed",
    "ReadHead",
    "ReadJournal",
    "ReadLane",
    "ReadLogEnd",
    "ReadPosition",
    "RecordAcknowledged",
    "RecordDoubts",
    "RecordIntent",
    "RecordPoison",
    "RecordRejoined",
    "RecordStep",
    "Refused",
    "RequestAgain",
    "RestoreTopic",
    "Result",
    "SendEmissions",
    "SendRecords",
    "SettleDoubts",
    "ShutDown",
    "SiteObserved",
    "Standing",
    "StateLoaded",
    "StopWaiting",
    "StoreStart",
    "Story",
    "Submit",
    "Submitted",
    "Superseded",
    "TooLarge",
    "TopicRestored",
    "Unreachable",
]
