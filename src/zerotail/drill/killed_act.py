"""A takeover or a handover in a process of its own that is killed with SIGKILL at one of its steps.

    python -m zerotail.drill.killed_act takeover --config FILE --state FOLDER --to west --step promote --when done

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
from zerotail.operate.handover import plan_handover, resume_handover, run_handover
from zerotail.operate.notebook import Notebook
from zerotail.operate.plan import HANDOVER, TAKEOVER
from zerotail.operate.takeover import Statements, plan_takeover, resume_takeover, run_takeover
from zerotail.operate.world import observe_world


def main() -> None:
    """Begin or resume an act, and die on the way."""
    parser = argparse.ArgumentParser()
    parser.add_argument("act", choices=[TAKEOVER, HANDOVER])
    for option in ("--config", "--state", "--to", "--step", "--when"):
        parser.add_argument(option, required=True)
    options = parser.parse_args()

    def tell(step: str, done: bool) -> None:
        if (step, done) == (options.step, options.when == "done"):
            os.kill(os.getpid(), signal.SIGKILL)

    find_code_beside(options.config)
    operator = Operator(load(options.config), Notebook(Path(options.state)), "drill", tell)
    begun = operator.notebook.find_unfinished((options.act,)) is not None
    if options.act == TAKEOVER:
        _take_over(operator, SiteName(options.to), begun=begun)
    else:
        _hand_over(operator, SiteName(options.to), begun=begun)


def _take_over(operator: Operator, site: SiteName, *, begun: bool) -> None:
    planned = plan_takeover(operator.configuration, observe_world(operator.configuration), site, Statements())
    if begun:
        resume_takeover(operator, planned)
    else:
        run_takeover(operator, planned, ())


def _hand_over(operator: Operator, site: SiteName, *, begun: bool) -> None:
    world = observe_world(operator.configuration)
    if begun:
        resume_handover(operator, world, site)
    else:
        run_handover(operator, plan_handover(operator.configuration, world, site), ())


if __name__ == "__main__":
    main()
