"""What a command prints: the answer to stdout, everything else to stderr.

With `--json` the answer is one object whose `schema` names its form and version. Colour only on a terminal that wants
it (`NO_COLOR`, `TERM=dumb`), and never as the only sign. A reader that closed the pipe is no error of ours.
"""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, TextIO

import click

from zerotail.errors import ZerotailError

if TYPE_CHECKING:
    from rich.console import Console

json_option = click.option("--json", "as_json", is_flag=True, help="Answer with one JSON object.")


def prepare_streams() -> None:
    """A stream that was closed leads nowhere; a sign that the terminal cannot show becomes a question mark."""
    # Input first: each takes the lowest free descriptor, which is its own.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 (open as long as we run)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def print_answer(text: str) -> None:
    """The answer, for people."""
    _write(sys.stdout, text if text.endswith("\n") else text + "\n")


def print_json(schema: str, content: Any) -> None:
    """The answer, for programs: `content` (a dataclass or a dict) with the name of its schema in front."""
    import json

    import msgspec

    fields = msgspec.to_builtins(content)
    # In plain ASCII, which every encoding of the output holds.
    _write(sys.stdout, json.dumps({"schema": f"zerotail/{schema}/1", **fields}, separators=(",", ":")) + "\n")


def _write(stream: TextIO, text: str) -> None:
    try:
        stream.write(text)
        stream.flush()
    except OSError as error:
        # The interpreter's own flush at exit must not complain once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        # Nobody reads any more: what was done is done.
        if not isinstance(error, BrokenPipeError):
            raise


def say(line: str) -> None:
    """A line of progress or a warning."""
    _write(sys.stderr, line + "\n")


def print_error(error: ZerotailError, *, as_json: bool) -> None:
    """What is wrong with the facts, why it matters, what to type."""
    if as_json:
        print_json(
            "error",
            {
                "code": error.code,
                "exit_code": error.exit_code,
                "message": error.message,
                "why": error.why,
                "tries": list(error.tries),
            },
        )
        return
    head = click.style("error", fg="red", bold=True) if colour_wanted(sys.stderr) else "error"
    lines = [f"{head}{f' {error.code}' if error.code else ''}: {error.message}"]
    lines += [f"  {line}" for line in error.why.splitlines()]
    lines += [f"  {'Try:  ' if index == 0 else '      '}{line}" for index, line in enumerate(error.tries)]
    say("\n".join(lines))


def colour_wanted(stream: Any) -> bool:
    """Whether this stream is a terminal that wants colour."""
    return bool(stream.isatty()) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def console(stream: Any) -> Console:
    """A rich console that keeps to the rules above."""
    from rich.console import Console

    return Console(file=stream, no_color=not colour_wanted(stream), highlight=False, soft_wrap=not stream.isatty())


def tick(ok: bool, stream: Any) -> str:
    """✓ or ✗, coloured where colour is wanted; words where the stream's encoding has no such signs."""
    sign = "✓" if ok else "✗"
    try:
        sign.encode(stream.encoding)
    except UnicodeEncodeError:
        return "ok" if ok else "NO"
    return click.style(sign, fg="green" if ok else "red") if colour_wanted(stream) else sign
