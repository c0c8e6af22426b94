"""Bytes by principal: what the kernel says of connections, and what those that ended have left."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from kwire.server.principal_traffic import (
    OTHERS,
    PRINCIPALS_MAX,
    PrincipalTraffic,
    bytes_moved,
)


class Transport(asyncio.Transport):
    def __init__(self, of: socket.socket | None) -> None:
        super().__init__({} if of is None else {"socket": of})


class Connection:
    def __init__(self, principal: str, stored: int, of: socket.socket | None = None) -> None:
        self.is_authenticated = True
        self.principal = principal
        self.bytes_stored = stored
        self.transport: Any = Transport(of)


def sums(traffic: PrincipalTraffic, *open_ones: Connection) -> dict[str, list[int]]:
    *_, found = traffic.moved(open_ones)
    assert found is not None
    return found


@pytest.mark.skipif(not hasattr(socket, "TCP_INFO"), reason="the kernel does not tell")
def test_the_end_of_a_client_s_stream_is_no_byte() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        accepted, _ = server.accept()
        with accepted:
            client.sendall(b"x" * 50)
            assert len(accepted.recv(50)) == 50
            accepted.sendall(b"y" * 30)
            assert len(client.recv(30)) == 30
            while bytes_moved(Transport(accepted)) != (50, 30):
                pass  # until the client's acknowledgement has come
            client.close()
            assert accepted.recv(1) == b""
            assert bytes_moved(Transport(accepted)) == (50, 30)


def test_a_connection_without_a_socket_has_moved_nothing() -> None:
    assert bytes_moved(Transport(None)) == (0, 0)


def test_what_ended_counts_on() -> None:
    traffic = PrincipalTraffic()
    traffic.closed(Connection("User:a", 10))
    traffic.closed(Connection("User:b", 1))
    found = sums(traffic, Connection("User:a", 5), Connection("User:c", 7))
    assert found == {"User:a": [0, 0, 15], "User:b": [0, 0, 1], "User:c": [0, 0, 7]}
    assert sums(traffic) == {"User:a": [0, 0, 10], "User:b": [0, 0, 1]}


@pytest.mark.skipif(not hasattr(socket, "TCP_INFO"), reason="the kernel does not tell")
def test_what_ends_while_it_is_read_counts() -> None:
    """All of it is read in several turns of the loop."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        accepted, _ = server.accept()
        with client:
            client.sendall(b"x" * 50)
            assert len(accepted.recv(50)) == 50
            traffic = PrincipalTraffic()
            ends = Connection("User:a", 5, accepted)
            stays = Connection("User:b", 1)
            reading = traffic.moved([stays, ends])
            next(reading)
            traffic.closed(ends)
            accepted.close()
            *_, found = reading
    assert found == {"User:a": [50, 0, 5], "User:b": [0, 0, 1]}
    assert sums(traffic) == {"User:a": [50, 0, 5]}


def test_who_has_not_authenticated_yet_is_nobody_s() -> None:
    """Its bytes would be another's later, and a counter would go back."""
    traffic = PrincipalTraffic()
    comes = Connection("User:ANONYMOUS", 5)
    comes.is_authenticated = False
    assert sums(traffic, comes) == {}
    comes.principal, comes.is_authenticated = "User:a", True
    assert sums(traffic, comes) == {"User:a": [0, 0, 5]}
    refused = Connection("User:ANONYMOUS", 7)
    refused.is_authenticated = False
    traffic.closed(refused)
    assert sums(traffic, comes) == {"User:ANONYMOUS": [0, 0, 7], "User:a": [0, 0, 5]}


def test_who_was_one_of_the_others_stays_it() -> None:
    traffic = PrincipalTraffic()
    for at in range(PRINCIPALS_MAX - 1):
        traffic.closed(Connection(f"User:{at}", 1))
    first, second = Connection("User:first", 10), Connection("User:second", 20)
    assert sums(traffic, first, second)[OTHERS] == [0, 0, 20]
    traffic.closed(second)
    found = sums(traffic, first)
    assert (found["User:first"], found[OTHERS]) == ([0, 0, 10], [0, 0, 20])


def test_principals_are_bounded() -> None:
    traffic = PrincipalTraffic()
    for at in range(PRINCIPALS_MAX + 5):
        traffic.closed(Connection(f"User:{at}", 1))
    found = sums(traffic, Connection("User:1", 1), Connection("User:new", 1))
    assert len(found) == PRINCIPALS_MAX + 1
    assert found["User:1"] == [0, 0, 2]
    assert found[OTHERS] == [0, 0, 6]
