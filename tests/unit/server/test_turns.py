"""Requests of which a turn of the loop starts only so many: a thousand heartbeats that arrived in
one turn kept everybody else waiting for 57 ms."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.server.connection import BrokerConnection
from kwire.server.connection_setup import STARTS_A_TURN
from kwire.server.dispatch import Route
from kwire.server.request_steps import RequestSteps
from tests.support.connections import (
    ConnectionUnderTest,
    FakeDispatcher,
    FakeListener,
    RecordingTransport,
    TurningLoop,
    list_offsets_request,
    list_offsets_response,
    metadata_request,
    metadata_response,
)

METADATA = 3


class TurningDispatcher(FakeDispatcher):
    """Metadata takes turns."""

    def route_local(self, api_key: int) -> Route:
        route = super().route_local(api_key)
        route.takes_turns = api_key == METADATA
        return route


class Clients:
    """Connections of one listener."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
        monkeypatch.setattr("tests.support.connections.FakeLoop", TurningLoop)
        monkeypatch.setattr("tests.support.connections.FakeDispatcher", TurningDispatcher)
        self.listener = FakeListener(self.answer, RequestSteps())
        self.connections = [self.connect() for _ in range(count)]

    @staticmethod
    def answer(context: Any, request: Any) -> Any:
        return metadata_response() if context.api_key == METADATA else list_offsets_response()

    def connect(self) -> ConnectionUnderTest:
        client = ConnectionUnderTest.__new__(ConnectionUnderTest)
        client.listener = self.listener
        client.transport = RecordingTransport()
        client.connection = BrokerConnection(self.listener.setup)
        client.connection.connection_made(client.transport)  # type: ignore[arg-type]
        return client

    @property
    def started(self) -> list[int]:
        return self.listener.dispatcher.started

    def turn(self) -> None:
        loop = self.listener.loop
        assert isinstance(loop, TurningLoop)
        loop.turn()


def test_those_beyond_the_number_of_a_turn_start_in_the_next_ones_in_their_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    count = 2 * STARTS_A_TURN + 1
    clients = Clients(monkeypatch, count)
    for i, client in enumerate(clients.connections):
        client.receive(metadata_request(i))
    for turns in (1, 2, 3):
        assert clients.started == list(range(min(count, turns * STARTS_A_TURN)))
        clients.turn()
    assert [client.answered() for client in clients.connections] == [[i] for i in range(count)]
    clients.turn()
    clients.connections[0].receive(metadata_request(count))  # a turn of its own
    assert clients.connections[0].answered() == [0, count]


def test_other_requests_do_not_wait_but_those_of_the_same_connection_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clients = Clients(monkeypatch, STARTS_A_TURN + 2)
    *early, late, other = clients.connections
    for client in early:
        client.receive(metadata_request(1))
    late.receive(metadata_request(1) + list_offsets_request(2) + metadata_request(3))
    other.receive(list_offsets_request(1))
    assert late.answered() == []
    assert other.answered() == [1]
    for _ in range(3):
        clients.turn()
    assert late.answered() == [1, 2, 3]


def test_one_that_is_gone_by_then_starts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    clients = Clients(monkeypatch, STARTS_A_TURN + 2)
    for i, client in enumerate(clients.connections):
        client.receive(metadata_request(i))
    gone, stays = clients.connections[-2:]
    gone.connection.connection_lost(None)
    clients.turn()
    assert clients.started == [*range(STARTS_A_TURN), STARTS_A_TURN + 1]
    assert stays.answered() == [STARTS_A_TURN + 1]
