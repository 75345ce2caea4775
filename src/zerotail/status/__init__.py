"""Both sites on one screen: would a takeover lose nothing now, how far has everything come, why does something stand?

    observation   asks both sites at the same time, each within a deadline
    answers       what they said, and which of them is the active one
    readiness     would a takeover lose nothing, may messages leave; pure
    conclusion    the figures, and what stands and why; pure
    values        what is shown

1. The answer is `ready` only if the other site's own words say so: its database is a standby of the active one, in its
   epoch, and has flushed everything that the active one had written when it was asked.
2. What was not answered is unknown, with the moment since when and the reason; never a zero, never a blank.
3. An epoch that is exposed is said before anything else.
"""

from zerotail.status.observation import observe_status
from zerotail.status.values import Status

__all__ = ["Status", "observe_status"]
