"""A topic of a test's broker, in the words of a test; its methods block."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kwire.client.admin import Admin
from kwire.client.cluster import Cluster
from kwire.client.fetching import Fetcher, Partition
from kwire.client.offsets import EARLIEST, Offsets
from kwire.client.producer import Outgoing, Producer
from kwire.testing.arguments import INT64_MAX, whole
from kwire.testing.blocking import BlockingClient
from kwire.testing.brokers.runner import Setting, setting_texts
from kwire.testing.records import Expected, Record, Text, assert_records

POLL_MS = 100
INT32_MAX = (1 << 31) - 1


class Topic:
    """The topic of this name, whether it exists or not. What asks the broker raises ClientError."""

    def __init__(self, name: str, client: BlockingClient) -> None:
        self.name = name
        self._client = client

    def __repr__(self) -> str:
        return f"Topic({self.name!r})"

    def create(
        self,
        *,
        partitions: int = -1,
        replication: int = -1,
        config: Mapping[str, Setting] | None = None,
    ) -> Topic:
        """Create it and wait until it can be used; -1 is the broker's default."""

        async def create(cluster: Cluster) -> None:
            await Admin(cluster).topics.create(
                self.name,
                partitions=partitions,
                replication=replication,
                configs=setting_texts(config or {}),
            )

        self._client.run(create)
        return self

    def delete(self) -> None:
        """Delete it."""

        async def delete(cluster: Cluster) -> None:
            await Admin(cluster).topics.delete(self.name)

        self._client.run(delete)

    @property
    def partitions(self) -> int:
        """How many there are."""

        async def count(cluster: Cluster) -> int:
            cluster.forget_topic(self.name)
            return len((await cluster.topic(self.name)).partitions)

        return self._client.run(count)

    def send(
        self,
        value: Text,
        *,
        key: Text = None,
        headers: Mapping[str, Text] | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> Record:
        """Append one record, acknowledged by all replicas in sync; creates the topic if need be."""
        record = _outgoing(value, key, headers, partition, timestamp_ms)
        return self._send([record])[0]

    def send_all(self, values: Iterable[Text | tuple[Text, Text]]) -> list[Record]:
        """Append records: values, or (key, value)."""
        records = []
        for one in values:
            if isinstance(one, tuple) and len(one) != 2:
                raise TypeError(f"{one!r}: a record is a value, or (key, value)")
            key, value = one if isinstance(one, tuple) else (None, one)
            records.append(_outgoing(value, key))
        return self._send(records)

    def _send(self, records: Sequence[Outgoing]) -> list[Record]:
        async def send(cluster: Cluster) -> list[Record]:
            producer = Producer(cluster, create_topics=True)
            now_ms = cluster.clock.wall_ms()
            timed = [
                one if one.timestamp is not None else one._replace(timestamp=now_ms)
                for one in records
            ]
            kept = await producer.send(self.name, timed)
            return [
                Record(
                    self.name,
                    where.partition,
                    where.offset,
                    one.timestamp or 0,
                    one.key,
                    one.value,
                    tuple(one.headers),
                )
                for one, where in zip(timed, kept, strict=True)
            ]

        return self._client.run(send)

    def records(
        self, *, partition: int | None = None, committed_only: bool = False
    ) -> list[Record]:
        """All records there are now, by partition and offset; of a topic that does not exist, none.

        `committed_only`: not those of transactions that are open or were aborted.
        """

        async def read(cluster: Cluster) -> list[Record]:
            return await records_of(cluster, self.name, partition, committed_only)

        return self._client.run(read)

    def values(self, *, partition: int | None = None) -> list[bytes | None]:
        """The values of `records()`."""
        return [record.value for record in self.records(partition=partition)]

    def assert_records(
        self,
        *expected: Expected,
        in_order: bool | None = None,
        committed_only: bool = False,
    ) -> None:
        """See `kwire.testing.assert_records`; by default in order where there is one partition."""
        __tracebackhide__ = True  # pytest shows the line of the test
        found = self.records(committed_only=committed_only)
        ordered = len({record.partition for record in found}) <= 1 if in_order is None else in_order
        assert_records(found, expected, in_order=ordered)

    def end_offsets(self) -> dict[int, int]:
        """By partition, the offset behind the last record (the high watermark)."""

        async def ends(cluster: Cluster) -> dict[int, int]:
            return await Offsets(cluster).of_topic(self.name)

        return self._client.run(ends)


async def records_of(
    cluster: Cluster, name: str, partition: int | None, committed_only: bool
) -> list[Record]:
    cluster.forget_topic(name)
    known = {topic.name for topic in (await cluster.metadata(None)).topics}
    if name not in known:
        return []
    offsets = Offsets(cluster)
    indexes = [one.partition_index for one in (await cluster.topic(name)).partitions]
    names = [(name, index) for index in sorted(indexes) if partition in (None, index)]
    ends = await offsets.at(names, committed=committed_only)
    positions = await offsets.at(names, EARLIEST)
    fetcher = Fetcher(cluster, committed_only=committed_only, wait_ms=POLL_MS)
    found: dict[Partition, list[Record]] = {one: [] for one in names}
    while left := {one: at for one, at in positions.items() if at < ends[one]}:
        for one, fetched in (await fetcher.fetch(left)).items():
            positions[one] = fetched.next_offset
            found[one] += [
                Record(
                    name,
                    one[1],
                    each.offset,
                    each.timestamp,
                    each.key,
                    each.value,
                    tuple(each.headers),
                )
                for each in fetched.records
                if each.offset < ends[one]
            ]
    return [record for one in names for record in found[one]]


def _outgoing(
    value: Text,
    key: Text = None,
    headers: Mapping[str, Text] | None = None,
    partition: int | None = None,
    timestamp_ms: int | None = None,
) -> Outgoing:
    if partition is not None:
        whole("partition", partition, 0, INT32_MAX)
    if timestamp_ms is not None:
        whole("timestamp_ms", timestamp_ms, -INT64_MAX, INT64_MAX)
    if not isinstance(headers or {}, Mapping):
        raise TypeError(f"headers={headers!r}: accepted is a dictionary of headers")
    for name in headers or {}:
        if not isinstance(name, str):
            raise TypeError(f"header {name!r}: its name is a text")
    return Outgoing(
        _bytes(key),
        _bytes(value),
        tuple((name, _bytes(content)) for name, content in (headers or {}).items()),
        timestamp_ms,
        partition,
    )


def _bytes(text: Text) -> bytes | None:
    if text is not None and not isinstance(text, bytes | str):
        raise TypeError(f"{text!r}: keys, values and headers are str, bytes or None")
    return text.encode() if isinstance(text, str) else text


async def names_of_topics(cluster: Cluster) -> list[str]:
    """Those of all topics but internal ones."""
    found = await Admin(cluster).topics.listed()
    return [one.name or "" for one in found if not one.is_internal]
