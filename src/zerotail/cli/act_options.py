"""What the acts have in common on the command line: options, the question before a severe act, what is printed."""

from __future__ import annotations

import getpass
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from zerotail.cli.output import json_option, print_answer, print_json, say
from zerotail.errors import Refused

if TYPE_CHECKING:
    from zerotail.operate.act import ActReport, Operator
    from zerotail.operate.plan import ActPlan
    from zerotail.operate.status import ActStatus

to_option = click.option("--to", "site", metavar="SITE", required=True, help="The site that becomes active.")
_LONG_SECONDS = 3600.0
maybe_to_option = click.option("--to", "site", metavar="SITE", help="The site; else the one that was begun here.")


def look_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--config` and `--state`."""
    for option in (
        click.option("--state", metavar="FOLDER", help="The folder for notes; else ZEROTAIL_STATE, else the user's."),
        click.option("--config", "path", metavar="PATH", help="The configuration; else as for `config check`."),
    ):
        function = option(function)
    return function


def confirm_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--plan` and `--confirm`, for scripts."""
    for option in (
        click.option("--confirm", metavar="SITE", help="The name of the site, as it would be typed when asked."),
        click.option("--plan", "plan_id", metavar="ID", help="The plan that `plan` printed."),
    ):
        function = option(function)
    return function


def operator_of(path: str | None, state: str | None) -> Operator:
    """Who acts, with which configuration; progress is not told yet."""
    from zerotail.cli.configured import load_with_code
    from zerotail.operate.act import Operator
    from zerotail.operate.notebook import Notebook, state_folder

    # What is appended to a topic went through a transform; what is rebuilt goes through a handler.
    configuration = load_with_code(path)
    folder = Path(state) if state else state_folder(configuration.name, os.environ)
    return Operator(configuration, Notebook(folder), user_name())


def user_name() -> str:
    """Who types."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


@contextmanager
def telling(operator: Operator, title: str) -> Iterator[Operator]:
    """The operator, with progress on stderr."""
    from dataclasses import replace

    from zerotail.cli.progress import steps_display

    with steps_display(title) as steps:
        yield replace(operator, tell=steps, say=steps.say)


class _Planned(Protocol):
    @property
    def shown(self) -> ActPlan:
        """The plan, as it is shown."""


P = TypeVar("P", bound=_Planned)


def confirmed(make: Callable[[], P], accepted: tuple[str, ...], plan_id: str | None, confirm: str | None) -> P:
    """The plan that may be carried out: everything it needs is stated, and somebody who has seen it names the site.

    On a terminal the plan is shown and the name asked for; elsewhere both must be given. Who is asked may take his
    time, and the world does not wait: behind the question the plan is made anew, and must be the same.
    """
    from zerotail.operate.plan import require_accepted, require_same

    planned = make()
    if planned.shown.done:
        return planned
    require_accepted(planned.shown, accepted)
    if not _require_confirmed(planned.shown, plan_id, confirm):
        return planned
    again = make()
    require_same(again.shown, planned.shown.id)
    return again


def _require_confirmed(plan: ActPlan, plan_id: str | None, confirm: str | None) -> bool:
    """Whether somebody was asked for it."""
    from zerotail.operate.plan import plan_line, require_same, run_line

    if plan_id is not None:
        require_same(plan, plan_id)
    asked = sys.stdin.isatty() and sys.stderr.isatty()
    if not asked and (plan_id is None or confirm is None):
        raise Refused(
            f"a {plan.act} needs --plan and --confirm where nobody can be asked.",
            code="ZT452",
            tries=(plan_line(plan), run_line(plan)),
        )
    typed = confirm
    if typed is None:
        say("\n".join(plan_lines(plan)))
        typed = click.prompt(f"Type {plan.site} to go on", err=True)
    if typed != plan.site:
        raise Refused(f"{typed!r} is not {plan.site}; nothing was done.", code="ZT453", tries=(plan_line(plan),))
    return confirm is None


def plan_lines(plan: ActPlan) -> list[str]:
    """A plan for people."""
    if plan.done:
        return [*plan.seen, *plan.age, _nothing_to_do(plan)]
    lines = [f"{plan.act}: plan {plan.id}", *(f"  {line}" for line in (*plan.seen, *plan.age))]
    lines += [f"  {number}. {step}" for number, step in enumerate(plan.steps, 1)]
    return [*lines, f"  {_deadline(plan)}"]


def _deadline(plan: ActPlan) -> str:
    """When it has ended at the latest, and for which step that is so long."""
    from zerotail.operate.plan import resume_line

    long = [limit.step for limit in plan.limits if limit.seconds >= _LONG_SECONDS]
    mostly = f", most of it for: {', '.join(dict.fromkeys(long))}" if long else ""
    return (
        f"deadline: it ends within {_minutes(plan.deadline_seconds)}, done or not{mostly}; "
        f"then {resume_line(plan)} goes on"
    )


def _minutes(seconds: float) -> str:
    """Rounded up: nothing takes longer than it says."""
    hours, minutes = divmod(-int(-seconds // 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def _nothing_to_do(found: ActPlan | ActReport) -> str:
    role = "the standby" if found.act == "rejoin" else "the active site"
    return f"nothing to do: {found.site} is {role} already (epoch {found.epoch})"


def show_plan(plan: ActPlan, *, as_json: bool) -> None:
    """Print a plan, and the line that carries it out."""
    from zerotail.operate.plan import run_line

    if as_json:
        print_json(f"{plan.act}-plan", plan)
    else:
        print_answer("\n".join(plan_lines(plan) + ([] if plan.done else [f"run it:  {run_line(plan)}"])))


def show_report(report: ActReport, *, as_json: bool) -> None:
    """Print what an act did."""
    if as_json:
        print_json(f"{report.act}-report", report)
        return
    if not report.changed:
        print_answer(_nothing_to_do(report))
        return
    verb = "is back as standby" if report.act == "rejoin" else "is active"
    lines = [f"{report.site} {verb}, epoch {report.epoch}, after {report.seconds:.1f} s"]
    if report.unfenced:
        lines.append(f"  not fenced: {report.other} was not shut off; the gate keeps it from releasing anything new")
    if report.exposed:
        lines.append(
            f"  exposed: no other site confirms what is sent; next: zerotail rejoin plan --site {report.other}"
        )
    if report.replayed:
        lines.append(f"  replayed: {report.replayed} records, hashes as journaled")
    if report.refilled:
        lines.append(f"  appended: {report.refilled} records, so that the topics hold the whole journal")
    if report.read:
        lines.append(f"  read: {report.read} records of the topics, before it went live")
    if report.accepted:
        lines.append(f"  stated: {', '.join(report.accepted)}")
    lines += [f"  {remark}" for remark in report.remarks]
    if report.tail is not None:
        lines.append(f"  {report.tail.told()}")
    print_answer("\n".join(lines))


def status_command(act: str) -> click.Command:
    """The command `status` of an act."""

    @click.command("status", epilog=f"Example:  zerotail {act} status")
    @look_options
    @json_option
    def status(path: str | None, state: str | None, as_json: bool) -> int:
        """Both sites, the steps that are done, and whether one was begun and not finished (then it exits with 1)."""
        from zerotail.operate.status import observe_status
        from zerotail.operate.world import observe_world

        operator = operator_of(path, state)
        world = observe_world(operator.configuration)
        return _show_status(observe_status(operator.configuration, world, operator.notebook, act), as_json=as_json)

    return status


def _show_status(status: ActStatus, *, as_json: bool) -> int:
    """Print where an act stands; 1 when one is unfinished, or when there are two histories."""
    if as_json:
        print_json(f"{status.act}-status", status)
        return 1 if status.unfinished or status.two_histories else 0
    lines = list(status.seen)
    if status.epoch is not None:
        by = f" by {status.operator}" if status.operator else ""
        lines.append(f"epoch {status.epoch} of {status.active}: opened for a {status.cause}{by}")
    lines += [f"  done {step.done_at}  {step.step}" for step in status.steps]
    if status.unfinished:
        where = f"here at {status.begun_at}" if status.begun_at else "and not noted on this machine"
        lines.append(f"UNFINISHED: a {status.act} to {status.unfinished} was begun {where};  {status.next}")
    print_answer("\n".join(lines))
    return 1 if status.unfinished or status.two_histories else 0
