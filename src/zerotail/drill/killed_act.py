"""A takeover in a process of its own that is killed with SIGKILL at one of its steps.

    python -m zerotail.drill.killed_act --config FILE --state FOLDER --to west --step promote --when done

`begin` is before the step, `done` behind it and before it is noted. What an earlier one began is resumed.
"""

from __future__ import annotations

import argparse
import os
import signal
from pathlib import Path

from zerotail.code import find_code_beside
from zerotail.config import load
from zerotail.core.identity import SiteName
from zerotail.operate.act import Operator
from zerotail.operate.notebook import Notebook
from zerotail.operate.plan import TAKEOVER
from zerotail.operate.takeover import Statements, plan_takeover, resume_takeover, run_takeover
from zerotail.operate.world import observe_world


def main() -> None:
    """Begin or resume a takeover, and die on the way."""
    parser = argparse.ArgumentParser()
    for option in ("--config", "--state", "--to", "--step", "--when"):
        parser.add_argument(option, required=True)
    options = parser.parse_args()

    def tell(step: str, done: bool) -> None:
        if (step, done) == (options.step, options.when == "done"):
            os.kill(os.getpid(), signal.SIGKILL)

    find_code_beside(options.config)
    operator = Operator(load(options.config), Notebook(Path(options.state)), "drill", tell)
    world = observe_world(operator.configuration)
    planned = plan_takeover(operator.configuration, world, SiteName(options.to), Statements())
    if operator.notebook.find_unfinished((TAKEOVER,)) is None:
        run_takeover(operator, planned, ())
    else:
        resume_takeover(operator, planned)


if __name__ == "__main__":
    main()
