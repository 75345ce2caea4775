"""Many drills, one after the other: each scenario once, or scenarios and receivers by chance.

Those that can share a stage (`theatre.py`) come one behind the other. Everything that is chosen follows from the seed:
the same seed plays the same drills, each under a seed of its own. So a series that was broken off can go on: what has a
result or an error in its folder is not played again, so that no failure goes unheard because of what came later.
"""

from __future__ import annotations

import random
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from zerotail.drill.result import DrillLine, DrillResult, DrillSummary
from zerotail.drill.run import DrillSettings
from zerotail.drill.scenarios import SCENARIOS
from zerotail.errors import Misused, ZerotailError
from zerotail.private import make_folder, write_file

CLASSES = ("R0", "R1", "R2", "R3")
_HIGHEST_SEED = 999_999
SUMMARY, _RESULT, _ERROR = "summary.json", "result.json", "error.txt"
T = TypeVar("T")


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
    make_folder(files)
    lines: list[DrillLine] = []
    for number, one in enumerate(planned, start=1):
        folder = files / f"{number:03d}-{one.scenario}-{one.receiver}-{one.seed}"
        line = _find_played(one, folder, settings) or _play(one, folder, run_one)
        lines.append(line)
        tell(line)
    found = Counter(line.verdict for line in lines)
    return DrillSummary(settings.seed, len(lines), found["passed"], found["failed"], found["undecided"], tuple(lines))


def read_result(folder: Path) -> DrillResult:
    """What a run left in its folder; `Misused` when there is nothing that could be read."""
    path = folder / _RESULT
    if not path.exists():
        played = sorted(one.parent for one in folder.glob(f"*/{_RESULT}"))
        what = f"{folder} holds no result of a drill"
        if played:
            what = f"{folder} holds a series of drills that is not finished: {len(played)} have a result"
        raise Misused(f"{what}.", code="ZT118", tries=[f"zerotail drill report {one}" for one in played[:1]])
    return _decoded(path, DrillResult)


def find_summary(folder: Path) -> DrillSummary | None:
    """What a series left in its folder, if it is one and has come to its end."""
    path = folder / SUMMARY
    return _decoded(path, DrillSummary) if path.exists() else None


def _decoded(path: Path, form: type[T]) -> T:
    try:
        return msgspec.json.decode(path.read_bytes(), type=form)
    except (OSError, msgspec.MsgspecError) as error:
        raise Misused(f"{path} cannot be read: {error}.", code="ZT118") from error


def _play(one: Planned, folder: Path, run_one: Callable[[Planned, Path], DrillResult]) -> DrillLine:
    try:
        return _line(one, run_one(one, folder), folder)
    except ZerotailError as error:
        why = said = error.message
    except Exception as error:  # noqa: BLE001 - a night of drills does not end with one that nobody expected to break
        why, said = f"{type(error).__name__}: {error}; see {_ERROR}", traceback.format_exc()
    make_folder(folder)
    write_file(folder / _ERROR, f"{said.rstrip()}\n")
    return _line_of_failure(one, folder, why)


def _find_played(one: Planned, folder: Path, settings: DrillSettings) -> DrillLine | None:
    """What became of a drill that this series has played before it was broken off."""
    if (folder / _RESULT).exists():
        result = read_result(folder)
        _require_same(folder.parent, result, settings, SCENARIOS[one.scenario].replayed)
        return _line(one, result, folder)
    if (folder / _ERROR).exists():
        last = (folder / _ERROR).read_text().strip().splitlines()[-1:]
        return _line_of_failure(one, folder, f"{''.join(last)}; see {_ERROR}")
    return None


def _require_same(files: Path, result: DrillResult, settings: DrillSettings, replayed: bool) -> None:
    """`Misused` when a drill of the series was played with other settings; some scenarios rebuild the state anyway."""
    wanted = (settings.rate, settings.count, settings.strategy, settings.rebuild_state or replayed)
    if (result.rate, result.count, result.strategy, result.rebuild_state) != wanted:
        words = [f"--rate {result.rate:g}", f"--strategy {result.strategy}"]
        words += [f"--count {result.count}"] if result.count is not None else []
        words += ["--rebuild-state"] if result.rebuild_state and not replayed else []
        raise Misused(
            f"{files} holds a series with {' '.join(words)}.",
            code="ZT119",
            tries=["--dir D    # another folder, for a new series"],
        )


def _line(one: Planned, result: DrillResult, folder: Path) -> DrillLine:
    why = "" if result.verdict == "passed" else result.reasons[0]
    return DrillLine(
        one.scenario, one.receiver, one.seed, result.verdict, result.seconds, result.outage_seconds, str(folder), why
    )


def _line_of_failure(one: Planned, folder: Path, why: str) -> DrillLine:
    return DrillLine(one.scenario, one.receiver, one.seed, "failed", 0.0, None, str(folder), why)
