"""The emitter as a process: one thread for each lane of this site, each with sessions and clients of its own.

    python -m zerotail.flow.emitter --config zerotail.yaml --site east

1. Lanes are looked up in the database again and again: a partition that is added gets a sender while others run.
2. A lane whose receiver is dead holds up itself only.
3. A sender that is out of step starts again, with a new claim. One that was replaced, or works at a site that is not
   the active one, ends the process, which says so by its exit code: nobody is left to guess whether it still sends.
4. SIGTERM and SIGINT end it between two effects: what was begun is finished, and its answer noted.
"""

from __future__ import annotations

import argparse
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from threading import Event, Lock, Thread

from zerotail.channel.configured import open_receiver, outside_channels, sender_of
from zerotail.config import Configuration, load
from zerotail.core.emission import Lane
from zerotail.core.identity import SiteName
from zerotail.errors import Misused, ZerotailError
from zerotail.flow.emit import emit
from zerotail.ports import End
from zerotail.postgres.owed import find_lanes
from zerotail.postgres.transaction import Session
from zerotail.wiring import AdapterSettings, SiteAdapters, Stopped, drive

Tell = Callable[[str], None]
_LOOK_SECONDS = 1.0
_AGAIN_SECONDS = 0.2


EXIT_CODES = {End.SUPERSEDED: 6, End.NOT_ACTIVE: 7}
_BUG = 70


class Emitter:
    """The senders of one site."""

    def __init__(self, configuration: Configuration, site: SiteName, tell: Tell) -> None:
        if site not in configuration.sites:
            raise Misused(f"there is no site {site}.", tries=[f"one of: {', '.join(configuration.sites)}"])
        self._configuration = configuration
        self._site = site
        self._tell = tell
        self._stop = Event()
        self._exit_code = 0
        self._lock = Lock()
        self._senders: dict[Lane, Thread] = {}

    def stop(self) -> None:
        """Let every sender end between two effects."""
        self._stop.set()

    def run(self) -> int:
        """Send until stopped, replaced or broken; the exit code, of several the highest."""
        channels = outside_channels(self._configuration)
        database = Session(self._settings.dsn, "zerotail emitter")
        try:
            while not self._stop.is_set():
                lanes = database.read(lambda connection: find_lanes(connection, channels))
                for lane in lanes if isinstance(lanes, list) else ():
                    if lane not in self._senders:
                        self._start(lane)
                self._stop.wait(_LOOK_SECONDS)
        finally:
            self._stop.set()
            for sender in self._senders.values():
                sender.join()
            database.close()
        return self._exit_code

    @property
    def _settings(self) -> AdapterSettings:
        sites = self._configuration.sites
        own, other = sites[self._site], sites[self._configuration.other_site(self._site)]
        return AdapterSettings(self._site, own.database.dsn.reveal(), other.database.dsn.reveal(), own.kafka.bootstrap)

    def _start(self, lane: Lane) -> None:
        name = f"{lane.channel}/{lane.partition}"
        self._senders[lane] = Thread(target=self._send_on, args=(lane,), name=name)
        self._senders[lane].start()
        self._tell(f"sending on {name}")

    def _send_on(self, lane: Lane) -> None:
        """Send on one lane until the end, whatever it is."""
        try:
            ended = self._keep_sending(lane)
        except Stopped:
            return
        except ZerotailError as error:
            self._end(error.exit_code, lane, f"{error.code} {error.message}".strip())
        except BaseException:  # noqa: BLE001 - a sender must not be gone while the process looks alive
            self._end(_BUG, lane, traceback.format_exc())
        else:
            self._end(EXIT_CODES[ended], lane, ended.value)

    def _keep_sending(self, lane: Lane) -> End:
        adapters = SiteAdapters(self._settings)
        try:
            adapters.attach(lane.channel, open_receiver(self._configuration.channels[lane.channel], lane, self._site))
            sender = sender_of(self._configuration, lane, self._site)
            while (ended := drive(emit(sender), adapters, self._stop)) is End.OUT_OF_STEP:
                self._stop.wait(_AGAIN_SECONDS)
            return ended
        finally:
            adapters.close()

    def _end(self, exit_code: int, lane: Lane, reason: str) -> None:
        with self._lock:
            self._exit_code = max(self._exit_code, exit_code)
        self._tell(f"ending: {lane.channel}/{lane.partition}: {reason}")
        self._stop.set()


def main() -> int:
    """Run until a signal, or an end of its own."""
    parser = argparse.ArgumentParser(prog="python -m zerotail.flow.emitter", description="Send what a site owes.")
    parser.add_argument("--config", type=Path, metavar="FILE", help="the configuration")
    parser.add_argument("--site", required=True, metavar="SITE", help="the site to work at")
    options = parser.parse_args()
    try:
        emitter = Emitter(load(options.config), SiteName(options.site), _print)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: emitter.stop())
        return emitter.run()
    except ZerotailError as error:
        sys.stderr.write(f"error: {error.message}\n")
        return error.exit_code


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
