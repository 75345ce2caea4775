"""How a standby goes by, and whether those that commits wait for are there.

1. `written` is read back by `read_waiting` as the same name: PostgreSQL takes a name with a dash only in quotes, and
   one in capitals as it stands.
2. A commit returns when as many of the named standbys as are asked for have the state that PostgreSQL calls *sync* or
   *quorum*; with fewer every commit hangs, and with no name at all none waits.
3. It waits for one of several standbys only if that one is *sync*, or if all of a quorum are asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_WORD = re.compile(r"\s*(\"(?:[^\"]|\"\")*\"|[^\s,()\"]+|[,()])")
_CONFIRM = ("sync", "quorum")
_DURABLE = ("on", "remote_apply")


@dataclass(frozen=True, slots=True)
class Waiting:
    """For how many of which standbys a commit waits."""

    count: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Follower:
    """A standby as its primary sees it; state and part are None where this user may not see them."""

    name: str
    state: str | None
    sync_state: str | None
    behind_bytes: int

    @property
    def confirms(self) -> bool:
        """Whether a commit can wait for it."""
        return self.state == "streaming" and self.sync_state in _CONFIRM


def written(standby: str) -> str:
    """The value of `synchronous_standby_names` that waits for this standby.

    >>> written("west"), written("DC-West")
    ('FIRST 1 (west)', 'FIRST 1 ("DC-West")')
    """
    return f"FIRST 1 ({quoted(standby)})"


def quoted(standby: str) -> str:
    """A standby's name as that setting takes it: in quotes unless it is plain."""
    return standby if _PLAIN.fullmatch(standby) else '"' + standby.replace('"', '""') + '"'


def slot_of(standby: str) -> str:
    """The name of the slot that keeps the log for a standby: a slot's holds small letters, digits and underscores only.

    >>> slot_of("DC-West")
    'dc_west'
    """
    return re.sub(r"[^a-z0-9_]", "_", standby.lower())


def read_waiting(setting: str) -> Waiting | None:
    """What `synchronous_standby_names` says; None when commits wait for nobody.

    >>> read_waiting('FIRST 2 (west, "DC-West", *)')
    Waiting(count=2, names=('west', 'DC-West', '*'))
    >>> read_waiting("west, south"), read_waiting("ANY 1 (west)"), read_waiting(" ")
    (Waiting(count=1, names=('west', 'south')), Waiting(count=1, names=('west',)), None)
    """
    words = _WORD.findall(setting)
    if not words:
        return None
    count = 1
    if "(" in words:
        opened = words.index("(")
        count = int(words[opened - 1]) if opened and words[opened - 1].isdecimal() else 1
        words = words[opened:]
    names = tuple(_unquoted(word) for word in words if word not in (",", "(", ")"))
    return Waiting(count, names)


@dataclass(frozen=True, slots=True)
class Commits:
    """What a commit of a primary meets: the setting, and who follows."""

    setting: str
    """Its `synchronous_standby_names`."""
    followers: tuple[Follower, ...]
    level: str = "on"
    """The `synchronous_commit` of whoever says nothing else."""


def why_commits_are_unsafe(commits: Commits, active: str, standby: str) -> str | None:
    """Why a commit at the active site does not return, or does so without this standby, which follows; None when all is
    well.
    """
    if read_waiting(commits.setting) is None:
        return f"commits of {active} wait for nobody"
    if commits.level not in _DURABLE:
        return f"commits of {active} return before {standby} has them on disk: synchronous_commit is {commits.level}"
    if hang := why_commits_hang(commits.setting, commits.followers):
        return f"every commit of {active} hangs: {hang}"
    if without := _why_they_return_without(commits, standby):
        return f"commits of {active} return without {standby}: {without}"
    return None


def is_named(setting: str, standby: str) -> bool:
    """Whether a commit waits for a standby of this name when it follows; PostgreSQL does not look at capitals."""
    waiting = read_waiting(setting)
    return waiting is not None and any(name in ("*", standby.lower()) for name in map(str.lower, waiting.names))


def wanted(standby: str, level: str = "on") -> str:
    """The SQL that lets commits wait for this standby."""
    names = f"alter system set synchronous_standby_names = '{written(standby)}';"
    first = "" if level in _DURABLE else "alter system set synchronous_commit = on; "
    return f"{first}{names} select pg_reload_conf();"


def _why_they_return_without(commits: Commits, standby: str) -> str | None:
    waiting = read_waiting(commits.setting)
    if waiting is None or len(commits.followers) < 2:
        return None
    own = [one for one in commits.followers if one.name.lower() == standby.lower()]
    told = _told(commits.setting, commits.followers)
    if not own:
        return f"nobody who follows is called {standby}; {told}"
    quorum = sum(one.confirms and one.sync_state == "quorum" for one in commits.followers)
    if not any(one.confirms for one in own) or (own[0].sync_state == "quorum" and waiting.count < quorum):
        return told
    return None


def _told(setting: str, followers: Iterable[Follower]) -> str:
    seen = ", ".join(f"{one.name} is {one.state} and {one.sync_state}" for one in followers)
    return f"synchronous_standby_names is {setting}, and {seen or 'nobody follows'}"


def why_commits_hang(setting: str, followers: Iterable[Follower]) -> str | None:
    """Why no commit returns; None when they do."""
    waiting = read_waiting(setting)
    followers = tuple(followers)
    confirming = sum(follower.confirms for follower in followers)
    if waiting is None or confirming >= waiting.count:
        return None
    return _told(setting, followers)


def _unquoted(word: str) -> str:
    return word[1:-1].replace('""', '"') if word.startswith('"') else word
