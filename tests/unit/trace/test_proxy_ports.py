"""Each broker behind a proxy has a port that leads to it and to no other one."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from kwire.trace.proxy.ports import Ports, Target

FIRST, SECOND = ("127.0.0.1", 1), ("127.0.0.1", 2)


class Listening:
    """What is served where."""

    def __init__(self) -> None:
        self.sockets: list[socket.socket] = []
        self.targets: dict[int, Target] = {}

    def __call__(self, opened: socket.socket, target: Target) -> None:
        self.sockets.append(opened)
        self.targets[opened.getsockname()[1]] = target


@pytest.fixture
def listening() -> Iterator[Listening]:
    listening = Listening()
    yield listening
    for opened in listening.sockets:
        opened.close()


def test_a_broker_is_not_reached_by_a_port_that_leads_elsewhere_without_it(
    listening: Listening,
) -> None:
    """A client that went to a dead leader by the bootstrap port was answered by another broker, in
    the leader's name, and never heard that the leader had changed."""
    ports = Ports("127.0.0.1", 0, listening)
    _, bootstrap = ports.open_first(Target((FIRST, SECOND)))
    assert ports.of(*FIRST) != bootstrap
    assert listening.targets == {
        bootstrap: Target((FIRST, SECOND)),
        ports.of(*FIRST): Target((FIRST,)),
        ports.of(*SECOND): Target((SECOND,)),
    }


def test_one_broker_alone_has_one_port(listening: Listening) -> None:
    ports = Ports("127.0.0.1", 0, listening)
    _, bootstrap = ports.open_first(Target((FIRST,)))
    assert ports.of(*FIRST) == bootstrap
    assert listening.targets == {bootstrap: Target((FIRST,))}
