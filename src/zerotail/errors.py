"""What can go wrong, sorted by what the caller should do about it.

    ZerotailError
    ├── Misused       the command line or the configuration is wrong; nothing was contacted     (exit 2)
    ├── Refused       a rule says no; nothing was changed                                       (exit 3)
    ├── Unavailable   somebody did not answer inside the deadline; nothing was changed          (exit 4)
    ├── Unfinished    it began and did not finish, or its outcome is unknown                    (exit 5)
    └── Broken        an invariant does not hold; never caught below `main`                     (exit 70)

A message is one sentence with facts. `why` says why it matters, `tries` are lines to type next.
"""

from __future__ import annotations

from collections.abc import Sequence


class ZerotailError(Exception):
    """The root; carries everything that the screen, or `--json`, shows of an error."""

    exit_code = 70

    def __init__(self, message: str, *, code: str = "", why: str = "", tries: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.why = why
        self.tries = tuple(tries)


class Misused(ZerotailError):
    """Bad flag or configuration: correct the call and repeat it."""

    exit_code = 2


class Refused(ZerotailError):
    """A rule says no. Nothing was changed; an operator has to decide."""

    exit_code = 3


class Unavailable(ZerotailError):
    """A neighbour did not answer in time. Nothing was changed; trying again may help."""

    exit_code = 4


class Unfinished(ZerotailError):
    """It began, and its outcome is unknown or partial: look before repeating."""

    exit_code = 5


class Broken(ZerotailError):
    """An invariant does not hold. Going on could send something twice or leave something out."""

    exit_code = 70


def first_line(error: BaseException) -> str:
    """What an error says, in one line."""
    return (str(error).strip().splitlines() or ["no reason given"])[0]
