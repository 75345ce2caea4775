"""The rules that every command keeps: help, exit codes, output, errors."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import click
import pytest

from support.command import PROGRAM, call
from zerotail.cli.answer_forms import ANSWERS, json_schema
from zerotail.cli.frame import COMMANDS, _failure_of, zerotail
from zerotail.cli.progress import steps_display

pytestmark = pytest.mark.fast


def every_command(group: click.Group, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The words of every command and group."""
    found: list[tuple[str, ...]] = []
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        found.append((*path, name))
        if isinstance(command, click.Group):
            found += every_command(command, (*path, name))
    return found


EVERY_COMMAND = every_command(zerotail)


@pytest.mark.parametrize("words", EVERY_COMMAND, ids=" ".join)
def test_every_command_has_help_with_an_example(words: tuple[str, ...]) -> None:
    command: click.Command = zerotail
    for word in words:
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), word)
        assert found is not None
        command = found
    assert command.help
    if not isinstance(command, click.Group):
        assert "Example:  zerotail" in (command.epilog or "")
        assert any(parameter.name == "as_json" for parameter in command.params), "no --json"


def test_help_is_there_within_150_milliseconds() -> None:
    def seconds() -> float:
        before = os.times()
        subprocess.run([*PROGRAM, "--help"], check=True, capture_output=True)
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system

    # Processor time, and the least of several: what the program needs, not what the machine was doing.
    assert min(seconds() for _ in range(10)) < 0.150


def test_help_imports_click_and_none_of_the_drivers() -> None:
    program = (
        "import sys; from zerotail.cli.frame import _run; _run(['--help']); "
        "print(sorted({'numpy', 'pyarrow', 'pydantic', 'psycopg', 'confluent_kafka', 'rich', 'pyspark', 'msgspec'} "
        "& set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_help_lists_every_command_in_its_section() -> None:
    said = call("--help")
    assert said.code == 0
    for name, entry in COMMANDS.items():
        assert f"{entry.section}:" in said.out
        assert f"  {name} " in said.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nonsense",), "there is no command 'nonsense'"),
        (("docter",), "zerotail doctor --help"),
        (("failover",), "the word for failover is `takeover`"),
        (("switchover",), "the word for switchover is `handover`"),
        (("version", "--nonsense"), "No such option"),
        (("version", "extra"), "extra"),
        (("lab", "nonsense"), "nonsense"),
        (("lab", "up", "--brokers", "2"), "1 or 3 brokers, not 2"),
        (("lab", "up", "--brokers", "x"), "not a valid integer"),
        (("lab", "up", "--latency", "-1"), "-1"),
        (("lab", "kill"), "Missing argument"),
        (("\x1b[31mred",), "\\x1b[31mred"),
        (("x" * 10_000,), "there is no command 'xxx"),
    ],
)
def test_a_wrong_call_exits_with_2_and_one_message(arguments: tuple[str, ...], message: str) -> None:
    said = call(*arguments)
    assert said.code == 2
    assert said.out == ""
    assert said.err.startswith("error")
    assert message in said.err
    assert "\x1b" not in said.err


def test_an_error_is_a_json_object_when_json_was_asked_for() -> None:
    said = call("lab", "status", "--dir", "nowhere-at-all", "--json")
    assert said.code == 3
    answer = said.answer("error")
    assert answer["code"] == "ZT202"
    assert answer["exit_code"] == 3


def test_version_answers_in_both_forms() -> None:
    assert call("version").out.startswith("zerotail ")
    assert call("--version").out == call("version").out.splitlines()[0] + "\n"
    assert call("version", "--json").answer("version")["parts"]["kafka"]


def test_doctor_answers_in_both_forms() -> None:
    said = call("doctor")
    assert said.code == 0, said.out
    assert said.out.count("✓") == len(said.out.splitlines())
    assert call("doctor", "--json").answer("doctor")["ok"] is True


def test_doctor_says_what_to_type_when_something_is_missing() -> None:
    said = call("doctor", "--bindir", "nowhere-at-all")
    assert said.code == 1
    assert "✗ PostgreSQL" in said.out
    assert "type:  pip install 'zerotail[lab]'" in said.out
    answer = call("doctor", "--bindir", "nowhere-at-all", "--json").answer("doctor")
    missing = [finding for finding in answer["findings"] if not finding["ok"]]
    assert [finding["name"] for finding in missing] == ["PostgreSQL"]
    assert missing[0]["seen"] == f"not found in {Path.cwd() / 'nowhere-at-all'}"


def test_a_closed_pipe_is_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        done = subprocess.run([*PROGRAM, "version"], stdout=closed, stderr=subprocess.PIPE, text=True, check=False)
    assert done.stderr == ""
    assert done.returncode == 0


@pytest.mark.parametrize(("arguments", "code"), [(("version",), 0), (("nonsense",), 2)])
@pytest.mark.parametrize("closed", [0, 1, 2])
def test_a_closed_stream_is_no_error(arguments: tuple[str, ...], code: int, closed: int) -> None:
    def close() -> None:
        os.close(closed)

    done = subprocess.run([*PROGRAM, *arguments], capture_output=True, text=True, check=False, preexec_fn=close)
    assert done.returncode == code
    assert "Traceback" not in done.stderr


def test_a_closed_pipe_for_messages_is_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        assert subprocess.run([*PROGRAM, "nonsense"], stderr=closed, check=False).returncode == 2


def test_a_full_disk_under_the_answer_is_told_in_one_sentence() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([*PROGRAM, "version"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 5
    assert done.stderr.startswith("error: the machine declined: ")
    assert "Traceback" not in done.stderr


def test_what_nobody_expected_exits_with_70_and_one_message(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    said = call("lab", "status", "--dir", str(tmp_path / "loop"))
    assert said.code == 70
    assert said.err.startswith("error: unexpected: ")


def test_signs_that_the_encoding_lacks_become_words() -> None:
    said = call("doctor", "--bindir", "nowhere-at-all", environment={"PYTHONIOENCODING": "ascii"})
    assert said.code == 1
    assert "NO PostgreSQL" in said.out
    assert "ok Python" in said.out
    json = call("lab", "status", "--dir", "nöwhere-€", "--json", environment={"PYTHONIOENCODING": "ascii"})
    assert "nöwhere-€" in json.answer("error")["message"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), click.Abort()])
def test_an_interruption_has_its_own_exit_code_in_json_too(error: BaseException) -> None:
    assert _failure_of(error).exit_code == 130


def on_a_terminal(*arguments: str, **environment: str) -> str:
    """What the program prints on a terminal."""
    master, slave = pty.openpty()
    clean = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TERM")}
    process = subprocess.Popen(
        [*PROGRAM, *arguments], stdin=slave, stdout=slave, stderr=slave, env={**clean, "TERM": "xterm", **environment}
    )
    os.close(slave)
    printed = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:  # the other side is closed: everything was read
            break
        printed += piece
    process.wait(30)
    os.close(master)
    return printed.decode()


def test_colour_is_for_terminals_that_want_it() -> None:
    assert "\x1b[" in on_a_terminal("nonsense")
    assert "\x1b[" not in on_a_terminal("nonsense", NO_COLOR="1")
    assert "\x1b[" not in on_a_terminal("nonsense", TERM="dumb")
    assert "\x1b[" not in call("nonsense").err


def test_progress_on_a_dumb_terminal_is_a_line_per_step(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setenv("TERM", "dumb")
    with steps_display("lab up") as tell:
        tell("link", False)
        tell("link", True)
        assert shown.getvalue().startswith("lab up: link ready after ")


def test_debug_shows_where_an_error_comes_from() -> None:
    done = subprocess.run(
        [*PROGRAM, "--debug", "lab", "status", "--dir", "nowhere-at-all"], capture_output=True, text=True, check=False
    )
    assert "Traceback" in done.stderr
    assert done.returncode == 3


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_every_answer_has_a_schema_that_names_itself(name: str) -> None:
    assert json_schema(name)["properties"]["schema"] == {"const": f"zerotail/{name}/1"}
