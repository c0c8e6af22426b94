"""What `kwire.client.TransactionalProducer` asks of a cluster, with either transaction version."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kwire.client.admin import Admin
from kwire.client.cluster import Cluster
from kwire.client.connection import Connection
from kwire.client.fetching import Fetcher
from kwire.client.offsets import Offsets, Position
from kwire.client.producer import Outgoing
from kwire.client.settings import ConnectionSettings
from kwire.client.transactional_producer import Fenced, TransactionalProducer
from kwire.protocol import messages as m
from kwire.protocol.api_keys import API_KEYS
from tests.support.wire import WireClient

FEATURE, SAFE_DOWNGRADE = "transaction.version", 2
OF_TRANSACTIONS = (
    "InitProducerId",
    "AddPartitionsToTxn",
    "AddOffsetsToTxn",
    "Produce",
    "TxnOffsetCommit",
    "EndTxn",
)
IMPLICIT = {"InitProducerId": 5, "Produce": 12, "TxnOffsetCommit": 5, "EndTxn": 5}
"""The requests, and their versions, with transaction version 2."""
EXPLICIT = {
    "InitProducerId": 5,
    "AddPartitionsToTxn": 3,
    "AddOffsetsToTxn": 3,
    "Produce": 11,
    "TxnOffsetCommit": 4,
    "EndTxn": 4,
}


@contextmanager
def sent_requests() -> Iterator[dict[str, int]]:
    """The version of each kind of request of transactions that is sent meanwhile."""
    found: dict[str, int] = {}
    write = Connection._write

    def noted(self: Connection, request: Any, version: int) -> int:
        name = API_KEYS[type(request).API_KEY].name
        if name in OF_TRANSACTIONS:
            found[name] = version
        return write(self, request, version)

    Connection._write = noted  # type: ignore[method-assign]
    try:
        yield found
    finally:
        Connection._write = write  # type: ignore[method-assign]


def finalize(bootstrap: str, level: int) -> None:
    """Lower the transaction version of a cluster."""
    kind = m.UpdateFeaturesRequest
    update = kind.FeatureUpdateKey(
        feature=FEATURE, max_version_level=level, upgrade_type=SAFE_DOWNGRADE
    )
    with WireClient(bootstrap) as client:
        answer = client.call(kind(timeout_ms=10_000, feature_updates=[update]), 1)
    assert answer.error_code == 0, answer
    assert not any(result.error_code for result in answer.results), answer


async def visible(cluster: Cluster, topic: str) -> list[bytes]:
    """The committed values of partition 0."""
    fetcher = Fetcher(cluster, committed_only=True, wait_ms=0)
    end = (await Offsets(cluster).at([(topic, 0)], committed=True))[topic, 0]
    values: list[bytes] = []
    at = 0
    while at < end:
        found = (await fetcher.fetch({(topic, 0): at}))[topic, 0]
        values += [bytes(record.value or b"") for record in found.records]
        at = found.next_offset
    return values


async def transactions(bootstrap: str, name: str, expected: dict[str, int]) -> list[int]:
    """Transactions that are committed, aborted and fenced, by these requests. The epochs of them,
    one each."""
    epochs: list[int] = []
    async with Cluster(ConnectionSettings(bootstrap)) as cluster:
        await Admin(cluster).topics.create(name, partitions=1)
        producer = TransactionalProducer(cluster, name)
        with sent_requests() as sent:
            await producer.open()
            for turn in range(5):
                epochs.append(producer.identity.epoch)
                await producer.send(name, 0, [Outgoing(value=b"%d" % turn)])
                await producer.send(name, 0, [Outgoing(value=b"and more")])
                await producer.commit_offsets(name, {(name, 0): Position(turn, f"at {turn}")})
                if turn % 2:
                    await producer.abort()
                else:
                    await producer.commit()
        assert sent == expected
        late = TransactionalProducer(cluster, name)
        await late.open()  # waits until everything before has ended
        assert (await visible(cluster, name))[::2] == [b"0", b"2", b"4"]
        assert await Offsets(cluster).positions(name, stable=True) == {
            (name, 0): Position(4, "at 4")
        }
        for refused in (
            producer.send(name, 0, [Outgoing(value=b"late")]),
            producer.commit_offsets(name, {(name, 0): Position(9)}),
        ):
            try:
                await refused
            except Fenced:
                continue
            raise AssertionError("a producer that was replaced is not fenced")
        await producer.abort()
        await late.send(name, 0, [Outgoing(value=b"last")])
        await late.commit()
        await late.open()
        assert (await visible(cluster, name))[-1] == b"last"
    return epochs
