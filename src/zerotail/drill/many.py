"""Many drills, one after the other: each scenario once, or scenarios and receivers by chance.

Those that can share a stage (`theatre.py`) come one behind the other. Everything that is chosen follows from the seed:
the same seed plays the same drills, each under a seed of its own. So a series that was broken off can go on: what has a
result in its folder is not played again.
"""

from __future__ import annotations

import random
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from zerotail.drill.result import DrillLine, DrillResult, DrillSummary
from zerotail.drill.run import DrillSettings
from zerotail.drill.scenarios import SCENARIOS
from zerotail.errors import Misused, ZerotailError

CLASSES = ("R0", "R1", "R2", "R3")
_HIGHEST_SEED = 999_999


@dataclass(frozen=True, slots=True)
class Planned:
    """A drill to be run."""

    scenario: str
    receiver: str
    seed: int


def plan_all(seed: int, receiver: str | None) -> list[Planned]:
    """Every scenario once."""
    return _by_stage([Planned(name, receiver or "R2", seed) for name in SCENARIOS])


def plan_random(seed: int, runs: int, receiver: str | None) -> list[Planned]:
    """So many by chance; each scenario is drawn before one is drawn again."""
    chance = random.Random(seed)  # noqa: S311 - it chooses drills
    planned: list[Planned] = []
    while len(planned) < runs:
        names = list(SCENARIOS)
        chance.shuffle(names)
        planned += [
            Planned(name, receiver or chance.choice(CLASSES), chance.randint(1, _HIGHEST_SEED)) for name in names
        ]
    return _by_stage(planned[:runs])


def _by_stage(planned: list[Planned]) -> list[Planned]:
    return sorted(planned, key=lambda one: (one.receiver, SCENARIOS[one.scenario].replayed))


def run_all(
    planned: Sequence[Planned],
    files: Path,
    run_one: Callable[[Planned, Path], DrillResult],
    tell: Callable[[DrillLine], None],
    settings: DrillSettings,
) -> DrillSummary:
    """Run them and sum up; one that could not even be run counts as failed, and the others are still run."""
    files.mkdir(parents=True, exist_ok=True)
    lines: list[DrillLine] = []
    for number, one in enumerate(planned, start=1):
        folder = files / f"{number:03d}-{one.scenario}-{one.receiver}-{one.seed}"
        played = _find_played(folder, settings)
        try:
            line = _line(one, played or run_one(one, folder), folder)
        except ZerotailError as error:
            line = _line_of_failure(one, folder, error.message)
        except Exception as error:  # noqa: BLE001 - a night of drills does not end with one that nobody expected to break
            folder.mkdir(exist_ok=True)
            (folder / "error.txt").write_text(traceback.format_exc())
            line = _line_of_failure(one, folder, f"{type(error).__name__}: {error}; see error.txt")
        lines.append(line)
        tell(line)
    found = Counter(line.verdict for line in lines)
    return DrillSummary(settings.seed, len(lines), found["passed"], found["failed"], found["undecided"], tuple(lines))


def read_result(folder: Path) -> DrillResult:
    """What a run left in its folder; `Misused` when there is nothing that could be read."""
    try:
        return msgspec.json.decode((folder / "result.json").read_bytes(), type=DrillResult)
    except (OSError, msgspec.MsgspecError) as error:
        raise Misused(f"{folder} holds no result of a drill: {error}.", code="ZT118") from error


def _find_played(folder: Path, settings: DrillSettings) -> DrillResult | None:
    """The result of a drill that this series has played before it was broken off."""
    if not (folder / "result.json").exists():
        return None
    result = read_result(folder)
    if (result.rate, result.strategy) != (settings.rate, settings.strategy):
        raise Misused(
            f"{folder.parent} holds a series with --rate {result.rate:g} --strategy {result.strategy}.",
            code="ZT119",
            tries=["--dir D    # another folder, for a new series"],
        )
    return result


def _line(one: Planned, result: DrillResult, folder: Path) -> DrillLine:
    why = "" if result.verdict == "passed" else result.reasons[0]
    return DrillLine(
        one.scenario, one.receiver, one.seed, result.verdict, result.seconds, result.outage_seconds, str(folder), why
    )


def _line_of_failure(one: Planned, folder: Path, why: str) -> DrillLine:
    return DrillLine(one.scenario, one.receiver, one.seed, "failed", 0.0, None, str(folder), why)
