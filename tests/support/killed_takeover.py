"""A takeover that kills itself with SIGKILL at one of its steps.

    python -m support.killed_takeover --config FILE --state FOLDER --to west --step promote --when done

`begin` is before the step, `done` behind it and before it is noted.
"""

from __future__ import annotations

import argparse
import os
import signal
from pathlib import Path

from zerotail.config import load
from zerotail.core.identity import SiteName
from zerotail.operate.act import Operator
from zerotail.operate.notebook import Notebook
from zerotail.operate.takeover import Statements, plan_takeover, resume_takeover, run_takeover
from zerotail.operate.world import observe_world


def main() -> None:
    parser = argparse.ArgumentParser()
    for option in ("--config", "--state", "--to", "--step", "--when"):
        parser.add_argument(option, required=True)
    options = parser.parse_args()

    def tell(step: str, done: bool) -> None:
        if (step, done) == (options.step, options.when == "done"):
            os.kill(os.getpid(), signal.SIGKILL)

    configuration = load(options.config)
    operator = Operator(configuration, Notebook(Path(options.state)), "somebody", tell)
    site = SiteName(options.to)
    planned = plan_takeover(configuration, observe_world(configuration), site, Statements())
    if operator.notebook.find_unfinished(("takeover",), site) is None:
        run_takeover(operator, planned, ())
    else:
        resume_takeover(operator, planned)


if __name__ == "__main__":
    main()
