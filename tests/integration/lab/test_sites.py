"""Two real sites: faults bite and say so, labs do not disturb each other, nothing is left behind."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.command import PROGRAM, call
from zerotail.deadline import Deadline, wait_until
from zerotail.jars import jars_folder
from zerotail.kafka.admin import live_brokers
from zerotail.lab.broker import _classpath
from zerotail.lab.class_archive import make_class_archive
from zerotail.lab.database import dsn
from zerotail.lab.fault import (
    ask_through_link,
    continue_target,
    cut_link,
    destroy_site,
    heal_link,
    kill_target,
    start_target,
    stop_target,
)
from zerotail.lab.layout import LabSettings, Layout
from zerotail.lab.link import CutMode, LinkControl
from zerotail.lab.process import processes_of
from zerotail.lab.status import observe_lab
from zerotail.lab.up import bring_up, take_down
from zerotail.postgres.connection import answers, connect, one_row

PATIENCE_SECONDS = 60.0


@pytest.mark.servers
def test_a_new_lab_serves_with_east_primary_and_west_its_synchronous_standby(lab: Layout) -> None:
    observed = observe_lab(lab)
    assert observed.well
    roles = {part.part: part.role for part in observed.parts}
    assert roles["east.postgres"] == "primary, commits wait for FIRST 1 (west), 1 following"
    assert roles["west.postgres"] == "standby, follows"
    assert live_brokers(lab.bootstrap("east")) == (1,)
    assert live_brokers(lab.bootstrap("west")) == (1,)


@pytest.mark.servers
def test_kafka_is_reached_from_the_other_site_through_the_link_only(lab: Layout) -> None:
    assert live_brokers(lab.bootstrap("west", seen_from="east")) == (1,)
    assert cut_link(lab, "both", CutMode.RESET).bit
    assert live_brokers(lab.bootstrap("west", seen_from="east")) == ()
    assert live_brokers(lab.bootstrap("west")) == (1,)


@pytest.mark.servers
def test_wal_crosses_through_the_link_and_is_counted(lab: Layout) -> None:
    control = LinkControl(lab.link_control_port)

    def crossed() -> int:
        return control.status(deadline=Deadline.after(10)).way("east->west").delivered_bytes

    before = crossed()
    with connect(dsn(lab.database("east")), Deadline.after(10)) as primary:
        primary.execute("create table if not exists big (body text)")
        primary.execute("insert into big select repeat(md5(random()::text), 30) from generate_series(1, 1000)")
    wait_until("a megabyte has crossed", lambda: crossed() - before > 1_000_000, Deadline.after(30))


@pytest.mark.servers
def test_a_killed_database_comes_back_with_its_data(lab: Layout) -> None:
    with connect(dsn(lab.database("east")), Deadline.after(10)) as primary:
        primary.execute("create table if not exists kept as select 1 as one")
    report = kill_target(lab, "east.postgres")
    assert report.bit
    assert "gone" in report.evidence[0]
    assert not answers(dsn(lab.database("east")))
    assert start_target(lab, "east.postgres").bit
    with connect(dsn(lab.database("east")), Deadline.after(10)) as primary:
        assert one_row(primary, "select one from kept") == (1,)


@pytest.mark.servers
def test_a_killed_broker_is_gone_and_starts_again(lab: Layout) -> None:
    assert kill_target(lab, "west.kafka").bit
    assert live_brokers(lab.bootstrap("west")) == ()
    assert not kill_target(lab, "west.kafka").bit
    assert start_target(lab, "west.kafka.1").bit
    assert live_brokers(lab.bootstrap("west")) == (1,)


@pytest.mark.servers
def test_a_stopped_site_is_silent_and_goes_on(lab: Layout) -> None:
    report = stop_target(lab, "west")
    assert report.bit
    states = {part.part: part.state for part in observe_lab(lab).parts}
    assert states["west.kafka.1"] == states["west.postgres"] == "stopped"
    assert states["east.postgres"] == "running"
    assert not answers(dsn(lab.database("west")))
    assert continue_target(lab, "west").bit
    wait_until("west answers", lambda: answers(dsn(lab.database("west"))), Deadline.after(PATIENCE_SECONDS))


@pytest.mark.servers
@pytest.mark.parametrize("mode", list(CutMode))
@pytest.mark.parametrize("direction", ["both", "east->west", "west->east"])
def test_a_cut_link_lets_no_answer_through_and_heals(lab: Layout, mode: CutMode, direction: str) -> None:
    assert ask_through_link(lab, "west") == "answered"
    report = cut_link(lab, direction, mode)
    assert report.bit
    assert ask_through_link(lab, "west") == ("silence" if mode is CutMode.HANG else "reset")
    assert "answered" in heal_link(lab, direction).evidence[0]


@pytest.mark.servers
def test_a_cut_bites_where_nobody_is_there_to_ask(lab: Layout) -> None:
    kill_target(lab, "east.postgres")
    kill_target(lab, "west.postgres")
    report = cut_link(lab, "east->west", CutMode.HANG)
    assert report.bit
    assert report.evidence[1:] == ("west->east: open", "east->west: cut (hang)")
    assert heal_link(lab, "east->west").evidence == ("west->east: open", "east->west: open")


@pytest.mark.servers
def test_what_runs_cannot_be_started_twice(lab: Layout) -> None:
    report = start_target(lab, "east")
    assert not report.bit
    assert report.evidence == ("everything of it was running",)


@pytest.mark.servers
def test_a_taken_port_is_refused_by_number(lab: Layout) -> None:
    kill_target(lab, "west.kafka")
    port = lab.broker("west.kafka.1").port
    with socket.create_server(("127.0.0.1", port)):
        said = call("lab", "start", "west.kafka", "--dir", lab.folder)
    assert said.code == 3
    assert f"error ZT207: port {port} of west.kafka.1 is taken by another program." in said.err


@pytest.mark.servers
def test_the_outsides_servers_start_on_demand(lab: Layout) -> None:
    kill_target(lab, "outside.kafka")
    kill_target(lab, "outside.postgres")
    assert {part.part: part.state for part in observe_lab(lab).parts}["outside.postgres"] == "on demand"
    assert start_target(lab, "outside.postgres").bit
    with connect(dsn(lab.database("outside")), Deadline.after(10)) as outside:
        assert one_row(outside, "select pg_is_in_recovery()") == (False,)
    assert start_target(lab, "outside.kafka").bit
    assert live_brokers(lab.bootstrap("outside")) == (1,)
    kill_target(lab, "outside.kafka")
    kill_target(lab, "outside.postgres")


@pytest.mark.servers
def test_the_commands_answer_in_json(lab: Layout) -> None:
    assert call("lab", "status", "--dir", lab.folder, "--json").answer("lab-status")["well"]
    fault = call("lab", "stop", "east.kafka", "--dir", lab.folder, "--json")
    assert fault.answer("lab-fault")["bit"]
    assert fault.code == 0
    status = call("lab", "status", "--dir", lab.folder, "--json")
    assert not status.answer("lab-status")["well"]
    assert status.code == 1
    assert call("lab", "continue", "east.kafka", "--dir", lab.folder, "--json").answer("lab-fault")["bit"]
    assert call("lab", "cut", "--dir", lab.folder, "--json").answer("lab-fault")["fault"] == "cut hang"
    assert call("lab", "heal", "--dir", lab.folder, "--json").answer("lab-fault")["bit"]
    delayed = call("lab", "delay", "5", "--dir", lab.folder, "--json").answer("lab-fault")
    assert delayed["evidence"] == ["west->east: delayed by 5 ms", "east->west: delayed by 5 ms"]
    assert call("lab", "throttle", "100000", "--dir", lab.folder).code == 0
    assert "throttled to 100000 bytes/s" in call("lab", "status", "--dir", lab.folder).out
    assert call("lab", "hold", "--dir", lab.folder).code == 0
    assert "held" in call("lab", "status", "--dir", lab.folder).out
    assert call("lab", "release", "--dir", lab.folder).code == 0


@pytest.mark.servers
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("kill", "nowhere"), 2, "ZT201"),
        (("destroy", "link"), 2, "only a site can be destroyed"),
        (("up",), 3, "ZT204"),
        (("promote", "north"), 2, "'north' is not one of"),
    ],
)
def test_a_wrong_call_changes_nothing_and_says_why(
    lab: Layout, arguments: tuple[str, ...], code: int, message: str
) -> None:
    said = call("lab", *arguments, "--dir", lab.folder)
    assert (said.code, said.out) == (code, "")
    assert message in said.err
    assert observe_lab(lab).well


@pytest.mark.servers
def test_a_primary_that_is_promoted_stays_as_it_is(lab: Layout) -> None:
    said = call("lab", "promote", "east", "--dir", lab.folder, "--json")
    assert said.answer("lab-promote")["timeline"] == 1
    roles = {part.part: part.role for part in observe_lab(lab).parts}
    assert roles["east.postgres"].startswith("primary, commits wait for FIRST 1 (west)")


@pytest.mark.servers
def test_a_standby_that_could_not_come_back_is_not_taken_away(lab: Layout) -> None:
    assert cut_link(lab, "both", CutMode.RESET).bit
    said = call("lab", "rejoin", "west", "--dir", lab.folder)
    assert said.code == 4
    assert "ZT301" in said.err
    assert observe_lab(lab).well


@pytest.mark.servers
def test_a_folder_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    assert "ZT210" in call("lab", "up", "--dir", str(tmp_path / "file")).err
    said = call("lab", "up", "--dir", str(tmp_path))
    assert said.code == 3
    assert "holds other files (file)" in said.err
    assert (tmp_path / "file").read_text() == "mine"
    assert call("lab", "up", "--dir", "/proc/nothing/here").code == 3


@pytest.mark.servers
def test_without_java_the_lab_says_what_to_type(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("setpriv", "true"):
        if found := shutil.which(name):
            (programs / name).symlink_to(found)
    environment = {"PATH": str(programs), "JAVA_HOME": ""}
    said = call("lab", "up", "--dir", str(tmp_path / "lab"), environment=environment)
    assert said.code == 3
    assert "ZT104" in said.err
    assert "apt-get install openjdk-17-jre-headless" in said.err
    assert not processes_of(tmp_path / "lab")


@pytest.mark.servers
def test_a_jar_with_a_wrong_digest_is_refused_by_name(tmp_path: Path) -> None:
    here = jars_folder("kafka")
    there = tmp_path / "cache" / "jars" / here.parent.name
    shutil.copytree(here, there / "kafka", copy_function=os.symlink)
    victim = there / "kafka" / "kafka-clients-4.3.1.jar"
    victim.unlink()
    victim.write_bytes(b"something else")
    said = call("lab", "up", "--dir", str(tmp_path / "lab"), environment={"ZEROTAIL_CACHE": str(tmp_path / "cache")})
    assert said.code == 3
    assert "ZT101" in said.err
    assert "kafka-clients-4.3.1.jar has SHA-256" in said.err


@pytest.mark.servers
def test_postgresql_programs_that_are_not_there_are_refused(tmp_path: Path) -> None:
    said = call("lab", "up", "--dir", str(tmp_path / "lab"), "--bindir", str(tmp_path))
    assert said.code == 3
    assert "ZT105" in said.err


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder for a lab of the test's own, with a name that is not easy to pass on, taken down whatever happens."""
    folder = tmp_path / "a lab, schön €"
    yield folder
    take_down(folder)


@pytest.mark.servers
def test_two_labs_live_side_by_side(lab: Layout, folder: Path) -> None:
    other = bring_up(LabSettings(folder))
    assert observe_lab(other).well
    assert kill_target(other, "east").bit
    assert observe_lab(lab).well
    take_down(folder)
    assert processes_of(folder) == []
    assert not folder.exists()
    assert observe_lab(lab).well


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(signal.SIGINT, marks=pytest.mark.servers),
        *(pytest.param(number, marks=pytest.mark.nightly) for number in (signal.SIGTERM, signal.SIGHUP)),
    ],
)
def test_an_interrupted_up_leaves_nothing(folder: Path, number: signal.Signals) -> None:
    with subprocess.Popen([*PROGRAM, "lab", "up", "--dir", str(folder)], stderr=subprocess.PIPE, text=True) as up:
        wait_until("servers are being started", lambda: len(processes_of(folder)) >= 4, Deadline.after(30))
        up.send_signal(number)
        # And once more, by somebody who has no patience, while the servers are being ended.
        wait_until("they are being ended", lambda: len(processes_of(folder)) < 4, Deadline.after(30))
        up.send_signal(number)
        _, complained = up.communicate(timeout=60)
    assert up.returncode == 130
    assert "Traceback" not in complained
    assert processes_of(folder) == []
    assert not folder.exists()


@pytest.mark.nightly
def test_what_a_killed_up_leaves_is_found_by_down(folder: Path) -> None:
    with subprocess.Popen([*PROGRAM, "lab", "up", "--dir", str(folder)], stderr=subprocess.DEVNULL) as up:
        wait_until("servers are being started", lambda: len(processes_of(folder)) >= 4, Deadline.after(30))
        up.kill()
    assert processes_of(folder)
    (folder / "lab.json").write_text("{")  # and its state is of no use
    assert call("lab", "status", "--dir", str(folder)).code == 3
    said = call("lab", "down", "--dir", str(folder), "--json")
    assert said.answer("lab-down")["ended"] >= 1  # what only prepares a server has ended by itself, perhaps
    assert processes_of(folder) == []
    assert not folder.exists()
    assert call("lab", "down", "--dir", str(folder)).code == 0


@pytest.mark.nightly
def test_three_brokers_keep_a_cluster_when_one_is_killed(folder: Path) -> None:
    layout = bring_up(LabSettings(folder, brokers=3))
    assert live_brokers(layout.bootstrap("east")) == (1, 2, 3)
    assert kill_target(layout, "east.kafka.2").bit
    wait_until(
        "two are left", lambda: live_brokers(layout.bootstrap("east")) == (1, 3), Deadline.after(PATIENCE_SECONDS)
    )
    assert start_target(layout, "east.kafka.2").bit
    assert live_brokers(layout.bootstrap("east")) == (1, 2, 3)


@pytest.mark.nightly
def test_a_destroyed_cluster_of_three_begins_anew_and_a_lost_node_joins_its_cluster_again(folder: Path) -> None:
    layout = bring_up(LabSettings(folder, brokers=3))
    assert destroy_site(layout, "east").bit
    assert start_target(layout, "east.kafka").bit
    assert live_brokers(layout.bootstrap("east")) == (1, 2, 3)
    kill_target(layout, "east.kafka.2")
    shutil.rmtree(layout.folder_of("east.kafka.2") / "data")
    assert start_target(layout, "east.kafka.2").bit
    assert live_brokers(layout.bootstrap("east")) == (1, 2, 3)


@pytest.mark.nightly
def test_a_class_archive_is_made_where_scratch_files_are_on_another_file_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = jars_folder("kafka")
    shutil.copytree(here, tmp_path / "jars" / here.parent.name / "kafka")
    monkeypatch.setenv("ZEROTAIL_CACHE", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", "/dev/shm")  # noqa: S108
    _classpath.cache_clear()
    try:
        archive = make_class_archive()
    finally:
        _classpath.cache_clear()
    assert archive is not None
    assert archive.is_file()


@pytest.mark.nightly
def test_a_short_soak_leaves_nothing() -> None:
    program = Path(__file__).parents[3] / "bench" / "soak_lab.py"
    command = [sys.executable, str(program), "--rounds", "2", "--seed", "2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    assert "nothing left running" in done.stdout
