"""What the records of `__share_group_state` say about share groups: reading only.

A share coordinator would keep this in memory; share groups are not coordinated here yet, so the
partition's log is read when somebody asks, in steps with the loop's turn in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple, Protocol, TypeAlias

from kwire.coordinator.partitioner import partition_for
from kwire.coordinator.shard_interface import Buffer, Loop
from kwire.log.types import FetchSlices, Isolation
from kwire.pending import Answer, Pending, as_pending
from kwire.protocol import messages as m
from kwire.protocol import uuids
from kwire.protocol.coordinator_records import decode_key, decode_value
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records import iterate_headers
from kwire.protocol.records.reading import iterate_batch

TOPIC = "__share_group_state"
MODULE = "share-coordinator"
STEP_BYTES = 256 * 1024

Key = tuple[str, bytes, int]


class Log(Protocol):
    """A partition's log, to be read."""

    @property
    def log_start_offset(self) -> int: ...

    def read(self, offset: int, bytes_max: int, *, isolation: Isolation) -> Answer[FetchSlices]: ...


class Partition(Protocol):
    """A partition that this broker holds."""

    def leader_log(self) -> Log:
        """Raises KafkaError where this broker does not lead it."""
        ...


class Replicas(Protocol):
    """The partitions that this broker holds."""

    def partition(self, topic: str, index: int) -> Partition | None: ...


class ShareState(NamedTuple):
    """Where a share group is in a partition: -1 for what is not known."""

    start_offset: int
    leader_epoch: int
    delivery_complete_count: int


UNKNOWN = ShareState(-1, 0, -1)
Found: TypeAlias = Pending[dict[Key, ShareState | KafkaError]]


class ShareStates:
    """Looks up states in the partitions of `__share_group_state` that this node leads.

    `partition_count` is that of the topic, None while there is none.
    """

    def __init__(self, partition_count: int | None, replicas: Replicas, loop: Loop) -> None:
        self._partition_count = partition_count
        self._replicas = replicas
        self._loop = loop

    def of(self, keys: Iterable[Key]) -> Pending[dict[Key, ShareState | KafkaError]]:
        """The state of each (group, topic id, partition), or why there is none to be had."""
        count = self._partition_count
        found: dict[Key, ShareState | KafkaError] = {}
        wanted: dict[int, list[Key]] = {}
        for key in keys:
            if count is None:
                found[key] = UNKNOWN
                continue
            group, topic_id, partition = key
            name = f"{group}:{uuids.to_text(topic_id)}:{partition}"
            wanted.setdefault(partition_for(name, count), []).append(key)
        result: Found = Pending()
        self._next(wanted, found, result)
        return result

    def _next(
        self,
        wanted: dict[int, list[Key]],
        found: dict[Key, ShareState | KafkaError],
        result: Found,
    ) -> None:
        if not wanted:
            result.complete(found)
            return
        index = next(iter(wanted))
        keys = wanted.pop(index)
        try:
            hosted = self._replicas.partition(TOPIC, index)
            if hosted is None:
                raise KafkaError(ErrorCode.NOT_COORDINATOR)
            log = hosted.leader_log()
        except KafkaError:
            found.update((key, KafkaError(ErrorCode.NOT_COORDINATOR)) for key in keys)
            self._next(wanted, found, result)
            return
        found.update((key, UNKNOWN) for key in keys)
        states = dict.fromkeys(keys, UNKNOWN)

        def done() -> None:
            found.update(states)
            self._next(wanted, found, result)

        self._scan(log, log.log_start_offset, states, done, result)

    def _scan(
        self,
        log: Log,
        offset: int,
        states: dict[Key, ShareState],
        done: Callable[[], None],
        result: Found,
    ) -> None:
        """Read on from `offset`, then give the loop its turn."""
        try:
            outcome = log.read(offset, STEP_BYTES, isolation=Isolation.HIGH_WATERMARK)
        except KafkaError as error:
            result.fail(error)
            return

        def read(finished: Pending[FetchSlices]) -> None:
            error = finished.error()
            if error is not None:
                result.fail(error)
                return
            slices = finished.result()
            try:
                for buffer in slices.buffers:
                    _replay(buffer, states)
            except KafkaError as failure:
                result.fail(failure)
                return
            if not slices.buffers:
                done()
                return
            self._loop.call_soon(partial(self._scan, log, slices.next_offset, states, done, result))

        pending = as_pending(outcome)
        pending.add_done_callback(read)


def _replay(buffer: Buffer, states: dict[Key, ShareState]) -> None:
    """Take over what the batches of a buffer say about those that are asked for."""
    for position, header in iterate_headers(buffer):
        if header.is_control:
            continue
        for records in iterate_batch(buffer, position, header):
            for record in records:
                if record.key is None:
                    continue
                message = decode_key(MODULE, record.key)
                key = (message.group_id, bytes(message.topic_id), message.partition)
                if key not in states:
                    continue
                if record.value is None:
                    states[key] = UNKNOWN
                    continue
                value = decode_value(MODULE, _type_of(record.key), record.value)
                states[key] = _after(states[key], value)


def _type_of(key: bytes) -> int:
    return int.from_bytes(key[:2], "big")


def _after(state: ShareState, value: m.ShareSnapshotValue | m.ShareUpdateValue) -> ShareState:
    """A snapshot or an update; an update may leave the start offset (-1) as it is."""
    start_offset = value.start_offset if value.start_offset != -1 else state.start_offset
    return ShareState(start_offset, value.leader_epoch, value.delivery_complete_count)
