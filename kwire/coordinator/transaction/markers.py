"""Markers: how every partition of a transaction learns how it ended.

A prepared transaction has one marker per partition to be written. They are sent to the
partitions' leaders, those of one turn of the loop and one leader in one request, and written
without one where this broker leads; what fails in a way that may pass is sent again to whoever
leads then; a partition that no longer exists needs none. When all are written `on_complete` is
called; when this coordinator has been replaced (TRANSACTION_COORDINATOR_FENCED,
INVALID_PRODUCER_EPOCH) nothing more is sent and `on_fenced` is. Writing a marker twice is harmless
before the transaction is complete, so a coordinator that starts anew sends all of them again.
Behind that it ends the producer's next transaction, which has the same epoch up to transaction
version 1: so a marker that is not answered yet is not sent again with others that have failed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Protocol, TypeAlias

from kwire.coordinator.shard_interface import Loop
from kwire.coordinator.transaction.metadata import Prepared
from kwire.pending import Pending, gather
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode

logger = logging.getLogger(__name__)

RETRY_MS = 20
RETRY_MAX_MS = 1000

#: Errors after which the marker is as good as written: nothing of the transaction is left there.
_SETTLED = (ErrorCode.NONE, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT)
#: Errors that say that another coordinator has taken over.
_FENCED = (ErrorCode.TRANSACTION_COORDINATOR_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)

Partition = tuple[str, int]


class Leaders(Protocol):
    """What the metadata says of a partition's leader."""

    def leader_of(self, topic: str, partition: int) -> int | None:
        """The leader's node id, None while there is none."""
        ...

    def exists(self, topic: str, partition: int) -> bool: ...


class MarkersToWrite(NamedTuple):
    """The markers of one transaction for partitions of one leader."""

    prepared: Prepared
    coordinator_epoch: int
    partitions: list[Partition]


class LocalPartitions(Protocol):
    """The partitions that this broker leads itself."""

    @property
    def node_id(self) -> int: ...

    def write(self, markers: list[MarkersToWrite]) -> list[list[Pending[int]]]:
        """For each of `markers` an error code for each partition, in order."""
        ...


class _Job:
    """The markers of one transaction that are not written yet."""

    __slots__ = ("coordinator_epoch", "done", "is_retrying", "prepared", "remaining", "retry_ms")

    def __init__(self, prepared: Prepared, coordinator_epoch: int) -> None:
        self.prepared = prepared
        self.coordinator_epoch = coordinator_epoch
        # Whether its marker is on its way: asked for, and not answered.
        self.remaining: dict[Partition, bool] = dict.fromkeys(prepared.partitions, False)
        self.is_retrying = False
        self.retry_ms = RETRY_MS
        self.done = False


# Markers to partitions of one leader.
Sending: TypeAlias = list[tuple[_Job, list[Partition]]]


class MarkerSender:
    """Sends the markers of prepared transactions. `send(node_id, request)` reaches a broker,
    `local` writes to what this one leads."""

    def __init__(
        self,
        *,
        loop: Loop,
        leaders: Leaders,
        send: Callable[[int, m.WriteTxnMarkersRequest], Pending[m.WriteTxnMarkersResponse]],
        on_complete: Callable[[Prepared], None],
        on_fenced: Callable[[Prepared], None],
        local: LocalPartitions | None = None,
    ) -> None:
        self._loop = loop
        self._local = local
        self._leaders = leaders
        self._send = send
        self._on_complete = on_complete
        self._on_fenced = on_fenced
        self._outgoing: dict[int, Sending] = {}
        self._flush_due = False
        self._jobs: dict[str, _Job] = {}
        self._closed = False

    def start(self, prepared: Prepared, coordinator_epoch: int) -> None:
        """Send the markers of `prepared` in the name of the coordinator of that epoch."""
        job = _Job(prepared, coordinator_epoch)
        previous = self._jobs.get(prepared.transactional_id)
        if previous is not None:
            previous.done = True
        self._jobs[prepared.transactional_id] = job
        if job.remaining:
            self._dispatch(job)
        else:
            self._finish(job)

    def close(self) -> None:
        """Forget everything; the next coordinator will send it."""
        self._closed = True
        self._jobs.clear()
        self._outgoing.clear()

    def forget(self, transactional_id: str) -> None:
        """This coordinator no longer leads the transactional id."""
        job = self._jobs.pop(transactional_id, None)
        if job is not None:
            job.done = True

    def _dispatch(self, job: _Job) -> None:
        """Send what is not on its way."""
        by_leader: dict[int, list[Partition]] = {}
        leaderless = False
        waiting = [where for where, is_sent in job.remaining.items() if not is_sent]
        for topic, partition in waiting:
            if not self._leaders.exists(topic, partition):
                job.remaining.pop((topic, partition), None)
                continue
            leader = self._leaders.leader_of(topic, partition)
            if leader is None:
                leaderless = True
            else:
                job.remaining[topic, partition] = True
                by_leader.setdefault(leader, []).append((topic, partition))
        for leader, led in by_leader.items():
            self._outgoing.setdefault(leader, []).append((job, led))
        if by_leader and not self._flush_due:
            self._flush_due = True
            self._loop.call_soon(self._turn_ended)
        if leaderless:
            self._retry_later(job)
        elif not job.remaining:
            self._finish(job)

    def _turn_ended(self) -> None:
        self._flush_due = False
        self.flush()

    def flush(self) -> None:
        """Send what has come together, before the end of the turn if nothing more will come."""
        outgoing, self._outgoing = self._outgoing, {}
        for leader, batch in outgoing.items():
            if self._local is not None and leader == self._local.node_id:
                self._write_local(self._local, batch)
                continue
            request = m.WriteTxnMarkersRequest(markers=[_marker(job, led) for job, led in batch])
            pending = self._send(leader, request)
            pending.add_done_callback(partial(self._answered, sent=batch))

    def _write_local(
        self, local: LocalPartitions, batch: list[tuple[_Job, list[Partition]]]
    ) -> None:
        markers = [MarkersToWrite(job.prepared, job.coordinator_epoch, led) for job, led in batch]
        for (job, led), writes in zip(batch, local.write(markers)):
            gather(writes).add_done_callback(partial(self._written, job=job, partitions=led))

    def _written(
        self, done: Pending[list[Pending[int]]], job: _Job, partitions: list[Partition]
    ) -> None:
        codes = (write.result() for write in done.result())
        self._settle(job, list(zip(partitions, codes)))

    def _answered(
        self, done: Pending[m.WriteTxnMarkersResponse], sent: list[tuple[_Job, list[Partition]]]
    ) -> None:
        if self._closed:
            return
        error = done.error()
        if error is not None:
            logger.debug("markers were not taken: %s", error)
            for job, partitions in sent:
                self._settle(job, [(x, int(ErrorCode.NETWORK_EXCEPTION)) for x in partitions])
            return
        markers = {marker.producer_id: marker.topics for marker in done.result().markers}
        for job, partitions in sent:
            answered = {
                (topic.name, x.partition_index): x.error_code
                for topic in markers.get(job.prepared.producer_id, ())
                for x in topic.partitions
            }
            # A whole request that fails has an answer without any of them.
            unknown = int(ErrorCode.UNKNOWN_SERVER_ERROR)
            self._settle(job, [(x, answered.get(x, unknown)) for x in partitions])

    def _settle(self, job: _Job, codes: list[tuple[Partition, int]]) -> None:
        """What became of markers of `job`: an error code for each partition that was asked."""
        if job.done or self._closed:
            return
        retry = False
        for partition, code in codes:
            if code in _FENCED:
                job.done = True
                self._jobs.pop(job.prepared.transactional_id, None)
                self._on_fenced(job.prepared)
                return
            if code in _SETTLED:
                job.remaining.pop(partition, None)
            elif partition in job.remaining:
                job.remaining[partition] = False
                retry = True
        if retry:
            self._retry_later(job)
        elif not job.remaining:
            self._finish(job)

    def _retry_later(self, job: _Job) -> None:
        if job.done or job.is_retrying:
            return
        job.is_retrying = True
        delay_ms, job.retry_ms = job.retry_ms, min(job.retry_ms * 2, RETRY_MAX_MS)
        self._loop.call_at(self._loop.time() + delay_ms / 1000, lambda: self._retry(job))

    def _retry(self, job: _Job) -> None:
        job.is_retrying = False
        if not job.done and not self._closed:
            self._dispatch(job)

    def _finish(self, job: _Job) -> None:
        if not job.done:
            job.done = True
            self._jobs.pop(job.prepared.transactional_id, None)
            self._on_complete(job.prepared)


def _marker(job: _Job, partitions: list[Partition]) -> m.WriteTxnMarkersRequest.WritableTxnMarker:
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    prepared = job.prepared
    return m.WriteTxnMarkersRequest.WritableTxnMarker(
        producer_id=prepared.producer_id,
        producer_epoch=prepared.producer_epoch,
        transaction_result=prepared.commit,
        topics=[
            m.WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=topic, partition_indexes=indexes)
            for topic, indexes in topics.items()
        ],
        coordinator_epoch=job.coordinator_epoch,
        transaction_version=prepared.transaction_version,
    )
