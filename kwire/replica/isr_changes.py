"""AlterPartition: the ISRs that a leader wants, on their way to the controller (KIP-497, KIP-903).

One request is under way at a time, with everything that is wanted by then. A request that fails as
a whole is sent again, since the controller may have executed it; an answer for a partition ends the
matter, or leaves the ISR pending until the metadata tells what became of it:

    accepted                                      the new ISR holds
    INELIGIBLE_REPLICA, OPERATION_NOT_ATTEMPTED   nothing has changed: the old ISR holds
    INVALID_UPDATE_VERSION, FENCED_LEADER_EPOCH,
    NEW_LEADER_ELECTED, UNKNOWN_TOPIC...          newer metadata is on its way
    anything else                                 asked again
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple

from kwire.log.scheduling import Timer
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.errors import ErrorCode
from kwire.replica.follower_session import TopicIdPartition
from kwire.replica.partition import Partition
from kwire.replica.state import AlterIsr, IsrAnswered

logger = logging.getLogger(__name__)

RETRY_MS = 50
RECOVERED = 0
_REFUSED = (ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED)
_OVERTAKEN = (
    ErrorCode.INVALID_UPDATE_VERSION,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.NEW_LEADER_ELECTED,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.INVALID_REQUEST,
)


class _Change(NamedTuple):
    """What a partition wants; `is_smaller`: than the ISR that holds until then."""

    partition: Partition
    wanted: AlterIsr
    is_smaller: bool

    def is_current(self) -> bool:
        """Whether the partition still waits for this very change."""
        state, wanted = self.partition.state, self.wanted
        return (
            state.is_leader
            and state.leader_epoch == wanted.leader_epoch
            and state.partition_epoch == wanted.partition_epoch
            and state.pending_isr == wanted.isr
        )


class IsrChangeSender:
    """See the module. `ask(api_key, request)` reaches the active controller, `broker_epoch()` is
    the epoch of this broker's registration, `call_later(delay_ms, callback)` a timer."""

    def __init__(
        self,
        broker_id: int,
        broker_epoch: Callable[[], int],
        ask: Callable[[int, m.AlterPartitionRequest], Pending[m.AlterPartitionResponse]],
        call_later: Callable[[float, Callable[[], None]], Timer],
    ) -> None:
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._ask = ask
        self._call_later = call_later
        self._wanted: dict[TopicIdPartition, _Change] = {}
        self._sent: dict[TopicIdPartition, _Change] | None = None
        self._scheduled = False
        self._closed = False
        self.shrinks = self.expands = self.failed = 0
        """How often the controller has made an ISR smaller or larger for us, or has not."""

    def submit(self, partition: Partition, wanted: AlterIsr) -> None:
        """Ask for this ISR; the partition hears what came of it (`IsrAnswered`)."""
        is_smaller = len(wanted.isr) < len(partition.state.isr)
        key = partition.topic_id, partition.index
        self._wanted[key] = _Change(partition, wanted, is_smaller)
        self._schedule(0)

    def close(self) -> None:
        self._closed = True
        self._wanted.clear()

    def _schedule(self, delay_ms: float) -> None:
        if not self._scheduled and self._sent is None and not self._closed:
            self._scheduled = True
            self._call_later(delay_ms, self._send)

    def _send(self) -> None:
        self._scheduled = False
        if self._closed or self._sent is not None:
            return
        self._sent = {key: change for key, change in self._wanted.items() if change.is_current()}
        self._wanted = {}
        if not self._sent:
            self._sent = None
            return
        pending = self._ask(ApiKey.ALTER_PARTITION, self._request(self._sent))
        pending.add_done_callback(self._answered)

    def _request(self, wanted: dict[TopicIdPartition, _Change]) -> m.AlterPartitionRequest:
        message = m.AlterPartitionRequest
        topics: dict[bytes, list[m.AlterPartitionRequest.PartitionData]] = {}
        for (topic_id, index), (partition, change, _) in wanted.items():
            topics.setdefault(topic_id, []).append(
                message.PartitionData(
                    partition_index=index,
                    leader_epoch=change.leader_epoch,
                    new_isr_with_epochs=[
                        message.BrokerState(
                            broker_id=replica, broker_epoch=self._epoch_of(partition, replica)
                        )
                        for replica in change.isr
                    ],
                    leader_recovery_state=RECOVERED,
                    partition_epoch=change.partition_epoch,
                )
            )
        return message(
            broker_id=self._broker_id,
            broker_epoch=self._broker_epoch(),
            topics=[
                message.TopicData(topic_id=topic_id, partitions=partitions)
                for topic_id, partitions in topics.items()
            ],
        )

    def _epoch_of(self, partition: Partition, replica: int) -> int:
        """The broker epoch with which a replica has fetched; -1 is not checked."""
        if replica == self._broker_id:
            return self._broker_epoch()
        progress = partition.state.followers.get(replica)
        return -1 if progress is None else progress.replica_epoch

    def _answered(self, done: Pending[m.AlterPartitionResponse]) -> None:
        sent, self._sent = self._sent or {}, None
        if self._closed:
            return
        error = done.error()
        code = 0 if error is not None else done.result().error_code
        if error is not None or code:
            logger.debug("AlterPartition failed: %s", error or ErrorCode(code).name)
            self._again(sent)
            return
        for topic in done.result().topics:
            for answer in topic.partitions:
                entry = sent.pop((topic.topic_id, answer.partition_index), None)
                if entry is not None:
                    self._settle((topic.topic_id, answer.partition_index), entry, answer)
        if sent:
            self._again(sent)
        elif self._wanted:
            self._schedule(0)

    def _again(self, entries: dict[TopicIdPartition, _Change]) -> None:
        for key, entry in entries.items():
            self._wanted.setdefault(key, entry)
        self._schedule(RETRY_MS)

    def _settle(
        self,
        key: TopicIdPartition,
        entry: _Change,
        answer: m.AlterPartitionResponse.PartitionData,
    ) -> None:
        partition, change, is_smaller = entry
        code = answer.error_code
        if code == ErrorCode.NONE:  # also where the metadata has told it before the answer did
            self.shrinks += is_smaller
            self.expands += not is_smaller
        if not entry.is_current():
            return
        if code == ErrorCode.NONE:
            partition.disturb()
            partition.step(
                IsrAnswered(
                    True, tuple(answer.isr), answer.partition_epoch, asked_at=change.partition_epoch
                )
            )
        elif code in _REFUSED:
            self.failed += 1
            partition.step(IsrAnswered(False, asked_at=change.partition_epoch))
        elif code not in _OVERTAKEN:
            self._wanted.setdefault(key, entry)
            self._schedule(RETRY_MS)
