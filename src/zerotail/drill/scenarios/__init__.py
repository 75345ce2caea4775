"""What is rehearsed. Each scenario is a story on the rehearsal's stage, and says beforehand what may be found.

losses      a site, a server, a disk, the standby is gone
zombies     whoever was frozen goes on later
operators   planned changes, interrupted ones, and two operators at once
alarms      the watcher takes over by itself, rightly or not

One site is active, the other waits warm; the business submits all the time. Nothing lost, nothing doubled and nothing
out of order is allowed in any of them. A receiver without memory (R3) may leave doubts; each must be listed, and only
a listed number may arrive once more or late.
"""

from zerotail.drill.scenarios import alarms, losses, operators, zombies
from zerotail.drill.scenarios.scenario import MESSAGES, Scenario

SCENARIOS = {one.name: one for one in (*losses.SCENARIOS, *zombies.SCENARIOS, *operators.SCENARIOS, *alarms.SCENARIOS)}

__all__ = ["MESSAGES", "SCENARIOS", "Scenario"]
