"""Scene after scene on the same two sites: roles change, sites are lost and come back, the history grows.

Sites that have been through disasters are a harder test than fresh ones, and come to the next scene sooner than a new
lab. After some scenes, and after one that did not pass, there is a new stage: the judges look at the whole history of a
stage, so that no scene pays for what another one broke or left open, and they do not take ever longer.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

from zerotail.core.verdict import Outcome
from zerotail.drill.example import prepare_example
from zerotail.drill.rehearsal import Rehearsal, Tell
from zerotail.drill.result import DrillResult
from zerotail.drill.run import DrillSettings, new_stage, play_next
from zerotail.drill.scenarios import Scenario
from zerotail.lab.layout import LabSettings
from zerotail.lab.up import temporary_lab

_MOST_SCENES = 10
_PARTITIONS = 2
Kind = tuple[str, bool]
"""The class of the receiver, and whether a takeover rebuilds the state from the journal."""


@dataclass(slots=True)
class Theatre:
    """The stage on which the next scene is played."""

    folder: Path
    """Where the witnesses of each stage write."""
    settings: DrillSettings
    tell: Tell = lambda _line: None
    _rehearsal: Rehearsal | None = None
    _kind: Kind | None = None
    _scenes: int = 0
    _built: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Theatre:
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()

    def play(self, scenario: Scenario, receiver: str, seed: int, folder: Path) -> DrillResult:
        """Play a scene; its files go into `folder`."""
        kind = (receiver, self.settings.rebuild_state or scenario.replayed)
        if self._rehearsal is None or kind != self._kind or self._scenes == _MOST_SCENES:
            self.leave()
            self._rehearsal = self._build(kind)
        self._scenes += 1
        with ExitStack() as unless_it_went_well:
            unless_it_went_well.callback(self.leave)
            result = play_next(self._rehearsal, scenario, replace(self.settings, seed=seed), folder)
            if result.verdict == Outcome.PASSED.value:
                unless_it_went_well.pop_all()
        return result

    def leave(self) -> None:
        """Take the stage down, if there is one."""
        self._rehearsal, self._scenes = None, 0
        self._built.close()

    def _build(self, kind: Kind) -> Rehearsal:
        receiver, replayed = self._kind = kind
        lab = temporary_lab(lambda where: LabSettings(where, receiver_class=receiver, partitions=_PARTITIONS))
        layout = self._built.enter_context(lab)
        prepare_example(layout, replayed=replayed, strategy=self.settings.strategy)
        rehearsal = new_stage(layout, self.settings, unused_folder(self.folder), self.tell)
        self._built.callback(rehearsal.end)
        rehearsal.begin()
        rehearsal.business.stop()
        return rehearsal


def unused_folder(folder: Path) -> Path:
    """Where a new stage writes. A series that goes on finds stages of before: their witnesses saw another history."""
    numbers = (folder / f"stage-{number}" for number in count(1))
    return next(unused for unused in numbers if not unused.exists())
