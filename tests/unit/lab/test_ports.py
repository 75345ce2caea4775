"""Ports are free, below the kernel's own range, and promised to one lab only."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from zerotail.errors import Refused
from zerotail.lab import ports
from zerotail.lab.ports import port_is_free, release_ports, reserve_ports

pytestmark = pytest.mark.fast


@pytest.fixture(autouse=True)
def _own_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))


def lab(tmp_path: Path, name: str) -> Path:
    folder = tmp_path / name
    folder.mkdir()
    return folder


def test_ports_are_below_the_range_of_outgoing_connections(tmp_path: Path) -> None:
    chosen = reserve_ports(50, lab(tmp_path, "a"))
    assert len(set(chosen)) == 50
    assert all(10240 <= port < 32768 for port in chosen)


def test_two_labs_never_get_the_same_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "NEXT_PORT", ports.FIRST_PORT + 200)
    first = reserve_ports(60, lab(tmp_path, "a"))
    second = reserve_ports(60, lab(tmp_path, "b"))
    assert not set(first) & set(second)


def test_a_port_in_use_is_not_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", reserve_ports(1, lab(tmp_path, "a"))[0]))
        server.listen()
        taken = server.getsockname()[1]
        release_ports(tmp_path / "a")
        assert not port_is_free(taken)
        monkeypatch.setattr(ports, "FIRST_PORT", taken)
        monkeypatch.setattr(ports, "NEXT_PORT", taken + 20)
        assert taken not in reserve_ports(3, lab(tmp_path, "b"))


def test_what_a_vanished_lab_had_is_free_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "NEXT_PORT", ports.FIRST_PORT + 100)
    gone = lab(tmp_path, "a")
    reserve_ports(60, gone)
    gone.rmdir()
    assert len(reserve_ports(60, lab(tmp_path, "b"))) == 60


def test_too_few_free_ports_are_refused_with_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "NEXT_PORT", ports.FIRST_PORT + 5)
    with pytest.raises(Refused, match="of 6 ports are free"):
        reserve_ports(6, lab(tmp_path, "a"))


def test_a_half_written_registry_is_begun_anew(tmp_path: Path) -> None:
    folder = lab(tmp_path, "a")
    reserve_ports(2, folder)
    registry = next(tmp_path.glob("zerotail-*/ports.json"))
    registry.write_text(registry.read_text()[:-4])
    assert len(reserve_ports(2, folder)) == 2
