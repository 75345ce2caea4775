"""The frame around every command: which ones there are, how they are grouped, what an error looks like, how we exit.

Commands are loaded when they are called and not before: `--help` imports click and this module, nothing else, and is
there within 150 ms. Exit codes are those of `docs/exit-codes.md`; a code is never reused for something else.
"""

from __future__ import annotations

import difflib
import importlib
import signal
import sys
from types import FrameType
from typing import Any, NamedTuple, NoReturn

import click

from zerotail import __version__
from zerotail.cli.output import prepare_streams, print_error
from zerotail.errors import Broken, Misused, Unfinished, ZerotailError

_ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(ZerotailError):
    """Ctrl-C, `kill` or a closed terminal; what had been begun was taken back."""

    exit_code = 130


class Entry(NamedTuple):
    """A command: its group in the help, where it lives, and what it does in one line."""

    section: str
    module: str
    summary: str


COMMANDS = {
    "status": Entry("Look", "status", "Both sites on one screen: would a takeover lose nothing now? Why not?"),
    "audit": Entry("Look", "audit", "Settings that lose data: what was found, why, the line that repairs it."),
    "check": Entry("Look", "check", "A consumer group: running, slow, stalled, stopped, rebalancing or idle?"),
    "journal": Entry("Look", "journal", "The order journal: show, tail, verify, compare site against site."),
    "reconcile": Entry("Look", "reconcile", "Spark job: every instruction applied exactly once, both sites equal."),
    "emissions": Entry("Look", "emissions", "What is owed to the outside, and what is in doubt."),
    "poison": Entry("Look", "poison", "Records that stopped a partition: list them, then retry, skip or replace."),
    "submissions": Entry("Look", "submissions", "Rows set aside at numbering: list them, then drop or resubmit."),
    "spool": Entry("Look", "spool", "The local queue of a service: what waits in it; drain what was left."),
    "demo": Entry("Rehearse", "demo", "The whole story on this machine: two real sites, load, kill, takeover."),
    "lab": Entry("Rehearse", "lab", "Two real sites by hand: up, load, kill, cut, heal, destroy, down."),
    "drill": Entry("Rehearse", "drill", "Rehearsed disasters on real processes, with a verdict and a report."),
    "bench": Entry("Rehearse", "bench", "What it costs, measured on real servers, beside what others do."),
    "takeover": Entry("Act", "takeover", "Make a site the active one after the other was lost."),
    "handover": Entry("Act", "handover", "Move the active role to the other site, with nothing in doubt."),
    "failback": Entry("Act", "failback", "Hand over to the preferred site."),
    "restore": Entry("Act", "restore", "Refill and reorder a topic, without changing roles: plan, run."),
    "rejoin": Entry("Act", "rejoin", "Bring a lost site back as standby."),
    "mirror": Entry("Act", "mirror", "Whole topics copied between clusters: plan, run, watch, verify, tune."),
    "run": Entry("Run", "run", "The processes of a site: producers, stages, the emitter, or all of them."),
    "config": Entry("Set up", "config_command", "Check and show the configuration, and its schema."),
    "doctor": Entry("Set up", "doctor", "Is everything here that zerotail needs? What to type if not."),
    "schema": Entry("Set up", "schema", "The tables: print them as SQL, or apply them to a database."),
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
@click.version_option(__version__, message="zerotail %(version)s", help="The version alone.")
def zerotail(debug: bool) -> None:
    """Two sites, each with Kafka and PostgreSQL: when one is lost, the other goes on at the break point.

    Every command has --help with an example, and --json for programs. Answers go to stdout, progress and questions
    to stderr.
    """


def run() -> NoReturn:
    """Run the command line and exit with its code; every error becomes one message."""
    prepare_streams()
    for number in _ENDINGS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under `nohup`
            signal.signal(number, _interrupt_once)
    sys.exit(_run(sys.argv[1:]))


def _interrupt_once(_number: int, _frame: FrameType | None) -> None:
    """`kill` and a closed terminal end a command the way Ctrl-C does: by an exception, so that what it began is taken
    back. A second one does not disturb that.
    """
    for number in _ENDINGS:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _run(arguments: list[str]) -> int:
    try:
        answered: Any = zerotail.main(arguments, prog_name="zerotail", standalone_mode=False)
    except click.exceptions.Exit as request:
        return request.exit_code
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 (nothing leaves as a stack trace)
        if "--debug" in arguments:
            import traceback

            traceback.print_exc()
        failure = _failure_of(error)
        print_error(failure, as_json="--json" in arguments)
        return failure.exit_code
    return answered if isinstance(answered, int) else 0


def _failure_of(error: BaseException) -> ZerotailError:
    """Whatever went wrong, in our shape."""
    match error:
        case ZerotailError():
            return error
        case click.Abort() | KeyboardInterrupt():
            return Interrupted("interrupted.")
        case click.ClickException():
            return _translated(error)
        case OSError():
            return Unfinished(f"the machine declined: {error}.", tries=["zerotail doctor", "zerotail --debug …"])
        case _:
            return Broken(f"unexpected: {type(error).__name__}: {error}.", tries=["zerotail --debug …"])


def _translated(error: click.ClickException) -> Misused:
    """Click's usage errors, in our shape."""
    context = getattr(error, "ctx", None)
    help_line = f"{context.command_path} --help" if context else "zerotail --help"
    message = error.format_message()
    return Misused(message if message.endswith("?") else message.rstrip(".") + ".", tries=[help_line])
