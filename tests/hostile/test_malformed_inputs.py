"""The corpus of malformed inputs against a live broker: what each does to its own connection, and
that it does nothing to others, to the log or to memory.

Source: own work; the verdicts were measured on Apache Kafka 4.4.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator

import pytest

from kwire.protocol import messages as m
from kwire.testing.cluster import Broker
from tests.support.malformed import ANSWERED, AWAITED, CLOSED, CORPUS
from tests.support.memory import is_memory_its_own
from tests.support.wire import WireClient, fetch_values, produce_values

TIMEOUT_S = 30.0
QUIET_S = 0.3
GROWTH_KB_MAX = 4 * 1024
GROWTH_BOMB_KB_MAX = 200 * 1024  # decompressed up to a bound, then given back


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        with WireClient(broker.bootstrap) as client:
            client.create_topic("corpus")
            client.create_topic("bystander")
            produce_values(client, "bystander", 0, [b"before"])
            request = m.FindCoordinatorRequest(key_type=0, coordinator_keys=["corpus"])
            while client.call(request, 4).coordinators[0].error_code:
                pass
        yield broker


@pytest.fixture(scope="module")
def bystander(broker: Broker) -> Iterator[WireClient]:
    """A client that was there before and is never to notice anything."""
    with WireClient(broker.bootstrap) as client:
        yield client


def _connect(broker: Broker) -> socket.socket:
    return socket.create_connection((broker.host, broker.port), TIMEOUT_S)


def _send(sender: socket.socket, data: bytes) -> None:
    try:
        sender.sendall(data)
    except ConnectionError:
        pass  # closed before all of it was sent


def _receive(receiver: socket.socket) -> bytes:
    try:
        return receiver.recv(65536)
    except ConnectionError:
        return b""


def _check(broker: Broker, data: bytes, verdict: str) -> None:
    with _connect(broker) as connection:
        _send(connection, data)
        if verdict == AWAITED:
            assert not select.select([connection], [], [], QUIET_S)[0]
            return
        answer = _receive(connection)
        if verdict == CLOSED:
            assert answer == b""
            return
        size = int.from_bytes(answer[:4], "big")
        assert len(answer) == 4 + size
        assert int.from_bytes(answer[4:8], "big") == 7, "the correlation id of the corpus"
        connection.sendall(_API_VERSIONS)
        assert _receive(connection), "the connection serves on"


_API_VERSIONS = b"\0\0\0\x0a" + b"\0\x12\0\0" + b"\0\0\0\x08" + b"\xff\xff"


@pytest.mark.parametrize("name", CORPUS)
def test_malformed_input(broker: Broker, bystander: WireClient, name: str) -> None:
    data, verdict = CORPUS[name]
    _check(broker, data, verdict)  # the first time builds codecs and loads handlers
    before_kb, before_log = broker.rss_kb(), len(broker.log_text())
    _check(broker, data, verdict)
    assert fetch_values(bystander, "bystander", 0) == [b"before"]
    growth_kb = broker.rss_kb() - before_kb
    growth_kb_max = GROWTH_BOMB_KB_MAX if "300 MB" in name else GROWTH_KB_MAX
    assert growth_kb < growth_kb_max or not is_memory_its_own()
    logged = broker.log_text()[before_log:].splitlines()
    assert len(logged) <= 1, logged
    assert not [line for line in logged if "Traceback" in line or " ERROR " in line]


def test_the_corpus_is_large_enough_and_stored_nothing(broker: Broker) -> None:
    assert len(CORPUS) >= 40
    assert {verdict for _, verdict in CORPUS.values()} == {CLOSED, ANSWERED, AWAITED}
    with WireClient(broker.bootstrap) as client:
        assert fetch_values(client, "corpus", 0) == []
        assert "corpus-wide" not in client.topics()


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.9])
def test_every_input_cut_off_and_hung_up(
    broker: Broker, bystander: WireClient, keep: float
) -> None:
    """The client goes away in the middle: nothing is executed, nothing is logged as an error."""
    before_log = len(broker.log_text())
    for data, _ in CORPUS.values():
        with _connect(broker) as connection:
            _send(connection, data[: int(len(data) * keep)])
    assert fetch_values(bystander, "bystander", 0) == [b"before"]
    logged = broker.log_text()[before_log:]
    assert "Traceback" not in logged
    assert " ERROR " not in logged
