"""The frame around every command: which ones there are, how they are grouped, what an error looks like, how we exit.

Commands are loaded when they are called and not before: `--help` imports click and this module, nothing else, and is
there within 150 ms. Exit codes are those of `docs/exit-codes.md`; a code is never reused for something else.
"""

from __future__ import annotations

import difflib
import importlib
import signal
import sys
from typing import Any, NamedTuple, NoReturn

import click

from zerotail.cli.output import print_error
from zerotail.errors import Misused, ZerotailError

INTERRUPTED = 130


class Entry(NamedTuple):
    """A command: its group in the help, where it lives, and what it does in one line."""

    section: str
    module: str
    summary: str


COMMANDS = {
    "emissions": Entry("Look", "emissions", "What is owed to the outside, and what is in doubt."),
    "demo": Entry("Rehearse", "demo", "The whole story on this machine: two real sites, load, kill, takeover."),
    "lab": Entry("Rehearse", "lab", "Two real sites by hand: up, kill, cut, heal, destroy, down."),
    "config": Entry("Set up", "config_command", "Check and show the configuration, and its schema."),
    "doctor": Entry("Set up", "doctor", "Is everything here that zerotail needs? What to type if not."),
    "version": Entry("Set up", "version", "The version of zerotail and of the parts it runs with."),
}
SECTIONS = ("Look", "Rehearse", "Act", "Set up", "Run")
OUR_WORD_FOR = {"failover": "takeover", "switchover": "handover"}


class Commands(click.Group):
    """The commands by name; each module is imported when its command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        module = importlib.import_module(f"zerotail.cli.{entry.module}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            raise _unknown_command(name)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        for section in SECTIONS:
            rows = [(name, entry.summary) for name, entry in COMMANDS.items() if entry.section == section]
            if rows:
                with formatter.section(section):
                    formatter.write_dl(rows)


def _unknown_command(name: str) -> Misused:
    if name in OUR_WORD_FOR:
        ours = OUR_WORD_FOR[name]
        return Misused(f"the word for {name} is `{ours}` here.", tries=[f"zerotail {ours} --help"])
    close = difflib.get_close_matches(name, COMMANDS, n=1)
    tries = [f"zerotail {close[0]} --help"] if close else ["zerotail --help"]
    return Misused(f"there is no command {printable(name)}.", tries=tries)


def printable(text: str) -> str:
    """What the user typed, safe to show: control characters escaped, long input cut."""
    return repr(text if len(text) <= 60 else f"{text[:57]}…")


@click.command(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Example:  zerotail demo",
)
@click.option("--debug", is_flag=True, help="Show a stack trace with an error.")
def zerotail(debug: bool) -> None:
    """Two sites, each with Kafka and PostgreSQL: when one is lost, the other goes on at the break point.

    Every command has --help with an example, and --json for programs. Answers go to stdout, progress and questions
    to stderr.
    """


def run() -> NoReturn:
    """Run the command line and exit with its code; every error becomes one message."""
    # `kill` ends a command the way Ctrl-C does: by an exception, so that what it began is taken back.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(_run(sys.argv[1:]))


def _run(arguments: list[str]) -> int:
    as_json = "--json" in arguments
    debug = "--debug" in arguments
    try:
        answered: Any = zerotail.main(arguments, prog_name="zerotail", standalone_mode=False)
    except click.exceptions.Exit as request:
        return request.exit_code
    except (click.Abort, KeyboardInterrupt):
        print_error(ZerotailError("interrupted."), as_json=as_json)
        return INTERRUPTED
    except click.ClickException as error:
        if debug:
            raise
        return _report(_translated(error), as_json=as_json)
    except ZerotailError as error:
        if debug:
            raise
        return _report(error, as_json=as_json)
    return answered if isinstance(answered, int) else 0


def _translated(error: click.ClickException) -> Misused:
    """Click's usage errors, in our shape."""
    context = getattr(error, "ctx", None)
    help_line = f"{context.command_path} --help" if context else "zerotail --help"
    message = error.format_message()
    return Misused(message if message.endswith("?") else message.rstrip(".") + ".", tries=[help_line])


def _report(error: ZerotailError, *, as_json: bool) -> int:
    print_error(error, as_json=as_json)
    return error.exit_code
