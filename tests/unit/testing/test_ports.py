"""Free ports are not those that the system gives to outgoing connections."""

from __future__ import annotations

import errno
import pathlib
import socket
from collections.abc import Callable

import pytest

from kwire.testing.cluster import ports


@pytest.fixture
def outgoing(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    told = tmp_path / "ip_local_port_range"
    monkeypatch.setattr(ports, "_OUTGOING", told)
    return told


def test_ports_of_outgoing_connections_are_left_out(outgoing: pathlib.Path) -> None:
    outgoing.write_text("20000\t60999\n")
    assert ports.free_ports(0) == []
    found = ports.free_ports(20)
    assert len(set(found)) == 20
    assert all(10_000 <= port < 20_000 for port in found)
    assert 10_000 <= ports.free_adjacent_ports() < 19_999


@pytest.mark.parametrize("told", ["", "few words", "10100 60999", None])
def test_the_system_chooses_where_it_does_not_tell_or_leaves_few(
    told: str | None, outgoing: pathlib.Path
) -> None:
    if told is not None:
        outgoing.write_text(told)
    for port in (*ports.free_ports(3), ports.free_adjacent_ports()):
        with socket.socket() as one:
            one.bind((ports.HOST, port))


class Refusing(socket.socket):
    """Of a machine that has no port left, or none for us."""

    bound = 0

    def bind(self, address: object) -> None:
        Refusing.bound += 1
        assert Refusing.bound < 1000, "the search does not end"
        raise OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address")


@pytest.mark.parametrize("search", [lambda: ports.free_ports(2), ports.free_adjacent_ports])
def test_a_machine_without_a_port_is_an_error_and_no_search_without_end(
    search: Callable[[], object], outgoing: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outgoing.write_text("32768 60999")
    monkeypatch.setattr(Refusing, "bound", 0)
    monkeypatch.setattr(ports.socket, "socket", Refusing)
    with pytest.raises(OSError, match="Cannot assign requested address"):
        search()
