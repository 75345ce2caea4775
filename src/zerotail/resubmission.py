"""Submit a row that was set aside under another identifier, as everybody submits: it counts when it is behind the gate.

Row and instruction change in one transaction, so there is no moment at which a second try could store the value again:
it finds what the first one did and waits at the gate for it.
"""

from __future__ import annotations

import time
from contextlib import closing

from zerotail.config import Configuration
from zerotail.core.identity import SiteName
from zerotail.errors import Refused, Unfinished
from zerotail.flow.gate import pass_gate
from zerotail.ports import Refused as Declined
from zerotail.ports import Unreachable
from zerotail.postgres.connection import APPLY
from zerotail.postgres.lineage import NOT_LIVE
from zerotail.postgres.set_aside import Resubmitted, Wish, resubmit
from zerotail.postgres.transaction import NO_TABLES, OLD_TABLES, READ_ONLY, Session
from zerotail.running.prepare import adapter_settings
from zerotail.wiring import SiteAdapters, run_to_end

_PATIENCE_SECONDS = 10.0


def resubmit_set_aside(
    configuration: Configuration, site: str, wish: Wish, *, patience_seconds: float = _PATIENCE_SECONDS
) -> Resubmitted:
    """The accepted instruction. `Refused` when nothing was changed, `Unfinished` when nobody knows: try again."""
    settings = adapter_settings(configuration, SiteName(site))
    give_up = time.monotonic() + patience_seconds
    with (
        closing(Session(settings.dsn, "zerotail submissions", patience_seconds=patience_seconds)) as session,
        closing(SiteAdapters(settings)) as adapters,
    ):
        stored = session.write(lambda connection: resubmit(connection, wish, settings.site))
        if isinstance(stored, Declined):
            raise Refused(f"{stored.reason}; nothing was changed.", code="ZT466", tries=tries_after(stored.reason))
        if isinstance(stored, Unreachable):
            raise session.silence(site, tries=["zerotail status"])
        if isinstance(stored, Resubmitted):
            while True:
                if run_to_end(pass_gate(stored.standing, stored.position), adapters) is not None:
                    return stored
                if time.monotonic() > give_up:
                    break
    raise Unfinished(
        f"nobody knows whether {wish.id} is accepted: it is not behind the gate after {patience_seconds:g} s.",
        code="ZT464",
        why="Type the same line again; it is never stored twice.",
    )


def tries_after(reason: str) -> list[str]:
    """What to type when a decision about a row was declined."""
    if reason in (READ_ONLY, NOT_LIVE):
        return ["--site SITE    # the active one: that is where decisions are taken"]
    if reason == NO_TABLES or reason.startswith(OLD_TABLES):
        return list(APPLY)
    return ["zerotail submissions set-aside list --all    # what there is, and what was decided"]
