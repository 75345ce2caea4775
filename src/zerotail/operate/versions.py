"""Whether a replay is possible with today's code, asked before anything is touched (E4).

A stage with `state: replay` has its state made anew at a takeover, by running its handler over everything that the
journal holds. Old segments that other code made would come to other hashes, in the middle of the disaster.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from zerotail.config import Configuration
from zerotail.core.identity import SiteName, StageName
from zerotail.deadline import Deadline
from zerotail.errors import Refused
from zerotail.postgres.reading import MadeBy, read_versions
from zerotail.postgres.transaction import session_within
from zerotail.running.code_versions import require_loadable, versions_of

_ANSWER_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class OtherCode:
    """Segments of a stage that today's code did not make."""

    stage: StageName
    made_by: tuple[MadeBy, ...]
    today: str

    @property
    def told(self) -> str:
        """In words."""
        first = min(one.first_segment for one in self.made_by)
        versions = ", ".join(sorted({one.version for one in self.made_by}))
        return (
            f"segments of stage {self.stage}, from segment {first} on, were made by version {versions}, and its code "
            f"is version {self.today} today"
        )


def require_replayable(configuration: Configuration, site: SiteName, *, accepted: bool) -> bool:
    """`Refused` unless today's code made all that a takeover to this site would replay, or that is accepted; whether it
    was. Where it is, nobody looks: the journal may be long, and its only copy cold.
    """
    require_loadable(configuration)
    if accepted:
        return any(stage.state == "replay" for stage in configuration.stages.values())
    others = list(find_other_code(configuration, site))
    if others:
        raise Refused(
            f"a takeover could not make the state of {', '.join(one.stage for one in others)} anew: {others[0].told}.",
            code="ZT447",
            why="A replay with other code comes to other hashes, and would end in the middle.",
            tries=(
                f"zerotail takeover plan --to {site} --accept-version    # the code does the same with old records",
                "state: database    # under the stage, in the configuration: then nothing is replayed",
                f"zerotail journal verify --site {site}    # tells whether it does the same",
            ),
        )
    return False


def find_other_code(configuration: Configuration, site: SiteName) -> Iterator[OtherCode]:
    """What a replay at this site would meet that today's code did not make."""
    stages = [name for name, stage in configuration.stages.items() if stage.state == "replay"]
    if not stages:
        return
    with session_within(configuration.sites[site].database.dsn.reveal(), Deadline.after(_ANSWER_SECONDS)) as connection:
        for stage in stages:
            today = versions_of(configuration, stage)
            others = tuple(one for one in read_versions(connection, stage) if one.version not in today)
            if others:
                yield OtherCode(stage, others, today[0])
