"""A connection that has to authenticate, without a network."""

from __future__ import annotations

from functools import partial

import pytest

from kwire.clock import SystemClock
from kwire.security.sasl.plain import Passwords, PlainServer
from kwire.security.sasl.server import SaslSettings
from kwire.server import sasl_connection
from tests.support import connections
from tests.support.connections import ConnectionUnderTest, Waiting, metadata_request
from tests.support.leftovers import Leftovers

PLAIN = partial(PlainServer, Passwords({"alice": "secret"}))


class Sasl(sasl_connection.SaslConnection):
    """With the settings that a listener would give."""

    def __init__(self, setup: sasl_connection.ConnectionSetup[connections.BrokerConnection]):
        setup.sasl = lambda: SaslSettings({"PLAIN": PLAIN}, {}, failure_delay_ms=0)
        setup.parts.clock = SystemClock()
        super().__init__(setup)


def test_of_a_connection_that_has_ended_nothing_is_left_for_the_collector(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "BrokerConnection", Sasl)

    def refused() -> None:
        under_test = ConnectionUnderTest(Waiting())
        under_test.receive(metadata_request(1))
        assert under_test.transport.closed
        assert under_test.started == []
        under_test.connection.connection_lost(None)
        # What the test's own parts hold of each other.
        under_test.steps._listeners.clear()
        under_test.listener.setup.opened = under_test.listener.setup.closed = lambda one: None

    refused()
    with Leftovers() as leftovers:
        refused()
        assert not leftovers.look()
