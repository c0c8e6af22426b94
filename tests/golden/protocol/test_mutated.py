"""Damaged messages: what Kafka 4.4's readers accept, kwire accepts, and reads the same from it.

4,000 mutations of the golden vectors and some made by hand, each given to Kafka's own generated
reader: whether it accepted them, how many bytes it left, and what it writes from what it read
(absent where Kafka's writer refuses).
"""

from __future__ import annotations

import pytest

from kwire.protocol import messages
from kwire.protocol.errors import MalformedError
from tests.support.vectors import rows

GROUPS = 40


@pytest.mark.parametrize("group", range(GROUPS))
def test_kafka_and_kwire_accept_the_same(group: int) -> None:
    for row in rows("mutated")[group::GROUPS]:
        cls, data = messages.by_name(row["message"]), bytes.fromhex(row["hex"])
        if not row["accepted"]:
            with pytest.raises(MalformedError):
                cls.decode_from(data, 0, row["version"])
            continue
        message, end = cls.decode_from(data, 0, row["version"])
        assert len(data) - end == row["rest_bytes"], row
        if "encoded" in row:
            assert message.encode(row["version"]).hex() == row["encoded"], row


def test_the_mutations_are_worth_something() -> None:
    accepted = sum(row["accepted"] for row in rows("mutated")) / len(rows("mutated"))
    assert 0.1 < accepted < 0.9, "what Kafka takes and what it refuses are both among them"
