"""The watcher at a standby: takes over by itself when the active site has been silent for too long.

It is off unless the configuration says `takeover.automatic: on`. With two sites nobody can tell a lost site from a cut
link, and it does not have to be told: once this standby is promoted it confirms nothing to the old primary, so the old
site can release nothing any more, whatever it believes. A false alarm costs a change of roles, never a message.

1. A sign of life is an answer of the other database, or something of its log that arrived a moment ago: a primary that
   takes no more connections is slow, not lost.
2. When it is due, the plan is made anew from what both databases say then; one that would need a statement of the
   operator (this copy may lack what was released) is not carried out, and is told.
3. What was begun here and got as far as the promotion is finished, also when the other site answers again: that one can
   release nothing any more, so nobody works until this one does.
4. Its work ends with the turn of its own site.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from threading import Event

from zerotail.core.identity import SiteName
from zerotail.core.watch import Sign, Watch
from zerotail.errors import Misused, Refused, ZerotailError
from zerotail.operate.act import ActReport, Operator
from zerotail.operate.notebook import Note
from zerotail.operate.plan import TAKEOVER
from zerotail.operate.takeover import Statements, plan_rest, plan_takeover, resume_takeover, run_takeover
from zerotail.operate.world import World, observe_world
from zerotail.ports import Refused as Declined
from zerotail.ports import SiteObserved, Unreachable
from zerotail.postgres.look import log_silence_seconds
from zerotail.postgres.transaction import Session
from zerotail.running.report import Say, Tell

_LOOK_SECONDS = 0.5
_FRESH_SECONDS = 2.0
_OWN_SECONDS = 2.0


class Watcher:
    """Watches the other site of `site`."""

    def __init__(self, operator: Operator, site: SiteName, tell: Tell, say: Say) -> None:
        settings = operator.configuration.takeover
        if not settings.automatic:
            raise Misused(
                "takeover.automatic is off, so there is nothing to watch for.",
                code="ZT120",
                tries=["takeover: {automatic: on, after: 10s}    # in the configuration"],
            )
        self._operator = replace(operator, say=tell)
        self._site = site
        self._other = operator.configuration.other_site(site)
        dsn = operator.configuration.sites[site].database.dsn.reveal()
        self._own = Session(dsn, patience_seconds=_OWN_SECONDS, connect_seconds=_OWN_SECONDS)
        self._tell = tell
        self._say = say
        self._stop = Event()
        self._told: set[str] = set()
        self._watch = Watch(settings.after.total_seconds())

    def stop(self) -> None:
        """Watch no longer."""
        self._stop.set()

    def run(self) -> int:
        """Until this site is the active one, or until stopped; the exit code."""
        try:
            return self._keep_watching()
        finally:
            self._own.close()

    def _keep_watching(self) -> int:
        self._tell(f"watching {self._other}: takeover after {self._watch.after_seconds:g} s of silence")
        while not self._stop.is_set():
            world = observe_world(self._operator.configuration)
            own = world.of(self._site)
            if own is not None and own.standing.live_at(self._site):
                self._tell(f"{self._site} is the active site: nothing is left to watch for")
                return 0
            act = self._due(world, own)
            if act is not None:
                refusal = self._tried(act)
                if refusal is None:
                    return 0
                self._tell_once(f"no takeover: {refusal}")
            self._stop.wait(_LOOK_SECONDS)
        return 0

    def _due(self, world: World, own: SiteObserved | None) -> Callable[[], ActReport] | None:
        """What is to be done now, if anything."""
        is_promoted = own is not None and own.standing.timeline is not None
        note = self._find_unfinished() if is_promoted else None
        if note is not None:
            return lambda: self._finish(note)
        now = time.monotonic()
        self._watch = self._watch.seen(self._sign(world), now)
        if self._watch.silent_since is None:
            self._told.clear()
        self._report(now)
        return self._take_over if self._watch.is_due(now) else None

    def _tell_once(self, line: str) -> None:
        """Tell what was not told yet in this silence."""
        if line not in self._told:
            self._told.add(line)
            self._tell(line)

    def _find_unfinished(self) -> Note | None:
        try:
            return self._operator.notebook.find_unfinished((TAKEOVER,), self._site)
        except Refused:  # a note that cannot be read is an operator's affair
            return None

    def _sign(self, world: World) -> Sign:
        if world.of(self._other) is not None or world.declines(self._other):
            return Sign.ALIVE
        if world.of(self._site) is None:
            return Sign.UNKNOWN
        silence = self._own.read(log_silence_seconds)
        if isinstance(silence, (Unreachable, Declined)):
            return Sign.UNKNOWN
        return Sign.ALIVE if silence is not None and silence < _FRESH_SECONDS else Sign.SILENT

    def _report(self, now: float) -> None:
        silent = self._watch.silent_seconds(now)
        reason = f"{self._other} has been silent for {silent:.0f} s" if silent else ""
        self._say("watcher", self._other, None, "waiting" if reason else "working", reason)

    def _tried(self, act: Callable[[], ActReport]) -> str | None:
        """Why it was not done, if it was not. If it has begun, the next look finds what is left, and goes on."""
        try:
            report = act()
        except ZerotailError as error:
            return error.message
        except OSError as error:
            return f"{error.strerror}: {error.filename}"
        self._tell(report.told_active())
        for remark in report.remarks:
            self._tell(remark)
        return None

    def _take_over(self) -> ActReport:
        after = self._watch.after_seconds
        self._tell_once(f"{self._other} has been silent for {after:g} s: taking over to {self._site}")
        world = observe_world(self._operator.configuration, ask_receivers=True)
        if world.of(self._other) is not None or world.declines(self._other):
            self._watch = Watch(after)
            raise Refused(f"{self._other} answers again")
        planned = plan_takeover(self._operator.configuration, world, self._site, Statements())
        return run_takeover(self._operator, planned, ())

    def _finish(self, note: Note) -> ActReport:
        """Finish what was begun, also when the other site answers: since the promotion it can release nothing any more,
        unless an operator has let it go on alone.
        """
        self._tell_once(f"a takeover to {self._site} was begun and not finished: finishing it")
        world = observe_world(self._operator.configuration, ask_receivers=True)
        there = world.of(self._other)
        if there is not None and there.standing.epoch not in world.require(self._site).standing.lineage:
            raise Refused(
                f"{self._other} has gone on in epoch {there.standing.epoch}, which {self._site} does not know"
            )
        planned = plan_rest(self._operator.configuration, world, self._site, note, Statements())
        return resume_takeover(self._operator, planned)
