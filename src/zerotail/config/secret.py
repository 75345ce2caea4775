"""Secrets, by reference only: a `Secret` knows where its value is kept and never holds the value itself.

The file says `${env:NAME}` or `${file:path}`; `reveal` looks the value up at the moment it is needed, so a
rotated password is used at the next connection, and nothing that prints, copies or pickles a configuration
can show it.

1. No secret in the file: what looks like one in plain text is refused (see `address.py`).
2. A file that holds a secret lies below the configuration's folder or a folder that the configuration allows,
   and is closed to other users.
3. A looked-up value is only ever filled in whole: quoted in a connection string, percent-encoded in a URL. A
   password with a space in it cannot turn into a second option.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from zerotail.config.problem import Unfit, shown_word
from zerotail.errors import Misused

HIDDEN = "[hidden]"
ALWAYS_ALLOWED_FOLDERS = (Path("/run/secrets"), Path("/var/run/secrets"))
LARGEST_SECRET_BYTES = 65_536

_REFERENCE = re.compile(r"\$\{(env|file):([^{}]+)\}")
_MASKS = range(0xE000, 0xF8FF)
"""Private-use characters: one stands for one reference while the text around it is taken apart."""


@dataclass(frozen=True, slots=True)
class Reference:
    """`${env:NAME}` or `${file:path}`."""

    kind: str
    target: str

    def __str__(self) -> str:
        return f"${{{self.kind}:{self.target}}}"


@dataclass(frozen=True, slots=True)
class Template:
    """A text in which each reference is masked by one private-use character."""

    masked: str
    references: tuple[Reference, ...]

    def fill(self, part: str, value_of: Callable[[Reference], str]) -> str:
        """`part`, a piece of the masked text, with its references replaced."""
        return "".join(value_of(self.references[ord(c) - _MASKS[0]]) if ord(c) in _MASKS else c for c in part)


def is_reference_only(masked: str) -> bool:
    """Whether nothing but references stands in a piece of masked text."""
    return bool(masked) and all(ord(character) in _MASKS for character in masked)


def has_reference(masked: str) -> bool:
    """Whether a piece of masked text holds a reference."""
    return any(ord(character) in _MASKS for character in masked)


def template_of(written: str) -> Template:
    """The text with its references masked; `Unfit` for what looks like a reference and is none."""
    if has_reference(written):
        raise Unfit("must not hold private-use characters")
    references: list[Reference] = []

    def mask(match: re.Match[str]) -> str:
        references.append(Reference(match.group(1), match.group(2)))
        return chr(_MASKS[len(references) - 1])

    if len(_REFERENCE.findall(written)) > len(_MASKS):
        raise Unfit("holds too many references")
    masked = _REFERENCE.sub(mask, written)
    if "${" in masked:
        raise Unfit("holds a reference that is neither ${env:NAME} nor ${file:path}")
    return Template(masked, tuple(references))


def environment_names_in(text: str) -> set[str]:
    """The environment variables that a text refers to."""
    return {target for kind, target in _REFERENCE.findall(text) if kind == "env"}


@dataclass(frozen=True, slots=True, repr=False)
class Keeper:
    """Where references are looked up: an environment, and the folders in which secret files may lie."""

    environment: Mapping[str, str]
    folder: Path
    allowed_folders: tuple[Path, ...] = ()
    must_be_there: bool = True
    """Whether a reference that leads nowhere is a problem already while the configuration is read."""

    def find(self, reference: Reference) -> str:
        """The value behind a reference, or `Unfit` with a sentence that does not contain it."""
        if reference.kind == "env":
            return self._find_in_environment(reference.target)
        return self._find_in_file(reference)

    def _find_in_environment(self, name: str) -> str:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise Unfit("refers to an environment variable by a name that none can have")
        if name not in self.environment:
            raise Unfit(f"refers to the environment variable {shown_word(name)}, which is not set")
        if not self.environment[name]:
            raise Unfit(f"refers to the environment variable {shown_word(name)}, which is empty")
        return self.environment[name]

    def _find_in_file(self, reference: Reference) -> str:
        shown = "".join(c if c.isprintable() else "?" for c in str(reference))[:200]
        try:
            path = Path(os.path.realpath(self.folder / reference.target, strict=True))
            is_allowed = self._allows(path)
            mode, content = _read_closed_file(path) if is_allowed else (0, b"")
        except FileNotFoundError:
            raise Unfit(f"refers to {shown}, which does not exist") from None
        except (OSError, ValueError):
            raise Unfit(f"refers to {shown}, which cannot be read") from None
        if not is_allowed:
            raise Unfit(
                f"refers to {shown}, which is outside of the configuration's folder",
                "move the file there, or list its folder under secrets.folders",
            )
        if not stat.S_ISREG(mode):
            raise Unfit(f"refers to {shown}, which is not a regular file")
        if mode & 0o007:
            raise Unfit(f"refers to {shown}, which is open to every user of the machine", "run chmod o= on the file")
        return _secret_in(content, shown)

    def _allows(self, path: Path) -> bool:
        allowed = (self.folder, *self.allowed_folders, *ALWAYS_ALLOWED_FOLDERS)
        return any(path.is_relative_to(os.path.realpath(folder)) for folder in allowed)

    def __repr__(self) -> str:
        return f"Keeper({HIDDEN})"


def _read_closed_file(path: Path) -> tuple[int, bytes]:
    """The mode and the content of one and the same file; a pipe is not waited for."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        return os.fstat(file.fileno()).st_mode, file.read(LARGEST_SECRET_BYTES + 1) or b""


def _secret_in(content: bytes, shown: str) -> str:
    """The text of a secret file without the line break that editors put at its end."""
    if len(content) > LARGEST_SECRET_BYTES:
        raise Unfit(f"refers to {shown}, which is larger than a secret can be")
    try:
        text = content.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise Unfit(f"refers to {shown}, which is not UTF-8") from None
    if not text or "\0" in text:
        raise Unfit(f"refers to {shown}, which {'holds a NUL' if text else 'is empty'}")
    return text


Filling = Callable[[Template, Callable[[Reference], str]], str]
"""How looked-up values are put into the text around them."""


def fill_plainly(template: Template, find: Callable[[Reference], str]) -> str:
    """Values as they are, with nothing around them to break."""
    return template.fill(template.masked, find)


class Secret:
    """A text that may refer to secrets. It prints as `[hidden]`; `written` is how it stands in the file."""

    __slots__ = ("_filling", "_keeper", "written")

    def __init__(self, written: str, filling: Filling = fill_plainly, keeper: Keeper | None = None) -> None:
        self.written = written
        self._filling = filling
        self._keeper = keeper or Keeper(os.environ, Path.cwd())

    def reveal(self) -> str:
        """The text with its secrets filled in, looked up now. Hand it to a driver; never keep or print it."""
        try:
            return self._filling(template_of(self.written), self._keeper.find)
        except Unfit as unfit:
            raise Misused(f"a configured text {unfit.sentence}.", tries=["zerotail config check"]) from None

    def __str__(self) -> str:
        return HIDDEN

    __repr__ = __str__

    def __format__(self, specification: str) -> str:
        return format(HIDDEN, specification)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self.written == other.written

    def __hash__(self) -> int:
        return hash(self.written)

    def __deepcopy__(self, _: object) -> Secret:
        return self

    def __reduce__(
        self,
    ) -> tuple[Callable[[str, Filling, Path, tuple[Path, ...]], Secret], tuple[object, ...]]:
        # Another process looks references up in its own environment: values do not travel.
        return _secret_here, (self.written, self._filling, self._keeper.folder, self._keeper.allowed_folders)


def _secret_here(written: str, filling: Filling, folder: Path, allowed: tuple[Path, ...]) -> Secret:
    return Secret(written, filling, Keeper(os.environ, folder, allowed))
