"""`zerotail run`: the processes of a site, in the foreground until Ctrl-C or `kill`."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from zerotail.cli.output import json_option, print_json, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zerotail.config import Configuration
    from zerotail.running.report import Reporter


def _run_options(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        json_option,
        click.option("--config", "path", metavar="PATH", help="The configuration; else as for `config check`."),
        click.option("--site", required=True, metavar="SITE", help="The site to work at."),
    ):
        function = option(function)
    return function


@click.group("run", epilog="Example:  zerotail run all --site east")
def command() -> None:
    """The processes of a site: producers, stages, the emitter, or all of them.

    They work at the active site only, and run until they are stopped. Exits with 6 when a newer instance is at work,
    with 7 when the site is not the active one.
    """


_ENDS_OF_TURNS = {"flow": {7}, "emitter": {6, 7}}
"""An emitter cannot tell a newer epoch from a newer instance. The flow can, and ends with 6 if it is the older one."""
_standby_option = click.option(
    "--standby", is_flag=True, help="At a site that is not active: be warm, and begin when it becomes the active one."
)


_take_over_option = click.option(
    "--take-over", is_flag=True, help="Go on in the place of an instance that is at work; it ends with 6."
)


@command.command("all", epilog="Example:  zerotail run all --site west --standby")
@_standby_option
@_take_over_option
@_run_options
def run_all(site: str, path: str | None, standby: bool, take_over: bool, as_json: bool) -> int:
    """One Spark application for producers and stages, and an emitter; each is started again when it dies."""
    from zerotail.running.prepare import adapter_settings
    from zerotail.running.supervisor import Supervisor

    configuration, file = _load(path)
    adapter_settings(configuration, configuration.require_site(site))
    if not take_over:
        _require_alone(configuration, site, "all", _emitted(configuration) | _applied(configuration, None, None))
    this = [sys.executable, "-m", "zerotail", "run"]
    # Whoever is started again finds the one before it gone, or another one that was told to take over.
    options = ["--site", site, "--config", file, *(["--standby"] if standby else []), "--take-over"]
    commands = {"flow": [*this, "flow", *options], "emitter": [*this, "emitter", *options]}
    supervisor = Supervisor(commands, _tell, ends_of_turns=_ENDS_OF_TURNS if standby else {})
    return _until_stopped("all", site, supervisor.run, supervisor.stop, as_json)


@command.command("flow", hidden=True, epilog="Example:  zerotail run flow --site east")
@_standby_option
@_take_over_option
@_run_options
def run_flow(site: str, path: str | None, standby: bool, take_over: bool, as_json: bool) -> int:
    """All producers and all stages in one Spark application."""
    return _run_application("flow", site, path, None, None, as_json, standby=standby, take_over=take_over)


@command.command("producer", epilog="Example:  zerotail run producer cards --site east")
@click.argument("names", metavar="NAME…", nargs=-1, required=True)
@_take_over_option
@_run_options
def run_producer(names: tuple[str, ...], site: str, path: str | None, take_over: bool, as_json: bool) -> int:
    """One producer, or several in one Spark application."""
    return _run_application("producer", site, path, names, (), as_json, take_over=take_over)


@command.command("stage", epilog="Example:  zerotail run stage settle --site east")
@click.argument("names", metavar="NAME…", nargs=-1, required=True)
@_take_over_option
@_run_options
def run_stage(names: tuple[str, ...], site: str, path: str | None, take_over: bool, as_json: bool) -> int:
    """One stage, or several in one Spark application."""
    return _run_application("stage", site, path, (), names, as_json, take_over=take_over)


@command.command("emitter", epilog="Example:  zerotail run emitter --site east")
@_standby_option
@_take_over_option
@_run_options
def run_emitter(site: str, path: str | None, standby: bool, take_over: bool, as_json: bool) -> int:
    """Send what the site owes to the outside and to next stages, behind the gate."""
    from zerotail.running.emitter import Emitter
    from zerotail.running.prepare import require_begun

    configuration, _ = _load(path)
    if not standby:
        require_begun(configuration, configuration.require_site(site))
    if not take_over:
        _require_alone(configuration, site, "emitter", _emitted(configuration))
    with _reporter(configuration, site) as reporter:
        emitter = Emitter(configuration, configuration.require_site(site), _tell, reporter.say, standby=standby)
        return _until_stopped("emitter", site, emitter.run, emitter.stop, as_json)


@command.command("follower", epilog="Example:  zerotail run follower --site west --shadow")
@click.option("--shadow", is_flag=True, help="Also run the handlers over the journal, and compare what comes out.")
@_run_options
def run_follower(site: str, path: str | None, shadow: bool, as_json: bool) -> int:
    """Keep the standby's Kafka filled in journal order, without anything else; `run all --standby` does that, too."""
    from zerotail.code import find_code_beside
    from zerotail.running.parts import plan_parts
    from zerotail.spark.application import Application, follow_alone

    configuration, file = _load(path)
    where = configuration.require_site(site)
    find_code_beside(file)
    parts = plan_parts(configuration, (), None)
    with _reporter(configuration, site) as reporter:
        application = Application(configuration, _tell)
        return _until_stopped(
            "follower",
            site,
            lambda: follow_alone(configuration, where, parts, reporter.say, application, shadow=shadow),
            application.stop,
            as_json,
        )


@command.command("watcher", epilog="Example:  zerotail run watcher --site west")
@click.option("--state", metavar="FOLDER", help="The folder for notes; else ZEROTAIL_STATE, else the user's.")
@_run_options
def run_watcher(site: str, path: str | None, state: str | None, as_json: bool) -> int:
    """At a standby: take over by itself when the active site is silent; needs `takeover.automatic: on`."""
    from zerotail.cli.act_options import operator_of
    from zerotail.operate.watcher import Watcher

    configuration, file = _load(path)
    where = configuration.require_site(site)
    with _reporter(configuration, site) as reporter:
        watcher = Watcher(operator_of(file, state), where, _tell, reporter.say)
        return _until_stopped("watcher", site, watcher.run, watcher.stop, as_json)


def _run_application(
    what: str,
    site: str,
    path: str | None,
    producers: Sequence[str] | None,
    stages: Sequence[str] | None,
    as_json: bool,
    *,
    standby: bool = False,
    take_over: bool = False,
) -> int:
    from zerotail.code import find_code_beside
    from zerotail.running.parts import plan_parts
    from zerotail.running.prepare import prepare

    configuration, file = _load(path)
    where = configuration.require_site(site)
    find_code_beside(file)
    parts = plan_parts(configuration, producers, stages)
    if not take_over:
        words = " ".join((what, *(producers or ()), *(stages or ())))
        _require_alone(configuration, site, words, _applied(configuration, producers, stages))
    if not standby:
        prepare(configuration, where)
    from zerotail.spark.application import Application, run_parts

    with _reporter(configuration, site) as reporter:
        application = Application(configuration, _tell)
        return _until_stopped(
            what,
            site,
            lambda: run_parts(configuration, where, parts, reporter.say, application, standby=standby),
            application.stop,
            as_json,
        )


def _emitted(configuration: Configuration) -> set[tuple[str, str]]:
    return {("emitter", str(channel)) for stage in configuration.stages.values() for channel in stage.emits}


def _applied(
    configuration: Configuration, producers: Sequence[str] | None, stages: Sequence[str] | None
) -> set[tuple[str, str]]:
    makers = configuration.producers if producers is None else producers
    takers = configuration.stages if stages is None else stages
    return {("producer", str(name)) for name in makers} | {("stage", str(name)) for name in takers}


def _require_alone(configuration: Configuration, site: str, words: str, parts: set[tuple[str, str]]) -> None:
    from zerotail.running.only_one import require_alone

    where = configuration.require_site(site)
    dsn = configuration.sites[where].database.dsn.reveal()
    require_alone(dsn, where, parts, f"zerotail run {words} --site {site}")


def _tell(line: str) -> None:
    """One line with its time: these processes run for months, and somebody will ask when it was."""
    say(f"{datetime.now().astimezone().isoformat(timespec='milliseconds')} {line}")


def _load(path: str | None) -> tuple[Configuration, str]:
    from zerotail.config import find_configuration_file, load

    file = str(find_configuration_file(path))
    return load(file), file


def _reporter(configuration: Configuration, site: str) -> Reporter:
    from zerotail.running.report import Reporter

    where = configuration.require_site(site)
    both = (where, configuration.other_site(where))
    return Reporter(where, *(configuration.sites[name].database.dsn.reveal() for name in both))


def _until_stopped(what: str, site: str, run: Callable[[], int], stop: Callable[[], None], as_json: bool) -> int:
    """Run until Ctrl-C or `kill`, which is how such a process ends normally."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: stop())
    _tell(f"{what} at {site}: running; Ctrl-C ends it")
    exit_code = run()
    if as_json:
        from zerotail.cli.answers import RunAnswer

        print_json("run", RunAnswer(what, site, exit_code))
    return exit_code
