"""How a client's address is written, wherever it is told: as Java writes it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.connections import ConnectionUnderTest, RecordingTransport


@pytest.mark.parametrize(
    ("peer", "host"),
    [
        (("192.0.2.7", 1), "/192.0.2.7"),
        (("::1", 1, 0, 0), "/0:0:0:0:0:0:0:1"),
        (("2001:db8::1:0", 1, 0, 0), "/2001:db8:0:0:0:0:1:0"),
        (("::ffff:192.0.2.7", 1, 0, 0), "/192.0.2.7"),
        (("fe80::1%eth0", 1, 0, 2), "/fe80:0:0:0:0:0:0:1%eth0"),
    ],
)
def test_the_address_of_a_connection_is_written_as_java_does(
    peer: tuple[Any, ...], host: str
) -> None:
    under_test = ConnectionUnderTest(lambda context, request: None)
    under_test.connection.connection_made(RecordingTransport(peer))  # type: ignore[arg-type]
    assert under_test.connection.client_host == host
