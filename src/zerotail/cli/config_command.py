"""`zerotail config`: is the configuration right, what does it come to, and what may stand in it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from zerotail.cli.output import json_option, print_answer, print_json
from zerotail.errors import Misused

if TYPE_CHECKING:
    from zerotail.config import Flag, Problem

_config_option = click.option(
    "--config", "path", metavar="PATH", help="The file to read; else ZEROTAIL_CONFIG, else ./zerotail.yaml."
)
_set_option = click.option(
    "--set",
    "settings",
    metavar="KEY=VALUE",
    multiple=True,
    help="A value over those of file and environment.",
)


@click.group("config", epilog="Example:  zerotail config check")
def command() -> None:
    """Check and show the configuration, and its schema."""


@command.command("check", epilog="Example:  zerotail config check --config zerotail.yaml")
@_config_option
@_set_option
@click.option("--without-secrets", is_flag=True, help="Do not look whether references to secrets lead anywhere.")
@click.option("--without-code", is_flag=True, help="Do not look whether handlers and transforms can be loaded.")
@json_option
def check(path: str | None, settings: Sequence[str], without_secrets: bool, without_code: bool, as_json: bool) -> int:
    """Everything that is wrong with the configuration, at once, with file, line and column.

    Handlers and transforms are loaded when all else is right.

    Exits with 0 when it can be used, with 2 when not.
    """
    from zerotail.config import find_configuration_file, problems, shown_path

    named = find_configuration_file(path)
    file = shown_path(named)
    flags = _flags_of(settings)
    found = problems(named, None, flags, with_secrets=not without_secrets)
    if not found and not without_code:
        found = _broken_code(str(named), flags)
    if as_json:
        answer = {"ok": not found, "file": file, "problems": [problem.to_json() for problem in found]}
        print_json("config-check", answer)
    elif found:
        count = "1 problem" if len(found) == 1 else f"{len(found)} problems"
        print_answer("\n".join([*map(str, found), count]))
    else:
        print_answer(f"{file} can be used.")
    return Misused.exit_code if found else 0


def _broken_code(file: str, flags: Sequence[Flag]) -> tuple[Problem, ...]:
    """Of every handler and transform that cannot be loaded: where it is named, and why not."""
    from zerotail.code import find_code_beside
    from zerotail.config import Problem, load_with_origins
    from zerotail.running.code_versions import find_broken_code

    find_code_beside(file)
    loaded = load_with_origins(file, None, flags, with_secrets=False)
    return tuple(
        Problem(loaded.origin_of(key), key, error.message.rstrip("."), next(iter(error.tries), ""))
        for key, error in find_broken_code(loaded.configuration)
    )


@command.command("show", epilog="Example:  zerotail config show --origin")
@_config_option
@_set_option
@click.option("--origin", "with_origin", is_flag=True, help="Say where each value comes from.")
@json_option
def show(path: str | None, settings: Sequence[str], with_origin: bool, as_json: bool) -> None:
    """The values that count after file, environment, flags and defaults. Secrets show as their references."""
    from zerotail.config import load_with_origins, origins, render, shown_values

    loaded = load_with_origins(path, None, _flags_of(settings), with_secrets=False)
    if not as_json:
        print_answer(render(loaded, with_origin=with_origin))
        return
    answer: dict[str, object] = {"file": loaded.file, "configuration": shown_values(loaded)}
    if with_origin:
        answer["origins"] = {key: str(origin) for key, origin in origins(loaded).items()}
    print_json("config-show", answer)


@command.command("schema", epilog="Example:  zerotail config schema > zerotail.schema.json")
@json_option
def schema(as_json: bool) -> None:
    """The JSON schema of the file, for editors. With --json, wrapped like every other answer."""
    from zerotail.config import json_schema

    if as_json:
        print_json("config-schema", {"json_schema": json_schema()})
    else:
        print_answer(json.dumps(json_schema(), indent=2, ensure_ascii=False))


def _flags_of(settings: Sequence[str]) -> list[Flag]:
    from zerotail.config import Flag

    flags = []
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or not key:
            raise Misused("--set takes KEY=VALUE, such as --set spark.master=local[4].")
        flags.append(Flag("--set", key, text))
    return flags
