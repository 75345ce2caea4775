"""Run a command and keep what it prints in `docs/output`, for pages that show it: `tools/keep_output.py make demo`.

The file is named by the last word of the command and begins with a line that says when, of which commit and by what. A
page shows parts of it below `<!-- printed: docs/output/demo.txt -->`, and a test compares them. What is in no commit
is not run, nothing is kept of a command that fails, and paths of this machine are cut off.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from zerotail.bench.stamp import is_dirty

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "output"


def main() -> int:
    """Answers as the command did, with 2 when it is not run."""
    parser = argparse.ArgumentParser(prog="tools/keep_output.py", description=__doc__.partition("\n\n")[0])
    parser.add_argument("command", nargs=argparse.REMAINDER, help="what to run, in the root of the repository")
    words = parser.parse_args().command
    if not words or is_dirty() is not False:
        sys.stderr.write("name a command, and commit first: what is printed is that of a commit\n")
        return 2
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    lines = [
        f"# {datetime.now(UTC):%Y-%m-%d}, commit {commit.strip()}, by `{shlex.join(words)}`",
        f"$ {shlex.join(words)}",
    ]
    running = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for line in running.stdout or ():
        sys.stdout.write(line)
        lines.append(line.rstrip().replace(f"{ROOT}/", "").replace(str(ROOT), "."))
    if running.wait() == 0:
        FOLDER.mkdir(exist_ok=True)
        (FOLDER / f"{Path(words[-1]).name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return running.returncode


if __name__ == "__main__":
    sys.exit(main())
