"""Sending records from Spark's tasks: in order, once each, accounted for.

`sender` makes a function for `mapInArrow`. Its rows (SEND_COLUMNS, ordered by offset in each source
partition) are produced by one idempotent producer a task, and what comes out are runs: records
that lie next to each other in both the source and the target (RUN_SCHEMA). librdkafka's gapless
guarantee makes the producer stop for good where a record fails, so that what has arrived in
a target partition is always a beginning of what was sent to it: that is what a restart relies on.
"""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from kwire.protocol.records.partitioner import partition_of
from kwire.spark.usage import UsageError

SEND_COLUMNS = (
    "topic",
    "partition",
    "offset",
    "timestampMs",
    "key",
    "value",
    "headers",
    "targetTopic",
)
RUN_SCHEMA = (
    "sourceTopic string, sourcePartition int, targetTopic string, targetPartition int, "
    "sourceFirst bigint, sourceLast bigint, targetFirst bigint, records bigint, bytes bigint"
)
QUEUE_FULL_WAIT_S = 0.5
FLUSH_S = 10.0
POLL_EVERY = 500
BATCH_BYTES = 1 << 20
MESSAGE_BYTES_MAX = 128 << 20
AROUND_BYTES = 1024
TOO_LARGE = "Message size too large"
# So many digits always fit into 64 bits.
OFFSET_DIGITS_MAX = 18
# Source topic, source partition, target partition.
Place = tuple[str, int, int]
T = TypeVar("T")


class MirrorPath(NamedTuple):
    """A header with the clusters that a record has come through, and where it goes next."""

    header: str
    source: str
    target: str


@dataclasses.dataclass(frozen=True)
class SendSettings:
    """How a task sends. `partitions`: of each target topic, for murmur2; None keeps the source's.

    `headers` and `source_header` are added to every record; the latter holds the source's offset,
    with topic and partition when `full_source`. `done`: the last source offset that is there
    already, by place. With `path` a record that has come through the target is not sent; where it
    came from there directly its `source_header` says where it lies. Rates (0: none) are a task's.
    """

    config: Mapping[str, str]
    partitions: Mapping[str, int] | None
    headers: tuple[tuple[str, bytes], ...]
    source_header: str
    full_source: bool
    done: Mapping[Place, int]
    records_per_s: float = 0.0
    bytes_per_s: float = 0.0
    path: MirrorPath | None = None
    timeout_s: float = 300.0
    limits: Mapping[str, int] = dataclasses.field(default_factory=dict)
    """`max.message.bytes` of target topics, where they are known."""


class Large(NamedTuple):
    """A record of so many bytes with its headers, by its source, and where it goes."""

    topic: str
    partition: int
    target: str
    number: int
    offset: int
    size_bytes: int


class SendError(Exception):
    """A record did not arrive; what was sent before it to its partition has."""


def needed_bytes(record_bytes: int) -> int:
    """The `max.message.bytes` with which a record of so many bytes (key, value and headers) fits,
    with the headers that jobs add and what a batch has around its records."""
    return record_bytes + AROUND_BYTES


class RateLimit:
    """Lets a task go on as fast as allowed; `sleep` and `clock` are time's."""

    def __init__(
        self,
        records_per_s: float,
        bytes_per_s: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._rates = (records_per_s, bytes_per_s)
        self._clock, self._sleep = clock, sleep
        self._started_s = clock()
        self._done = [0.0, 0.0]

    def wait(self, records: int, size_bytes: int) -> None:
        """Count what was sent and sleep until it is due."""
        self._done[0] += records
        self._done[1] += size_bytes
        due_s = max(done / rate for done, rate in zip(self._done, self._rates, strict=True) if rate)
        ahead_s = self._started_s + due_s - self._clock()
        if ahead_s > 0:
            self._sleep(ahead_s)

    @property
    def is_set(self) -> bool:
        return any(self._rates)


class Runs:
    """Delivered records joined to runs; one open run a place."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, int, str, int], list[int]] = {}
        self.closed: list[tuple[Any, ...]] = []

    def add(
        self, place: tuple[str, int, str, int], source: int, target: int, size_bytes: int
    ) -> None:
        """A record of the source offset lies at the target offset."""
        run = self._open.get(place)
        if run is not None and source == run[1] + 1 and target == run[2] + run[3]:
            run[1] = source
            run[3] += 1
            run[4] += size_bytes
            return
        if run is not None:
            self.closed.append((*place, *run))
        self._open[place] = [source, source, target, 1, size_bytes]

    def take(self, everything: bool = False) -> list[tuple[Any, ...]]:
        """The runs that are complete; with `everything` the open ones too."""
        found, self.closed = self.closed, []
        if everything:
            found += [(*place, *run) for place, run in self._open.items()]
            self._open = {}
        return found


def producer_config(
    client: Mapping[str, str], timeout_s: float, batch_bytes: int = BATCH_BYTES
) -> dict[str, Any]:
    """What a task's producer is made with: the client's settings between ours.

    A batch of more than one record has at most `batch_bytes`.
    """
    config: dict[str, Any] = {
        "linger.ms": "20",
        "batch.size": str(batch_bytes),
        "queue.buffering.max.kbytes": str(64 << 10),
        "compression.type": "lz4",
        "message.max.bytes": str(MESSAGE_BYTES_MAX),
        **client,
        "enable.idempotence": "true",
        "enable.gapless.guarantee": "true",
        "message.timeout.ms": str(int(timeout_s * 1000)),
        "log_level": 0,
    }
    config.pop("delivery.timeout.ms", None)
    return config


def check_producer(client: Mapping[str, str]) -> None:
    """UsageError when no producer can be made of a client's settings; asks no broker."""
    from confluent_kafka import KafkaException, Producer

    try:
        Producer({**producer_config(client, 300.0), "error_cb": lambda _: None})
    except (KafkaException, ValueError) as error:
        reason = error.args[0].str() if isinstance(error, KafkaException) else str(error)
        raise UsageError(f"client settings of a producer: {reason}") from None


class Sending:
    """The producer of one task."""

    def __init__(self, settings: SendSettings) -> None:
        from confluent_kafka import Producer

        self.settings = settings
        self.runs = Runs()
        self.failure: str | None = None
        # Records that only fit when they are compressed, and that have not arrived yet.
        self._large: list[Large] = []
        self._limit = RateLimit(settings.records_per_s, settings.bytes_per_s)
        batch_bytes = max(1, min([BATCH_BYTES, *settings.limits.values()]))
        config = producer_config(settings.config, settings.timeout_s, batch_bytes)
        # Its word on a fatal error goes to stderr at any `log_level`, if no logger takes it.
        silent = logging.Logger("librdkafka")
        silent.addHandler(logging.NullHandler())
        self._producer = Producer({**config, "error_cb": lambda error: None}, logger=silent)

    def _heard(self, call: Callable[[], T]) -> T:
        """What a call of the producer returns, having told of the deliveries until then. SendError
        where a record has not arrived.

        confluent-kafka raises a fatal error there, and with it SystemErrors out of callbacks.
        """
        from confluent_kafka import KafkaError, KafkaException

        try:
            found = call()
        except (KafkaError, KafkaException, SystemError) as error:
            cause = error.__cause__ if isinstance(error, SystemError) else error
            told: Any = cause.args[0] if isinstance(cause, KafkaException) else cause
            raise SendError(self._failure_text(str(told.str()) if told else str(error))) from None
        if self.failure:
            raise SendError(self.failure)
        return found

    def _failure_text(self, text: str, record: Large | None = None) -> str:
        """What stopped the producer, with the record where one is too large: `record`, else the
        first that has not arrived in the partition that the text names."""
        if TOO_LARGE in text and record is None:
            places = [
                found for found in self._large if f" {found.target} [{found.number}] " in text
            ]
            record = next(iter(places or self._large), None)
        return text if record is None else self._too_large(record)

    def _too_large(self, place: Large) -> str:
        name = f"the record of {place.topic}-{place.partition} at offset {place.offset}"
        name += f" has {place.size_bytes:,} bytes"
        if place.size_bytes > MESSAGE_BYTES_MAX:
            return f"{name}, a producer takes {MESSAGE_BYTES_MAX:,} at most"
        limit = self.settings.limits.get(place.target)
        takes = "takes less" if limit is None else f"takes {limit:,}"
        wanted = needed_bytes(place.size_bytes)
        return (
            f"{name}, topic {place.target} {takes} (max.message.bytes): "
            f"set it to at least {wanted:,} and run this again"
        )

    def send(self, columns: list[list[Any]]) -> None:
        """Produce the rows of a batch (lists by SEND_COLUMNS)."""
        settings = self.settings
        size_bytes = 0
        for at, row in enumerate(zip(*columns, strict=True)):
            topic, partition, offset, _, key, value, _, target = row
            number = partition
            if settings.partitions is not None:
                count = settings.partitions[target]
                number = partition % count if key is None else partition_of(key, count)
            if offset <= settings.done.get((topic, partition, number), -1):
                continue
            if settings.path is not None and self._came_from_there(row):
                continue
            size = (len(key) if key else 0) + (len(value) if value else 0)
            size_bytes += size
            self._produce(row, number, size)
            if at % POLL_EVERY == 0:
                self._heard(lambda: self._producer.poll(0))
                if self._limit.is_set:
                    self._limit.wait(POLL_EVERY, size_bytes)
                    size_bytes = 0

    def _came_from_there(self, row: tuple[Any, ...]) -> bool:
        """Whether a record has been in the target; notes where it lies if it is from there."""
        topic, partition, offset, _, _, _, headers, target = row
        path, settings = self.settings.path, self.settings
        if not headers or path is None:
            return False
        found = {entry["key"]: entry["value"] for entry in headers}
        hops = (found.get(path.header) or b"").decode("utf-8", "replace").split(",")
        if path.target not in hops:
            return False
        place = (found.get(settings.source_header) or b"").decode("utf-8", "replace")
        if hops[-1] == path.target and place.isdecimal() and len(place) <= OFFSET_DIGITS_MAX:
            self.runs.add((topic, partition, target, partition), offset, int(place), 0)
        return True

    def _produce(self, row: tuple[Any, ...], number: int, size: int) -> None:
        from confluent_kafka import KafkaException

        topic, partition, offset, timestamp_ms, key, value, headers, target = row
        place = (topic, partition, target, number)

        def delivered(error: Any, message: Any) -> None:
            if error is None:
                if large is not None:
                    self._large.remove(large)
                self.runs.add(place, offset, message.offset(), size)
            elif not self.failure:
                text = f"{target}-{number}: {error.str()}"
                self.failure = self._failure_text(text, large if TOO_LARGE in text else None)

        added = self._headers(topic, partition, offset, headers)
        whole = size + sum(len(name) + len(content or b"") for name, content in added)
        large = None
        if whole > self.settings.limits.get(target, BATCH_BYTES):
            large = Large(*place, offset, whole)
            self._large.append(large)
        arguments: dict[str, Any] = {
            "partition": number,
            "headers": added,
            "on_delivery": delivered,
        }
        if timestamp_ms:  # librdkafka takes 0 for now
            arguments["timestamp"] = timestamp_ms
        while True:
            try:
                self._producer.produce(target, value, key, **arguments)
                return
            except BufferError:
                self._heard(lambda: self._producer.poll(QUEUE_FULL_WAIT_S))
            except KafkaException as error:
                self._heard(lambda: self._producer.poll(0))
                text = str(error.args[0].str())
                record = large if text.endswith(TOO_LARGE) else None
                raise SendError(self._failure_text(text, record)) from None

    def _headers(
        self, topic: str, partition: int, offset: int, own: list[Any] | None
    ) -> list[tuple[str, bytes | None]]:
        settings = self.settings
        found = [(entry["key"], entry["value"]) for entry in own or ()]
        if settings.path is not None:
            name = settings.path.header
            hops = next((value for key, value in found if key == name and value), b"")
            found = [pair for pair in found if pair[0] not in (name, settings.source_header)]
            found.append((name, (hops + b"," if hops else b"") + settings.path.source.encode()))
        found += settings.headers
        source = f"{topic}/{partition}/{offset}" if settings.full_source else str(offset)
        found.append((settings.source_header, source.encode()))
        return found

    def finish(self) -> None:
        """Wait until every record has arrived; raises SendError when one does not."""
        deadline_s = time.monotonic() + self.settings.timeout_s + FLUSH_S
        while self._heard(lambda: self._producer.flush(FLUSH_S)) > 0:
            if time.monotonic() > deadline_s:
                raise SendError(f"not delivered in {self.settings.timeout_s:.0f} s")


def sender(settings: SendSettings) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """A function for `mapInArrow`: frames with SEND_COLUMNS in, runs (RUN_SCHEMA) out."""

    def send_batches(batches: Iterator[Any]) -> Iterator[Any]:
        sending: Sending | None = None
        for batch in batches:
            if batch.num_rows == 0:
                continue
            if sending is None:
                sending = Sending(settings)
            sending.send([batch.column(name).to_pylist() for name in SEND_COLUMNS])
            runs = sending.runs.take()
            if runs:
                yield runs_table(runs)
        if sending is not None:
            sending.finish()
            yield runs_table(sending.runs.take(everything=True))

    return send_batches


def runs_table(runs: list[tuple[Any, ...]]) -> Any:
    """An Arrow batch of RUN_SCHEMA."""
    import pyarrow as pa

    text, int32, int64 = pa.string(), pa.int32(), pa.int64()
    kinds = [text, int32, text, int32, int64, int64, int64, int64, int64]
    names = [field.strip().split(" ")[0] for field in RUN_SCHEMA.split(",")]
    columns = zip(*runs, strict=True) if runs else ([] for _ in kinds)
    arrays = [pa.array(list(values), kind) for values, kind in zip(columns, kinds, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=names)
