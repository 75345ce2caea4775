"""How old a copy is, and who has spoken to receivers since.

A copy says what was true when its last change arrived. A site that was away for a day says `gated` of an epoch that has
ended a day ago. It cannot know; but it knows how old it is, and receivers that remember know who has claimed them.

1. The age of a copy is that of the newest thing in it: a commit, a sign of life of any process, a word of the primary.
2. A copy that the other database itself proves complete is not old, however quiet it was.
3. An old copy is taken over by a statement that names an age, at least as long as it is.
4. A receiver that has met a newer epoch than the copy knows has heard another history: no age excuses that. One that
   no site can have reached is a wrong answer, and vetoes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from zerotail.core.epoch import Lineage, is_reachable
from zerotail.core.identity import ChannelName, Epoch, SiteName
from zerotail.errors import Refused

_STEPS = (("min", 60), ("h", 3600), ("d", 86400))


@dataclass(frozen=True, slots=True)
class CopyAge:
    """Seconds since the newest of each kind; None where there is none, or nobody knows."""

    changed: float | None
    """A commit that came from the primary, or one of its own."""
    heard: float | None
    """A sign of life of a process of ours, stored like any other row, or a word of the primary."""
    opened: float
    """The epoch: nothing in it is older."""

    @property
    def seconds(self) -> float:
        """Since the newest thing of all."""
        return max(0.0, min(age for age in (self.changed, self.heard, self.opened) if age is not None))


def told_age(seconds: float) -> str:
    """A time span for people."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 2 * 3600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.0f} days"


def _next_age(seconds: float) -> str:
    """A duration to type, half as long again as the age is now: it goes on growing."""
    wanted = seconds * 1.5
    unit, size = next((one for one in reversed(_STEPS) if wanted >= 2 * one[1]), _STEPS[0])
    return f"{int(wanted // size) + 1}{unit}"


def require_fresh(site: SiteName, age: CopyAge, stale_after: float, accepted: float | None) -> bool:
    """Whether the copy is old and was accepted as that; `Refused` when it is and nobody has said so."""
    if age.seconds <= stale_after:
        return False
    if accepted is not None and accepted >= age.seconds:
        return True
    said = "" if accepted is None else f", and {told_age(accepted)} were accepted"
    raise Refused(
        f"the copy at {site} is {told_age(age.seconds)} old{said}: whatever happened since is missing in it.",
        code="ZT474",
        why=f"What is older than {told_age(stale_after)} (takeover.stale_after) needs a statement: the other site may "
        "have worked without this one, and be the only one that knows.",
        tries=(
            "zerotail status",
            f"zerotail takeover plan --to {site} --accept-age {_next_age(age.seconds)}"
            "    # if nothing has happened since",
        ),
    )


def require_not_superseded(
    site: SiteName,
    lineage: Lineage,
    claims: Mapping[ChannelName, Epoch | None],
    *,
    accept_loss: bool,
    lost_site: SiteName | None = None,
) -> Epoch | None:
    """The newest epoch that a receiver has met and the copy does not know, None without one; `Refused` when there is
    one and its loss is not accepted. `lost_site` is stated to be out, where somebody goes on alone.
    """
    newer = {
        channel: epoch
        for channel, epoch in claims.items()
        if epoch is not None
        and epoch > lineage.current.epoch
        and epoch not in lineage
        and is_reachable(epoch, lineage.current.epoch)
    }
    if not newer:
        return None
    channel = max(newer, key=lambda one: newer[one] or 0)
    alone = f" --accept-lost-site {lost_site}" if lost_site else ""
    if not accept_loss:
        raise Refused(
            f"the receiver of {channel} was claimed in epoch {newer[channel]}, and the copy at {site} knows nothing "
            f"behind epoch {lineage.current.epoch}.",
            code="ZT475",
            why="Another site has worked since, and what it sent is missing here. A lane whose receiver got its last "
            "message there stops (ZT602) until the receiver's owner has put its books right; all others go on.",
            tries=(
                "zerotail status",
                f"zerotail takeover plan --to {site}{alone} --accept-loss    # if all of that may be lost",
            ),
        )
    return newer[channel]


def told_unbelieved(lineage: Lineage, claims: Mapping[ChannelName, Epoch | None]) -> tuple[str, ...]:
    """Which receivers say that they have met an epoch that no site can have reached."""
    return tuple(
        f"{channel}: its receiver says that it was claimed in epoch {epoch}, which is not believed"
        for channel, epoch in claims.items()
        if epoch is not None and not is_reachable(epoch, lineage.current.epoch)
    )
