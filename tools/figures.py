"""Measure every published figure again, and write the pages that show them: `make figures`.

All of it takes hours on two cores. What is broken off goes on where it was: a command that has ended is not typed
again as long as what it measured is still the code that is here. Results are gathered in `.zerotail/figures`, outside
of git; a figure takes the place of the published one, in `bench/results` and on its page, when all of its commands have
ended. A figure whose published result is of this very code is not measured again.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zerotail.bench.interleaving import KINDS
from zerotail.bench.published import PUBLISHED, Published
from zerotail.bench.stamp import RECORDED, is_current, is_dirty
from zerotail.bench.stored import Stored, read_stored

HERE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE / "tests"))
SERIES = HERE / ".zerotail" / "figures"
WRONG_CALL, UNFINISHED = 2, 5
_MISSED = 1
"""A benchmark ends so when a figure is not reached: it was measured for all that."""

COMMANDS = {
    "journal": ("",),
    "flow": ("--count 1000000 --rounds 3 --partitions 1", "--count 1000000 --rounds 3 --partitions 4"),
    "checks": ("--count 1000000 --rounds 4",),
    "mirror": ("--count 1000000 --rounds 2",),
    "durability": ("",),
    "takeover": (
        "--history 100000 --rounds 10 --with mm2",
        "--history 1000000 --rounds 10",
        "--history 10000000 --rounds 4",
    ),
    "restore": (
        "--sizes 200000",
        "--sizes 1000000 --rounds 1 --refill 0 --spark 0",
        *(f"--sizes 10000000 --interleavings {one} --refill 0 --spark 0" for one in KINDS),
    ),
}
"""What measures each figure, the shortest first; several commands join their results."""
QUICK = {
    "journal": ("--segments 5 --records 100",),
    "flow": tuple(
        f"--count 3000 --rounds 1 --accounts 100 --rate 500 --latency-seconds 2 --partitions {partitions}"
        for partitions in (1, 2)
    ),
    "checks": ("--count 3000 --rounds 1",),
    "mirror": ("--count 20000 --partitions 1 --rounds 1",),
    "durability": ("--quick",),
    "takeover": ("--history 2000 --rounds 1",),
    "restore": (
        "--sizes 5000 --interleavings fine --producers 2 --caches 1000 --rounds 1 --refill 2000 --spark 0",
        "--sizes 6000 --interleavings like-notes --producers 4 --caches 1000 --rounds 1 --refill 0 --spark 0",
    ),
}
"""The same in small: whether everything works, and nothing about how fast it is."""
KEEPS = {name for name, commands in (COMMANDS | QUICK).items() if len(commands) > 1}


@dataclass(frozen=True, slots=True)
class Series:
    """Where figures are gathered, what is typed, and whose pages are written."""

    folder: Path
    root: Path
    """Of the results and pages."""
    commands: dict[str, tuple[str, ...]]

    def gathered(self, name: str) -> Path:
        """The result as far as it has come."""
        return self.folder / f"{name}.json"

    def left(self, one: Published) -> list[str]:
        """The commands that are still to be typed."""
        file = self.gathered(one.name)
        if not file.exists():
            return [*self.commands[one.name]]
        stored: Stored[Any] = read_stored(file, one.kind)
        ended = {stamp.command for stamp in stored.stamps if is_current(stamp)} & self._ended(one.name)
        return [options for options in self.commands[one.name] if typed(one.name, options) not in ended]

    def note_end(self, name: str, command: str) -> None:
        """A stored result may be half of what a command measures: that it has ended is noted beside it."""
        ended = sorted({*self._ended(name), command})
        (self.folder / f"{name}.ended").write_text(json.dumps(ended), encoding="utf-8")

    def forget(self, name: str) -> None:
        """Begin this figure from nothing."""
        self.gathered(name).unlink(missing_ok=True)
        (self.folder / f"{name}.ended").unlink(missing_ok=True)

    def _ended(self, name: str) -> set[str]:
        file = self.folder / f"{name}.ended"
        return set(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else set()


def typed(name: str, options: str) -> str:
    """The command, as its stamp has it."""
    return shlex.join(["zerotail", "bench", name, *shlex.split(options)])


def is_published(series: Series, one: Published) -> bool:
    """Whether the published result is of this code, and by the commands of today."""
    stored = one.read(series.root)
    if stored is None or not all(is_current(stamp) for stamp in stored.stamps):
        return False
    return {stamp.command for stamp in stored.stamps} == {typed(one.name, each) for each in series.commands[one.name]}


def say(line: str) -> None:
    """A line of progress."""
    sys.stderr.write(f"figures: {line}\n")
    sys.stderr.flush()


def measure(series: Series, one: Published) -> None:
    """Type what is left of one figure, then publish it."""
    left = series.left(one)
    if len(left) == len(series.commands[one.name]):
        series.forget(one.name)
    series.folder.mkdir(parents=True, exist_ok=True)
    for number, options in enumerate(left, len(series.commands[one.name]) - len(left) + 1):
        command = typed(one.name, options)
        say(f"{one.name}, {number} of {len(series.commands[one.name])}: {command}")
        began = time.monotonic()
        keep = ["--keep"] if one.name in KEEPS else []
        words = [*shlex.split(command)[1:], "--result", str(series.gathered(one.name)), *keep]
        done = subprocess.run([sys.executable, "-m", "zerotail", *words], stdout=subprocess.DEVNULL, check=False)
        if done.returncode not in (0, _MISSED):
            say(f"{one.name} ended with {done.returncode}; type make figures again to go on from here")
            sys.exit(UNFINISHED)
        series.note_end(one.name, command)
        said = "" if done.returncode == 0 else "; a figure is not reached, and the page will say so"
        say(f"{one.name}, {number} of {len(series.commands[one.name])}: {time.monotonic() - began:,.0f} s{said}")
    publish(series, one)


def publish(series: Series, one: Published) -> None:
    """Put a result that is whole in the place of the published one, and write its page."""
    result, page = one.result_in(series.root), series.root / one.page
    result.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(series.gathered(one.name), result)
    series.forget(one.name)
    one.write_page(one.read(series.root), page)
    say(f"{one.name}: wrote bench/results/{one.name}.json and {one.page}")
    quote(series, one)


def quote(series: Series, one: Published) -> None:
    """Put the new figures into the sentences that quote them; what a sentence says with them, somebody has to read."""
    from support.figures import requoted

    result = json.loads(one.result_in(series.root).read_text(encoding="utf-8"))["result"]
    for page in sorted([*series.root.glob("*.md"), *series.root.glob("docs/**/*.md")]):
        text = page.read_text(encoding="utf-8")
        new = requoted(text, one.name, result)
        if new != text:
            page.write_text(new, encoding="utf-8")
            say(f"{one.name}: {page.relative_to(series.root)} quotes other figures now; read its sentences again")


def scratch(folder: Path) -> Path:
    """A copy of the pages, with nothing measured yet: what a quick series writes is never published."""
    shutil.rmtree(folder, ignore_errors=True)
    for one in PUBLISHED.values():
        page = folder / one.page
        page.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(HERE / one.page, page)
    return folder


def told(series: Series, one: Published) -> str:
    """How a figure stands."""
    stored = one.read(series.root)
    if is_published(series, one):
        return "measured, of this code"
    left, commands = series.left(one), series.commands[one.name]
    if 0 < len(left) < len(commands) or not left:
        return f"under way: {len(commands) - len(left)} of {len(commands)} commands have ended"
    if stored is None:
        return "not measured yet"
    last = stored.stamps[-1]
    how = "stored" if last.source == RECORDED else "measured"
    return f"{how} {last.date[:10]} at {last.commit[:10]}{' with changes' if last.dirty else ''}, of other code"


def main(arguments: list[str] | None = None) -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(
        prog="tools/figures.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Example:  .venv/bin/python tools/figures.py --only journal --only flow",
    )
    names = [*COMMANDS]
    parser.add_argument("--only", action="append", choices=names, metavar="NAME", help=f"one of {', '.join(names)}")
    parser.add_argument("--list", action="store_true", help="how each figure stands, and what measures it")
    quick = "small sizes, into a scratch folder"
    parser.add_argument("--quick", nargs="?", const=SERIES / "quick", type=Path, metavar="FOLDER", help=quick)
    options = parser.parse_args(arguments)
    asked = [PUBLISHED[name] for name in options.only or names]
    series = Series(SERIES, HERE, COMMANDS)
    if options.quick is not None:
        root = options.quick.absolute()
        series = Series(root / "gathered", root if options.list else scratch(root), QUICK)
    if options.list:
        for one in asked:
            sys.stdout.write(f"{one.name:<11} {told(series, one)}\n")
            for each in series.commands[one.name]:
                sys.stdout.write(f"{'':<11}   {typed(one.name, each)}\n")
        return
    if options.quick is None and is_dirty() is not False:
        say("what is measured here is in no commit, so that nobody could measure it again; type: git commit -a")
        sys.exit(WRONG_CALL)
    for one in asked:
        if is_published(series, one):
            say(f"{one.name}: measured already, of this code")
        else:
            measure(series, one)


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        sys.stderr.close()  # nobody reads any more, what Python would say about it included
    except KeyboardInterrupt:
        say("broken off; type make figures again to go on from here")
        sys.exit(130)
