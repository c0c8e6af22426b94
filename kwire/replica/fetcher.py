"""One follower fetching from one leader broker: all partitions that it leads and we replicate.

One Fetch is under way at a time. Its answer is appended, then the next one goes out, so that a
fetch offset always says what is written here. The leader checks the epochs: a partition whose last
epoch ends elsewhere in the leader's log is answered with the diverging epoch, and is cut back to
where both agree (KIP-595); one whose offset the leader does not have looks up where its log begins
and ends. Errors of a partition make it wait for `backoff_ms`, those of the connection all of them.

    a partition     is asked for    becomes
    FETCHING        yes             DELAYED after an error, RESOLVING when out of range
    DELAYED         not until then  FETCHING
    RESOLVING       no              FETCHING once the leader's positions are known
    FAILED          no              nothing before new metadata (fenced, or its log has failed)

Source: KIP-101, KIP-279, KIP-595; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar

from kwire.log.partition.partition_log import PartitionLog
from kwire.log.scheduling import Timer
from kwire.pending import Pending, gather
from kwire.protocol import messages as m
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.structs import Message, Request
from kwire.replica.follower_session import (
    Asked,
    FollowerSession,
    TopicIdPartition,
    whole_batches_bytes,
)
from kwire.replica.partition import Partition
from kwire.replica.settled_partitions import SettledPartitions

logger = logging.getLogger(__name__)

LATEST, EARLIEST = -1, -2
INTERRUPT_AFTER_MS, INTERRUPT_AFTER_MS_MAX = 5, 500
"""A fetch that waits is ended so long after the change that brought new partitions was followed.
The end of a change of very many is not waited for longer than the second of them, which is how long
a fetch waits by default and Kafka's new partitions with it."""
SHORT_MS = 100  # until a log that takes nothing for now is looked at again
THROTTLED_MS = 100

Response = TypeVar("Response", bound=Message)


class FetchSettings(NamedTuple):
    """Kafka's `replica.fetch.*`; sizes in bytes, times in milliseconds. Without `settles` every
    partition is looked at before each fetch."""

    wait_max_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 1 << 20
    response_max_bytes: int = 10 << 20
    backoff_ms: int = 1000
    timeout_ms: int = 30_000
    settles: bool = True


class FetcherHost(Protocol):
    """What a fetcher needs around it."""

    settings: FetchSettings
    broker_id: int

    def broker_epoch(self) -> int: ...

    def now_ms(self) -> int: ...

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Timer: ...

    def send(
        self, node_id: int, api_key: int, request: Request[Response], timeout_ms: int
    ) -> Pending[Response]: ...

    def reconnect(self, node_id: int) -> None: ...

    def fetched(self, partition: Partition, size_bytes: int) -> None: ...

    def is_held_back(self, partition: Partition) -> bool: ...


class FetchState(enum.Enum):
    """See the module."""

    FETCHING = "fetching"
    RESOLVING = "resolving"
    FAILED = "failed"


class Followed:
    """One partition as its fetcher sees it."""

    __slots__ = ("delayed_until_ms", "lag", "lags", "leader_epoch", "partition", "state")

    def __init__(self, partition: Partition, leader_epoch: int) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.delayed_until_ms = 0
        self.lag = 0  # how far the last answer was ahead of us, in records
        self.lags = True  # until an answer brings us to the leader's high watermark
        self.state = FetchState.FETCHING

    def is_as(self, asked: Asked, now_ms: int) -> bool:
        """Whether the same is to be asked for once more, until something moves."""
        log = self.partition.log
        return (
            log is not None
            and self.state is FetchState.FETCHING
            and self.delayed_until_ms <= now_ms
            and not self.lags
            and log.error is None
            and log.next_offset == log.log_end_offset
            and asked.fetch_offset == log.log_end_offset
            and asked.leader_epoch == self.leader_epoch
            and asked.last_fetched_epoch == log.leader_epochs.latest
            and asked.log_start_offset == log.log_start_offset
        )


class LeaderFetcher:
    """See the module. `add` and `remove` as leaderships move, `changed` behind them; `close` at the
    end."""

    def __init__(self, host: FetcherHost, leader_id: int) -> None:
        self._host = host
        self.leader_id = leader_id
        self.followed: dict[TopicIdPartition, Followed] = {}
        self._session = FollowerSession()
        self._asked: dict[TopicIdPartition, tuple[Followed, Asked]] = {}
        self._pending: Pending[m.FetchResponse] | None = None
        self._sent_ms = 0
        self._is_appending = False
        self._interruption: Timer | None = None
        self._interrupted_ms = 0  # when that is due
        self._settled = SettledPartitions()
        """What is looked at before the next fetch, and what is not."""
        self._failures = 0
        self._timer: Timer | None = None
        self._closed = False

    def add(self, partition: Partition, leader_epoch: int) -> None:
        """Fetch this partition from now on, at this epoch."""
        followed = Followed(partition, leader_epoch)
        log = partition.log
        assert log is not None
        if log.leader_epochs.latest < 0 and partition.state.high_watermark < log.log_end_offset:
            # Nothing tells where the leader's log parts from ours: only what is committed stays.
            try:
                partition.truncate_to(partition.state.high_watermark)
            except KafkaError as error:
                logger.error("replica %s: %s", partition, error)
                followed.state = FetchState.FAILED
                if log.is_short:
                    self._host.call_later(
                        self._host.settings.backoff_ms, lambda: self._add_again(followed)
                    )
        key = partition.topic_id, partition.index
        self.followed[key] = followed
        self._settled.stir(key, partition)
        if self._pending is None and not self._is_appending:
            self._wake_in(0)
        elif self._pending is not None and self._interruption is None:
            self._interrupt_in(INTERRUPT_AFTER_MS_MAX)

    def _add_again(self, followed: Followed) -> None:
        partition = followed.partition
        if self.followed.get((partition.topic_id, partition.index)) is followed:
            self.add(partition, followed.leader_epoch)

    def remove(self, key: TopicIdPartition) -> None:
        """Fetch it no longer; what is on its way for it is dropped."""
        followed = self.followed.pop(key, None)
        if followed is not None:
            self._settled.stir(key, followed.partition)

    def changed(self) -> None:
        """What a change of the metadata adds and removes has been added and removed.

        Only now a fetch that waits is ended: the next one asks for all partitions anew, and a
        change of thousands of them is followed in many turns of the loop.
        """
        if self._interruption is not None:
            self._interrupt_in(INTERRUPT_AFTER_MS)  # or sooner: changes may come one after another

    def close(self) -> None:
        """Fetch nothing any more."""
        self._closed = True
        self._stay()
        self._settled.stir_all()
        self.followed.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.cancel()

    # -- asking

    def _settle(self) -> None:
        """What was asked has been answered; of what still moves, some has told nothing new."""
        now_ms, settled = self._host.now_ms(), self._settled
        for key in list(settled.moving):
            entry = self._asked.get(key)
            if entry is None or self.followed.get(key) is not entry[0]:
                continue
            followed, asked = entry
            if self._session.is_told(key, asked) and followed.is_as(asked, now_ms):
                settled.settle(key, followed.partition)

    def _begin_anew(self) -> None:
        """The leader knows nothing of what was asked."""
        self._session.reset()
        self._settled.stir_all()
        self._asked = {}
        self._settled.moving = dict.fromkeys(self.followed)

    def _wake_in(self, delay_ms: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._host.call_later(delay_ms, self._turn)

    def _interrupt_in(self, delay_ms: int) -> None:
        due_ms = self._host.now_ms() + delay_ms
        if self._interruption is None or due_ms < self._interrupted_ms:
            self._stay()
            self._interrupted_ms = due_ms
            self._interruption = self._host.call_later(delay_ms, self._interrupt)

    def _stay(self) -> None:
        """The fetch under way is not ended, or has ended."""
        interruption, self._interruption = self._interruption, None
        if interruption is not None:
            interruption.cancel()

    def _interrupt(self) -> None:
        """New partitions do not wait until a fetch that waits for others comes back."""
        self._interruption = None
        pending, self._pending = self._pending, None
        if self._closed or pending is None:
            return
        pending.cancel()
        self._begin_anew()
        self._host.reconnect(self.leader_id)
        self._turn()

    def _turn(self) -> None:
        """Send the next fetch, or wait until there is one to send."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._closed or self._pending is not None or self._is_appending:
            return
        now_ms = self._host.now_ms()
        next_ms: int | None = None
        wanted: dict[TopicIdPartition, Asked] = {}
        gone: list[TopicIdPartition] = []
        for key in list(self._settled.moving):
            followed = self.followed.get(key)
            asked: Asked | None = None
            if followed is None:
                del self._settled.moving[key]
            else:
                asked, due_ms = self._asked_of(followed, now_ms)
                if due_ms is not None:
                    next_ms = due_ms if next_ms is None else min(next_ms, due_ms)
            if followed is None or asked is None:
                gone.append(key)
                self._asked.pop(key, None)
            else:
                wanted[key] = asked
                self._asked[key] = followed, asked
        if not self._asked:
            if next_ms is not None:
                self._wake_in(max(1, next_ms - now_ms))
            return
        self._send(wanted, gone, now_ms, next_ms)

    def _asked_of(self, followed: Followed, now_ms: int) -> tuple[Asked | None, int | None]:
        """What is asked of a partition; else when it is looked at again, if it is then."""
        if followed.state is not FetchState.FETCHING:
            return None, None
        if followed.delayed_until_ms > now_ms:
            return None, followed.delayed_until_ms
        partition = followed.partition
        log = partition.log
        if log is None or (log.error is not None and not log.is_short):
            followed.state = FetchState.FAILED
            return None, None
        if log.is_short:
            return None, now_ms + min(SHORT_MS, self._host.settings.backoff_ms)
        if log.next_offset != log.log_end_offset:
            # What we appended while we led is still being written.
            return None, now_ms + 1
        if followed.lags and self._host.is_held_back(partition):
            return None, now_ms + THROTTLED_MS
        latest = log.leader_epochs.latest
        return Asked(log.log_end_offset, followed.leader_epoch, latest, log.log_start_offset), None

    def _send(
        self,
        wanted: dict[TopicIdPartition, Asked],
        gone: list[TopicIdPartition],
        now_ms: int,
        next_ms: int | None,
    ) -> None:
        host, settings = self._host, self._host.settings
        wait_ms = settings.wait_max_ms
        if next_ms is not None:
            wait_ms = min(wait_ms, max(1, next_ms - now_ms))
        message = m.FetchRequest
        request = message(
            replica_state=message.ReplicaState(
                replica_id=host.broker_id, replica_epoch=host.broker_epoch()
            ),
            max_wait_ms=wait_ms,
            min_bytes=settings.min_bytes,
            max_bytes=settings.response_max_bytes,
        )
        self._session.fill(request, wanted, gone, settings.max_bytes)
        self._sent_ms = now_ms
        pending = host.send(self.leader_id, ApiKey.FETCH, request, settings.timeout_ms)
        self._pending = pending
        pending.add_done_callback(self._answered)

    # -- answers

    def _answered(self, done: Pending[m.FetchResponse]) -> None:
        self._pending = None
        self._stay()
        if self._closed:
            return
        error = done.error()
        if error is not None:
            self._begin_anew()
            self._connection_failed(str(error))
            return
        response = done.result()
        if response.error_code or not response.session_id:
            known = self._asked
            self._begin_anew()
            if not response.error_code:
                self._asked = known  # this answer is one to them
        if not self._session.answered(response.error_code, response.session_id):
            self._turn()
            return
        if response.error_code:
            self._connection_failed(ErrorCode(response.error_code).name)
            return
        self._failures = 0
        written: list[Pending[None]] = []
        for topic in response.responses:
            for answer in topic.partitions:
                key = topic.topic_id, answer.partition_index
                if (followed := self.followed.get(key)) is not None:
                    self._settled.stir(key, followed.partition)
                self._partition_answered(key, answer, written)
        if self._host.settings.settles:
            self._settle()
        if not written:
            self._turn()
            return
        self._is_appending = True
        gather(written).add_done_callback(lambda _: self._appended())

    def _connection_failed(self, reason: str) -> None:
        """The leader cannot be asked: soon again at first, then at Kafka's pace."""
        backoff_ms = min(10 * 2 ** min(self._failures, 10), self._host.settings.backoff_ms)
        self._failures += 1
        if self._failures == 5:
            logger.warning("cannot fetch from broker %d: %s", self.leader_id, reason)
        self._wake_in(backoff_ms)

    def _appended(self) -> None:
        self._is_appending = False
        if not self._closed:
            self._turn()

    def _partition_answered(
        self,
        key: TopicIdPartition,
        answer: m.FetchResponse.PartitionData,
        written: list[Pending[None]],
    ) -> None:
        followed = self.followed.get(key)
        sent = self._asked.get(key)
        if followed is None or sent is None or sent[0] is not followed:
            return  # it was given up or taken over anew meanwhile
        partition, asked = followed.partition, sent[1]
        log = partition.log
        if log is None or log.log_end_offset != asked.fetch_offset:
            return
        try:
            if answer.error_code:
                self._refused(followed, asked, answer.error_code)
            elif answer.is_set("diverging_epoch") and answer.diverging_epoch.epoch >= 0:
                self._diverged(partition, answer.diverging_epoch)
            else:
                self._append(followed, log, answer, written)
        except KafkaError as error:
            logger.error("replica %s of broker %d: %s", partition, self.leader_id, error)
            self._failed(followed)

    def _failed(self, followed: Followed) -> None:
        """Our log does not take it: not now, or not any more."""
        log = followed.partition.log
        if log is None or (log.error is not None and not log.is_short):
            followed.state = FetchState.FAILED
        else:
            self._delay(followed)

    def _append(
        self,
        followed: Followed,
        log: PartitionLog,
        answer: m.FetchResponse.PartitionData,
        written: list[Pending[None]],
    ) -> None:
        partition = followed.partition
        records = answer.records
        if not records:
            followed.lag = max(0, answer.high_watermark - log.log_end_offset)
            followed.lags = followed.lag > 0
            partition.leader_answered(answer.high_watermark, answer.log_start_offset)
            return
        assert not isinstance(records, list), "what was decoded is one buffer"
        size_bytes = whole_batches_bytes(records)
        if not size_bytes:
            self._delay(followed)
            return
        info = partition.append_as_follower(bytes(records[:size_bytes]))
        self._host.fetched(partition, size_bytes)
        followed.lag = max(0, answer.high_watermark - info.last_offset - 1)
        followed.lags = followed.lag > 0

        def done(pending: Pending[None]) -> None:
            error = pending.error()
            if error is not None or partition.log is None:
                self._failed(followed)
            elif partition.is_leader:
                partition.taken_over()
            elif self.followed.get((partition.topic_id, partition.index)) is followed:
                partition.leader_answered(answer.high_watermark, answer.log_start_offset)

        if info.written.done:
            done(info.written)
        else:
            info.written.add_done_callback(done)
            written.append(info.written)

    def _diverged(self, partition: Partition, diverging: m.FetchResponse.EpochEndOffset) -> None:
        """The leader's largest epoch not above our last one, and where it ends there."""
        offset = truncation_offset(partition, diverging.epoch, diverging.end_offset)
        if offset < partition.state.high_watermark:
            logger.warning(
                "%s is truncated to %d, below its high watermark %d",
                partition,
                offset,
                partition.state.high_watermark,
            )
        partition.truncate_to(offset)

    def _delay(self, followed: Followed) -> None:
        followed.delayed_until_ms = self._host.now_ms() + self._host.settings.backoff_ms

    def _refused(self, followed: Followed, asked: Asked, code: int) -> None:
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._resolve(followed, asked)
        elif code == ErrorCode.FENCED_LEADER_EPOCH:
            followed.state = FetchState.FAILED  # newer metadata is on its way
        elif code in _SOON_OVER:
            followed.delayed_until_ms = self._host.now_ms() + min(
                20, self._host.settings.backoff_ms
            )
        else:
            logger.warning(
                "fetching %s from broker %d: %s",
                followed.partition,
                self.leader_id,
                ErrorCode(code).name,
            )
            self._delay(followed)

    # -- out of range

    def _resolve(self, followed: Followed, asked: Asked) -> None:
        """Ask where the leader's log ends; where it ends before ours does, cut ours."""
        followed.state = FetchState.RESOLVING

        def end_known(end: int | None) -> None:
            log = followed.partition.log
            if end is None or log is None:
                self._resolved(followed, delayed=True)
            elif end < log.log_end_offset:
                logger.warning("%s ends at %d, its leader at %d", followed.partition, asked[0], end)
                self._change(followed, lambda: followed.partition.truncate_to(end))
            else:
                self._leader_offset(followed, EARLIEST, start_known)

        def start_known(start: int | None) -> None:
            log = followed.partition.log
            if start is None or log is None:
                self._resolved(followed, delayed=True)
                return
            if start > log.log_end_offset:
                self._change(followed, lambda: followed.partition.start_anew_at(start))
            else:
                self._resolved(followed)

        self._leader_offset(followed, LATEST, end_known)

    def _change(self, followed: Followed, change: Callable[[], None]) -> None:
        """Cut our log as what was found out says; later again where it does not let itself."""
        try:
            change()
        except KafkaError as error:
            logger.error("replica %s: %s", followed.partition, error)
            self._resolved(followed, delayed=True)
            self._failed(followed)
        else:
            self._resolved(followed)

    def _resolved(self, followed: Followed, *, delayed: bool = False) -> None:
        followed.state = FetchState.FETCHING
        if delayed:
            self._delay(followed)
        self._turn()

    def _leader_offset(
        self, followed: Followed, timestamp: int, use: Callable[[int | None], None]
    ) -> None:
        """One of the special offsets of the leader's log, None when it cannot be had."""
        partition = followed.partition
        message = m.ListOffsetsRequest
        request = message(
            replica_id=self._host.broker_id,
            topics=[
                message.ListOffsetsTopic(
                    name=partition.topic,
                    partitions=[
                        message.ListOffsetsPartition(
                            partition_index=partition.index,
                            current_leader_epoch=followed.leader_epoch,
                            timestamp=timestamp,
                        )
                    ],
                )
            ],
        )

        def answered(done: Pending[m.ListOffsetsResponse]) -> None:
            if self.followed.get((partition.topic_id, partition.index)) is not followed:
                return
            if done.error() is not None:
                use(None)
                return
            answer = done.result().topics[0].partitions[0]
            use(None if answer.error_code else answer.offset)

        self._host.send(
            self.leader_id, ApiKey.LIST_OFFSETS, request, self._host.settings.timeout_ms
        ).add_done_callback(answered)


_SOON_OVER = (
    ErrorCode.INCONSISTENT_TOPIC_ID,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)
"""Either side has not seen the newest metadata yet."""


def truncation_offset(partition: Partition, epoch: int, end_offset: int) -> int:
    """Where our log is cut when the leader says that `epoch` ends at `end_offset` (KIP-279).

    With an epoch that we do not have, our largest one below it is cut at its end, and the next
    fetch asks on.
    """
    log = partition.log
    assert log is not None
    if end_offset < 0:
        return min(partition.state.high_watermark, log.log_end_offset)
    if epoch < 0:
        return min(end_offset, log.log_end_offset)
    own_epoch, own_end = log.end_offset_for_epoch(epoch)
    if own_epoch < 0:
        return min(end_offset, log.log_end_offset)
    if own_epoch != epoch:
        return min(own_end, log.log_end_offset)
    return min(own_end, end_offset, log.log_end_offset)
