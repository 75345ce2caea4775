"""Everything that takes too long for every day, part after part, and a page at the end that says what came of it.

    python tools/nightly.py                     # six hours at most; goes on where a night was broken off or ran late
    python tools/nightly.py --list              # the parts
    python tools/nightly.py --only simulation   # one part, as often as wanted

A night belongs to a commit and has a seed that nobody has seen before; each part gets a seed of its own from it, and
the page has the line that repeats the part. What a part said is in a file beside the page. A part that was broken off
is begun again, one that has ended is not. Every Python process is measured, killed ones excepted: the page says which
modules of `src` no test has run.

Exits with 0 when every part has passed and nothing is left, with 1 otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = str(ROOT / ".venv" / "bin" / "python")
RECEIVERS = ("R0", "R1", "R2", "R3")
FOLDER = ROOT / ".zerotail" / "nightly"
HOURS = 6.0
STATE, PAGE = "night.json", "summary.md"
COVERAGE = """[run]
source_pkgs = zerotail
parallel = true
sigterm = true
patch = _exit
data_file = {folder}/coverage/data
disable_warnings = no-data-collected,module-not-imported,module-not-measured,process-fork,process-setup
"""


@dataclass(frozen=True)
class Part:
    """A command that takes long; `{seed}` and `{folder}` in it are filled in. It is ended after so many hours."""

    name: str
    command: Sequence[str]
    hours: float = 1.0


@dataclass
class Ended:
    """What came of a part."""

    result: str
    """`passed`, `failed`, or `too long`."""
    seconds: float
    seed: int
    command: str
    last_line: str


@dataclass
class Night:
    """What is remembered between one call and the next."""

    commit: str
    seed: int
    begun: str
    seconds: float = 0.0
    ended: dict[str, Ended] = field(default_factory=dict)

    def seed_of(self, part: str) -> int:
        """The seed of a part: its own, and the same one however often it is begun."""
        return random.Random(f"{self.seed}/{part}").randrange(1, 2**31)  # noqa: S311


def parts_of_the_suite() -> list[Part]:
    """The daily suite, and each module that has tests for the night."""
    pytest = (PYTHON, "-m", "pytest", "-q")
    asked = [*pytest, "--collect-only", "-m", "nightly"]
    listed = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        sys.exit(f"nightly: the tests cannot be listed, so no part is begun:\n{listed.stdout}{listed.stderr}")
    modules = sorted({line.partition("::")[0] for line in listed.stdout.splitlines() if "::" in line})
    return [
        Part("suite", (*pytest, "-n", "3", "-m", "fast or servers"), hours=1.5),
        *(
            Part(module.removeprefix("tests/").removesuffix(".py"), (*pytest, "-m", "nightly", module), hours=1.0)
            for module in modules
        ),
    ]


def other_parts() -> list[Part]:
    """The simulation, all drills against all classes of receivers, growth. The demo is a test."""
    zerotail = (PYTHON, "-m", "zerotail")
    drill = (*zerotail, "drill", "run", "all", "--rate", "300", "--seed", "{seed}")
    simulation = (PYTHON, "-m", "zerotail.simulation", "--seed", "{seed}", "--processes", "2")
    return [
        Part("simulation", (*simulation, "--crashes", "5000000"), hours=1.0),
        *(
            Part(f"drills-{receiver}", (*drill, "--receiver", receiver, "--dir", f"{{folder}}/drills-{receiver}"), 1.5)
            for receiver in RECEIVERS
        ),
        Part("growth", (PYTHON, "bench/growth.py", "--marks", "100000,1000000"), hours=1.0),
    ]


def current_commit() -> str:
    """The commit that is tested, marked when something is not committed."""
    asked = ["git", "describe", "--always", "--abbrev=40", "--dirty", "--exclude=*"]
    return subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def open_night(folder: Path, commit: str, *, fresh: bool) -> Night:
    """The night of this commit that was begun here, or a new one; a folder of another commit's night is begun anew."""
    state = folder / STATE
    if state.exists() and not fresh:
        found = json.loads(state.read_text())
        if found["commit"] == commit:
            found["ended"] = {name: Ended(**one) for name, one in found["ended"].items()}
            return Night(**found)
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("coverage/data*"):
        old.unlink()
    return Night(commit, random.SystemRandom().randrange(1, 2**31), f"{datetime.now(UTC):%Y-%m-%d %H:%M UTC}")


def keep(night: Night, folder: Path) -> None:
    """Write the state, whole or not at all."""
    new = folder / f".{STATE}"
    new.write_text(json.dumps(asdict(night), indent=1))
    new.replace(folder / STATE)


def run_parts(night: Night, folder: Path, parts: Iterable[Part], seconds: float) -> None:
    """Run what has not ended yet, until the time of this call is over."""
    waiting = [part for part in parts if part.name not in night.ended]
    over = night.seconds + seconds
    for number, part in enumerate(waiting, 1):
        left = over - night.seconds
        if left <= 0:
            say(f"the time is over, {len(waiting) - number + 1} parts are left")
            return
        say(f"{number} of {len(waiting)}: {part.name}, seed {night.seed_of(part.name)}")
        night.ended[part.name] = ended = run_part(night, folder, part, min(left, part.hours * 3600))
        night.seconds += ended.seconds
        keep(night, folder)
        say(f"   {ended.result} after {ended.seconds:.0f} s: {ended.last_line}")


def run_part(night: Night, folder: Path, part: Part, seconds: float) -> Ended:
    """Run one part with its seed; what it says goes to a file."""
    seed = night.seed_of(part.name)
    words = [word.format(seed=seed, folder=folder) for word in part.command]
    environment = {**os.environ, "ZT_TEST_SEED": str(seed), "COVERAGE_PROCESS_START": str(folder / "coverage" / "rc")}
    (folder / "coverage").mkdir(exist_ok=True)
    (folder / "coverage" / "rc").write_text(COVERAGE.format(folder=folder))
    log = folder / f"{part.name.replace('/', '-')}.log"
    began = time.monotonic()
    with log.open("wb") as said:
        process = subprocess.Popen(
            words, cwd=ROOT, env=environment, stdout=said, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        result = wait_for(process, seconds)
    lines = log.read_text(errors="replace").strip().splitlines()
    line = f"ZT_TEST_SEED={seed} {shlex.join(words)}"
    return Ended(result, round(time.monotonic() - began, 1), seed, line, lines[-1].strip("= ") if lines else "")


def wait_for(process: subprocess.Popen[bytes], seconds: float) -> str:
    """How it ended; what takes too long, or is in our hands when we are ended, is ended as a user would."""
    try:
        return "passed" if process.wait(seconds) == 0 else "failed"
    except subprocess.TimeoutExpired:
        end(process)
        return "too long"
    except BaseException:
        end(process)
        raise


def end(process: subprocess.Popen[bytes]) -> None:
    """Ctrl-C first, so that it takes down what it has started."""
    for number, patience in ((signal.SIGINT, 60), (signal.SIGKILL, 10)):
        os.killpg(process.pid, number)
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            continue
        return


def modules_never_run(folder: Path) -> tuple[int, list[str]] | None:
    """How many modules of `src` have statements, and those that nobody executed; None when nothing was measured."""
    measured = folder / "coverage"
    if not list(measured.glob("data*")):
        return None
    coverage = [PYTHON, "-m", "coverage"]
    place = {**os.environ, "COVERAGE_FILE": str(measured / "data"), "COVERAGE_RCFILE": str(measured / "rc")}
    for words in (["combine", "--append", "--quiet"], ["json", "-q", "-o", str(measured / "report.json")]):
        subprocess.run([*coverage, *words], cwd=ROOT, env=place, check=False, capture_output=True)
    report = json.loads((measured / "report.json").read_text())
    counted = {name: one["summary"] for name, one in report["files"].items() if one["summary"]["num_statements"]}
    return len(counted), sorted(name for name, one in counted.items() if not one["covered_lines"])


def write_page(night: Night, folder: Path, parts: Sequence[Part]) -> bool:
    """The page; answers whether all is well."""
    left = [part.name for part in parts if part.name not in night.ended]
    bad = [name for name, one in night.ended.items() if one.result != "passed"]
    lines = [
        "# A night of tests",
        "",
        f"Commit {night.commit}, begun {night.begun}, {night.seconds / 3600:.1f} hours, seed {night.seed}.",
        f"{len(night.ended) - len(bad)} parts passed, {len(bad)} did not, {len(left)} are left.",
        "",
        "| part | result | seconds | seed | last line |",
        "|---|---|---|---|---|",
        *(
            f"| {name} | {one.result} | {one.seconds:.0f} | {one.seed} | {one.last_line.replace('|', '/')} |"
            for name, one in night.ended.items()
        ),
        *(f"| {name} | not begun | | {night.seed_of(name)} | |" for name in left),
    ]
    if bad:
        lines += ["", "## Once more", "", *(f"    {night.ended[name].command}" for name in bad)]
    found = modules_never_run(folder)
    if found is not None:
        count, never = found
        so_far = " so far" if left else ""
        lines += ["", "## Modules", ""]
        lines += [f"{count - len(never)} of {count} modules of `src` with statements were run{so_far}."]
        lines += [f"- never run: `{name}`" for name in never if not left]
    (folder / PAGE).write_text("\n".join(lines) + "\n")
    return not bad and not left and not (found and found[1])


def say(line: str) -> None:
    """A line of progress."""
    print(f"nightly: {line}", flush=True)  # noqa: T201


def main(words: Sequence[str] | None = None) -> int:
    """A night, or what is left of it."""
    description, _, rest = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        description=description, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the page and the logs go")
    parser.add_argument("--hours", type=float, default=HOURS, help="how long this call may take (%(default)s)")
    parser.add_argument("--only", metavar="PART", action="append", help="this part, ended or not; may be given again")
    parser.add_argument("--fresh", action="store_true", help="begin a new night, with another seed")
    parser.add_argument("--list", action="store_true", help="name the parts and end")
    asked = parser.parse_args(words)
    parts = [*parts_of_the_suite(), *other_parts()]
    if asked.list:
        sys.stdout.write("".join(f"{part.name:40} {shlex.join(part.command)}\n" for part in parts))
        return 0
    unknown = sorted(set(asked.only or ()) - {part.name for part in parts})
    if unknown:
        parser.error(f"there is no part {', '.join(unknown)}; --list names them")
    folder = asked.folder.resolve()
    night = open_night(folder, current_commit(), fresh=asked.fresh)
    for name in asked.only or ():
        night.ended.pop(name, None)
    keep(night, folder)
    say(f"seed {night.seed}, commit {night.commit[:12]}, in {folder}")
    try:
        run_parts(
            night, folder, [part for part in parts if not asked.only or part.name in asked.only], asked.hours * 3600
        )
    finally:
        well = write_page(night, folder, parts)
    sys.stdout.write((folder / PAGE).read_text())
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
