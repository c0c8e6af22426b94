"""`kwire.client.TransactionalProducer` on a live Apache Kafka 4.4 (needs a JVM): the requests of
both transaction versions, what they leave, and the epochs that it gives."""

from __future__ import annotations

import asyncio
import pathlib

from tests.support.client_transactions import EXPLICIT, IMPLICIT, finalize, transactions
from tests.support.kafka import running_kafka

SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}


def test_transactions_of_both_versions(tmp_path: pathlib.Path) -> None:
    with running_kafka(tmp_path, SETTINGS) as bootstrap:
        epochs = asyncio.run(transactions(bootstrap, "second", IMPLICIT))
        assert epochs == list(range(epochs[0], epochs[0] + 5))
        finalize(bootstrap, 1)
        epochs = asyncio.run(transactions(bootstrap, "first", EXPLICIT))
        assert len(set(epochs)) == 1
