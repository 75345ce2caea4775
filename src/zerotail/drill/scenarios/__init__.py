"""What is rehearsed. Each scenario is a story on the rehearsal's stage, and says beforehand what may be found.

losses      a site, a server, a disk, the standby is gone
zombies     whoever was frozen goes on later
operators   planned changes, interrupted ones, and two operators at once
alarms      the watcher takes over by itself, rightly or not
neighbours  clients and a receiver bring what nobody can take
identities  files that disagree about the sites, and a second installation

One site is active, the other waits warm; the business submits all the time. Nothing lost, nothing doubled and nothing
out of order is allowed in any of them. A receiver without memory (R3) may leave doubts; each must be listed, and only
a listed number may arrive once more or late.
"""

from zerotail.drill.scenarios import alarms, identities, losses, neighbours, operators, zombies
from zerotail.drill.scenarios.scenario import MESSAGES, Scenario

_ALL = (losses, zombies, operators, alarms, neighbours, identities)
SCENARIOS = {one.name: one for part in _ALL for one in part.SCENARIOS}

__all__ = ["MESSAGES", "SCENARIOS", "Scenario"]
