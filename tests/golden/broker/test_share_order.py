"""The partitions of a share fetch's answer are gone through in the order of Apache Kafka 4.4.

`tests/golden/data/share_order.tsv` is what `compat_tests/peers/ShareOrder.java` says with Kafka's
classes; `tests/differential/test_share_order_live.py` asks anew.
"""

from __future__ import annotations

import pathlib
import random

from kwire.api.shared.share_order import in_answer_order
from kwire.testing.cluster import Broker
from tests.support.share.dialogue import PROPERTIES
from tests.support.share.turns import turns

DATA = pathlib.Path(__file__).parent.parent / "data" / "share_order.tsv"


def test_partitions_of_an_answer_stand_in_kafkas_order() -> None:
    """Up to four of them stand as in a hash table, more as in a tree of hashes."""
    counts = set()
    for line in DATA.read_text().splitlines():
        topics, named = line.split("\t")
        ids = {name: bytes.fromhex(text) for name, text in (x.split("=") for x in topics.split())}
        pairs = [x.split(":") for x in named.split()]
        order = [(ids[name], int(index)) for name, index in pairs]
        mixed = random.Random(line).sample(order, len(order))
        assert in_answer_order(mixed, {x: name for name, x in ids.items()}) == order
        counts.add(len(order))
    assert {2, 4, 5, 12, 13, 40} <= counts


def test_a_session_of_many_partitions_takes_them_in_turn_as_kafka_does() -> None:
    """Which comes next depends on how the answers before named those that gave records."""
    with Broker(options=PROPERTIES) as broker:
        came, expected = turns(broker.bootstrap, "turns")
    assert came == expected
