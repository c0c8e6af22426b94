"""Requests of every API, a few bytes changed, against a live broker: each is answered or closes its
own connection; nothing is logged as an error, and other clients keep working.
"""

from __future__ import annotations

import random
import select
import socket
import struct
from collections.abc import Iterator

import pytest

from kwire.protocol import messages
from kwire.protocol.api_keys import API_KEYS
from kwire.testing.cluster import Broker
from tests.support.effort import seeds
from tests.support.memory import is_memory_its_own
from tests.support.mutating import mutated
from tests.support.vectors import message_of, rows
from tests.support.wire import WireClient, fetch_values, produce_values

REQUESTS_A_SEED = 600
ANSWER_S = 0.01  # what takes longer, such as a join, is hung up on
RSS_KB_MAX = 300_000  # every codec of every version compiled, and topics that were asked for
API_AND_VERSION_BYTES = 4  # they stay


@pytest.fixture(scope="module")
def requests() -> list[bytes]:
    """Well-formed frames without their size, of every API and version that a broker serves."""
    found = []
    for row in rows("wire"):
        if not row["message"].endswith("Request"):
            continue
        cls = messages.by_name(row["message"])
        info = API_KEYS.get(cls.API_KEY)
        version = row["version"]
        if info is None or "broker" not in info.listeners or not info.min <= version <= info.max:
            continue
        tags = b"\0" if cls.is_flexible(version) else b""
        header = struct.pack(">hhih", cls.API_KEY, version, 7, 1) + b"x" + tags
        found.append(header + bytes(message_of(row).encode(version)))
    served = {key for key, info in API_KEYS.items() if "broker" in info.listeners}
    assert {struct.unpack_from(">h", frame)[0] for frame in found} == served
    return found


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def _send_one(broker: Broker, data: bytes) -> None:
    with socket.create_connection((broker.host, broker.port), 30) as connection:
        connection.sendall(struct.pack(">i", len(data)) + data)
        select.select([connection], [], [], ANSWER_S)


@pytest.mark.parametrize("seed", seeds(3))
def test_mutated_requests(broker: Broker, requests: list[bytes], seed: int) -> None:
    draw = random.Random(seed)
    with WireClient(broker.bootstrap) as bystander:
        topic = f"bystander-{seed}"
        bystander.create_topic(topic)
        for _ in range(REQUESTS_A_SEED):
            _send_one(broker, mutated(draw, draw.choice(requests), API_AND_VERSION_BYTES))
        produce_values(bystander, topic, 0, [b"still here"])
        assert fetch_values(bystander, topic, 0) == [b"still here"]
    log = broker.log_text()
    assert "Traceback" not in log, log[log.index("Traceback") - 300 :][:3000]
    assert " ERROR " not in log, log[log.index(" ERROR ") - 100 :][:1000]
    if is_memory_its_own():
        assert broker.rss_kb() < RSS_KB_MAX
