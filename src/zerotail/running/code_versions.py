"""The user's handlers and transforms, and the version that a stage's segments note (E4).

Whoever only looks asks here, too: nothing of Spark, Kafka or Arrow is loaded for it.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from hashlib import sha256
from pathlib import Path

from zerotail.code import digest_of_code, load_object
from zerotail.config import Configuration
from zerotail.core.identity import StageName
from zerotail.errors import Misused, Refused, ZerotailError
from zerotail.handler import Handler

Transform = Callable[[bytes], bytes]
_VERSION_LENGTH = 12


def load_handler(path: str, whose: str) -> Handler:
    """A handler by its name: an instance, or a class or function that makes one from nothing."""
    handler = load_object(path, whose)
    if inspect.isclass(handler) or inspect.isfunction(handler):
        handler = handler()
    for method in ("keys", "apply"):
        if not callable(getattr(handler, method, None)):
            raise Misused(
                f"the handler {path} of {whose} has no method {method}.",
                code="ZT116",
                tries=["docs/testing-a-handler.md shows a handler"],
            )
    found: Handler = handler
    return found


def transforms_before(configuration: Configuration, stage: StageName) -> list[Transform]:
    """The transforms of the producers whose records a stage takes: what it applies depends on them, too."""
    topic = configuration.stages[stage].consumes
    before = [(name, one.transform) for name, one in sorted(configuration.producers.items()) if one.topic == topic]
    return [load_object(path, f"producer {name}") for name, path in before if path is not None]


def find_broken_code(configuration: Configuration) -> Iterator[tuple[tuple[str, ...], ZerotailError]]:
    """Of every handler and transform that cannot be loaded: where it is named in the configuration, and why not."""
    with redirect_stdout(sys.stderr):  # whatever modules print when they are imported is no part of an answer
        for name, stage in configuration.stages.items():
            try:
                load_handler(stage.handler, f"stage {name}")
            except ZerotailError as error:
                yield ("stages", str(name), "handler"), error
        for producer, one in configuration.producers.items():
            try:
                if one.transform is not None:
                    load_object(one.transform, f"producer {producer}")
            except ZerotailError as error:
                yield ("producers", str(producer), "transform"), error


def require_loadable(configuration: Configuration) -> None:
    """`Refused` unless every handler and transform can be loaded here: the site that becomes active has to."""
    broken = [error for _, error in find_broken_code(configuration)]
    if broken:
        raise Refused(
            broken[0].message,
            code="ZT448",
            why="Nothing would go on at the site that becomes active. Nothing was changed.",
            tries=(*dict.fromkeys(line for error in broken for line in error.tries), "zerotail config check"),
        )


def version_of(handler: Handler, transforms: Sequence[Transform] = ()) -> str:
    """What handler and transforms call their versions; for those that say nothing, a digest of their code."""
    code = (handler, *transforms)
    said = [str(version) for one in code if (version := getattr(one, "version", None)) is not None]
    silent = [one for one in code if getattr(one, "version", None) is None]
    return "+".join([*said, *([digest_of_code(silent)[:_VERSION_LENGTH]] if silent else [])])


def versions_of(configuration: Configuration, stage: StageName) -> tuple[str, str]:
    """By which versions in the journal today's code of a stage is meant: that of today, and that which releases before
    would have noted, which looked at the handler's own file only.
    """
    handler = load_handler(configuration.stages[stage].handler, f"stage {stage}")
    return version_of(handler, transforms_before(configuration, stage)), _version_of_before(handler)


def _version_of_before(handler: Handler) -> str:
    said = getattr(handler, "version", None)
    if said is not None:
        return str(said)
    source = inspect.getsourcefile(type(handler))
    return "unknown" if source is None else sha256(Path(source).read_bytes()).hexdigest()[:_VERSION_LENGTH]
