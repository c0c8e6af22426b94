"""Brokers as replicas of one partition, without sockets: real logs, fetchers and reading.

    world = Replicas(tmp_path, brokers=(1, 2, 3))
    world.lead(1, epoch=3)                # metadata for everybody
    world.append(1, b"a", b"b")
    world.exchange()                      # fetches until nothing moves
    world.values(2)

Time stands until `world.now_ms` is moved; `exchange` fires the timers that are due.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kwire.api.shared.fetched_topics import answer_of
from kwire.clock import SeededRandom, SystemClock
from kwire.log.directories.manager import LogManager
from kwire.log.partition.config import LogConfig
from kwire.log.partition.partition_log import PartitionLog
from kwire.log.scheduling import Scheduler
from kwire.log.types import Isolation
from kwire.pending import Pending, as_pending
from kwire.protocol import messages as m
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records import Record, build_batch, read_records
from kwire.replica.bounded_read import BoundedRead, ReadTarget
from kwire.replica.fetcher import FetchSettings
from kwire.replica.fetchers import Fetchers
from kwire.replica.manager import ReplicaManager
from kwire.replica.partition import Partition
from kwire.replica.reading import ReadLimits
from kwire.replica.state import AlterIsr, Assigned, BecomeFollower, BecomeLeader, ReplicaState
from kwire.server.fetch_sessions import (
    FetchSession,
    FetchSessionCache,
    SessionPartition,
    partitions_of,
)

TOPIC, TOPIC_ID = "t", bytes(range(16))
EXCHANGES_MAX = 1000


class Position:
    """What a read asks of a partition (`kwire.replica.reading.ReadRequest`)."""

    def __init__(
        self,
        fetch_offset: int,
        *,
        current_leader_epoch: int = -1,
        last_fetched_epoch: int = -1,
        log_start_offset: int = -1,
        partition_bytes_max: int = 1 << 20,
    ) -> None:
        self.fetch_offset = fetch_offset
        self.current_leader_epoch = current_leader_epoch
        self.last_fetched_epoch = last_fetched_epoch
        self.log_start_offset = log_start_offset
        self.partition_bytes_max = partition_bytes_max


class Timer:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class Broker:
    """One replica: its log and partition, its sessions as a leader, its fetchers as a follower."""

    settings = FetchSettings(wait_max_ms=500, backoff_ms=100)

    def __init__(self, world: Replicas, broker_id: int, directory: Path) -> None:
        self.world = world
        self.broker_id = broker_id
        self.is_up = True
        self.logs = LogManager([str(directory)], SystemClock(), SeededRandom(broker_id))
        self.logs.open_directories()
        self.logs.load_all()
        self.partition = Partition(TOPIC, TOPIC_ID, 0, ReplicaState(broker_id))
        self.log: PartitionLog = self.logs.create(TOPIC, 0, TOPIC_ID, LogConfig())
        self.partition.log = self.log
        self.partition.now_ms = self.now_ms
        self.partition.on_effects = self._stepped
        self.sessions = FetchSessionCache(10, SeededRandom(broker_id))
        self.fetchers = Fetchers(self)
        self.wanted_isrs: list[AlterIsr] = []
        self.sent: list[Any] = []
        self.reconnects: list[int] = []

    def _stepped(self, partition: Partition, effects: list[Any]) -> None:
        self.wanted_isrs += [effect for effect in effects if type(effect) is AlterIsr]

    def assign(self, leader: int, epoch: int, partition_epoch: int, isr: tuple[int, ...]) -> None:
        log = self.log
        event = Assigned(
            leader, epoch, partition_epoch, self.world.ids, isr, log.log_end_offset, log.next_offset
        )
        for effect in self.partition.assign(event, self.now_ms()):
            if type(effect) is BecomeLeader:
                self.fetchers.forget(self.partition)
                log.assign_epoch(effect.leader_epoch)
            elif type(effect) is BecomeFollower:
                self.fetchers.follow(self.partition, effect.leader_id, effect.leader_epoch)
        self.fetchers.settle()

    # -- FetcherHost

    def broker_epoch(self) -> int:
        return self.broker_id * 100

    def now_ms(self) -> int:
        return self.world.now_ms

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Timer:
        return self.world.call_later(delay_ms, callback)

    def send(self, node_id: int, api_key: int, request: Any, timeout_ms: int) -> Pending[Any]:
        self.sent.append(request)
        pending: Pending[Any] = Pending()
        self.world.call_later(1, lambda: self._answer(node_id, api_key, request, pending))
        return pending

    def _answer(self, node_id: int, api_key: int, request: Any, pending: Pending[Any]) -> None:
        leader = self.world.brokers[node_id]
        if pending.done:
            return
        if not (self.is_up and leader.is_up):
            pending.fail(KafkaError(ErrorCode.NETWORK_EXCEPTION))
        elif api_key == ApiKey.FETCH:
            pending.complete(leader.fetch(request))
        else:
            pending.complete(leader.list_offsets(request))

    def reconnect(self, node_id: int) -> None:
        self.reconnects.append(node_id)

    def fetched(self, partition: Partition, size_bytes: int) -> None:
        pass

    def is_held_back(self, partition: Partition) -> bool:
        return False

    # -- the leader's side

    def fetch(self, request: Any) -> Any:
        """A Fetch without its waiting: the session, then the partition."""
        response = m.FetchResponse()
        session: FetchSession | ErrorCode | None
        if request.session_epoch == 0:
            listed = [SessionPartition(k[0], p) for k, p in partitions_of(request.topics, True)]
            session = self.sessions.create(
                listed, privileged=True, uses_topic_ids=True, now_ms=self.now_ms()
            )
        else:
            session = self.sessions.resume(request.session_id, request.session_epoch, True)
        if not isinstance(session, FetchSession):
            response.error_code = int(session or 0)
            return response
        if request.session_epoch:
            session.update(request.topics, request.forgotten_topics_data)
            self.sessions.used(session, self.now_ms())
        response.session_id = session.session_id
        state = request.replica_state
        limits = ReadLimits(1, 1 << 20, 0, Isolation.LOG_END, state.replica_id, state.replica_epoch)
        answers = []
        for asked in session.partitions.values():
            target = ReadTarget(self.partition, asked)
            BoundedRead([target], limits, lambda read: None).run()
            if not asked.must_answer(target.result) and request.session_epoch:
                continue
            answer = answer_of(0, target.result)
            parts: list[Any] = list(target.result.buffers or ())
            answer.records = b"".join(bytes(part) for part in parts)
            answers.append(answer)
        topic = m.FetchResponse.FetchableTopicResponse(topic_id=TOPIC_ID, partitions=answers)
        response.responses = [topic] if answers else []
        return response

    def list_offsets(self, request: Any) -> Any:
        answer = m.ListOffsetsResponse
        asked = request.topics[0].partitions[0]
        found = answer.ListOffsetsPartitionResponse(partition_index=0)
        try:
            log = self.partition.leader_log(asked.current_leader_epoch)
            found.offset = log.log_end_offset if asked.timestamp == -1 else log.log_start_offset
        except KafkaError as error:
            found.error_code = int(error.code)
        return answer(topics=[answer.ListOffsetsTopicResponse(name=TOPIC, partitions=[found])])


class Replicas:
    """See the module."""

    def __init__(self, directory: Path, brokers: tuple[int, ...] = (1, 2)) -> None:
        self.now_ms = 1000
        self.ids = brokers
        self._timers: list[tuple[float, int, Timer]] = []
        self._order = 0
        self._partition_epoch = 0
        self.brokers: dict[int, Broker] = {}
        for broker_id in brokers:
            path = directory / str(broker_id)
            path.mkdir()
            self.brokers[broker_id] = Broker(self, broker_id, path)

    def __getitem__(self, broker_id: int) -> Broker:
        return self.brokers[broker_id]

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Timer:
        timer = Timer(callback)
        self._order += 1
        heapq.heappush(self._timers, (self.now_ms + delay_ms, self._order, timer))
        return timer

    def lead(self, leader: int, epoch: int, isr: tuple[int, ...] | None = None) -> None:
        """New metadata, seen by every broker that is up."""
        self._partition_epoch += 1
        for broker in self.brokers.values():
            if broker.is_up:
                broker.assign(leader, epoch, self._partition_epoch, isr or self.ids)

    def append(self, leader: int, *values: bytes) -> None:
        """One batch at a leader."""
        records = [Record(i, 0, None, value, []) for i, value in enumerate(values)]
        self[leader].partition.append(build_batch(records), acks=1, wall_ms=0)

    def exchange(self, for_ms: int = 50) -> None:
        """Let time pass, and everything happen that is due in it."""
        end = self.now_ms + for_ms
        for _ in range(EXCHANGES_MAX):
            if not self._timers or self._timers[0][0] > end:
                break
            at_ms, _, timer = heapq.heappop(self._timers)
            self.now_ms = max(self.now_ms, int(at_ms))
            callback, timer.callback = timer.callback, None
            if callback is not None:
                callback()
        self.now_ms = end

    def values(self, broker_id: int) -> list[bytes | None]:
        """Every record of a broker's log."""
        log = self[broker_id].log
        found: list[bytes | None] = []
        offset = log.log_start_offset
        while offset < log.log_end_offset:
            slices = as_pending(log.read(offset, 1 << 20)).result()
            for buffer in slices.buffers:
                found += [record.value for record in read_records(buffer)]
            offset = slices.next_offset
        return found

    def epochs(self, broker_id: int) -> list[tuple[int, int]]:
        return list(self[broker_id].log.leader_epochs.entries)


class Assignment:
    """A partition as the metadata has it: brokers 1 and 2, both in the ISR."""

    def __init__(self, leader: int, epoch: int) -> None:
        self.leader, self.leader_epoch, self.partition_epoch = leader, epoch, epoch
        self.replicas = self.isr = (1, 2)
        self.directories = (bytes(16), bytes(16))


def replica_of_broker_1(
    directory: Path, scheduler: Scheduler | None = None
) -> tuple[ReplicaManager, Partition]:
    """A partition with a log on the real disk, and the manager that `assign` gives Assignments."""
    logs = LogManager([str(directory)], SystemClock(), SeededRandom(1), scheduler=scheduler)
    logs.open_directories()
    replicas = ReplicaManager(1, logs, lambda topic: LogConfig(), lambda: 0)
    partition = Partition(TOPIC, TOPIC_ID, 0, ReplicaState(1))
    partition.log = logs.create(TOPIC, 0, TOPIC_ID, LogConfig())
    replicas.by_id[TOPIC_ID, 0] = partition
    return replicas, partition


def assign(replicas: ReplicaManager, assignment: Assignment) -> None:
    """What the manager does when the metadata says so."""
    replicas._assign(TOPIC, TOPIC_ID, 0, assignment)
