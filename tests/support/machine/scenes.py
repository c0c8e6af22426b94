"""What a client sees of a machine that fails, scene by scene.

`python -m tests.support.machine.record` records Apache Kafka's.
"""

from __future__ import annotations

import contextlib
import itertools
import select
import time
from collections.abc import Callable

from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.protocol.records import Record, build_batch, read_records
from kwire.testing.waiting import wait_until
from tests.support.machine.worlds import World
from tests.support.wire import TRANSIENT, WireClient, batch_of, fetch_request, produce_request

Told = dict[str, str]
DAY_MS = 24 * 3600 * 1000
HOUR_MS = 3600 * 1000
LIMIT_S = 60.0
LATEST, EARLIEST = -1, -2
PASSING = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
GROUP_KEY, TRANSACTION_KEY = 0, 1
_numbers = itertools.count(1)


def named(code: int) -> str:
    return ErrorCode(code).name


def produced(answer: m.ProduceResponse) -> str:
    (one,) = answer.responses[0].partition_responses
    return f"{named(one.error_code)} at {one.base_offset}"


def create(client: WireClient, topic: str, configs: dict[str, str] | None = None) -> None:
    """With a leader that knows of it: it is in the metadata before that."""
    client.create_topic(topic, configs=configs)
    lead(client, topic)


def lead(client: WireClient, topic: str) -> None:
    """Until somebody leads it."""
    request = _offset_request(topic, LATEST)

    def leads() -> bool:
        code: int = client.call(request, 4).topics[0].partitions[0].error_code
        assert code == 0 or code in TRANSIENT, code
        return code == 0

    wait_until(leads, timeout_s=LIMIT_S)


def find(client: WireClient, key: str, key_type: int) -> None:
    """Until there is a coordinator."""
    request = m.FindCoordinatorRequest(key=key, key_type=key_type)
    wait_until(lambda: client.call(request, 3).error_code == 0, timeout_s=LIMIT_S)


def commit_request(group: str, topic: str, offset: int) -> m.OffsetCommitRequest:
    shape = m.OffsetCommitRequest
    partition = shape.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    named_topic = shape.OffsetCommitRequestTopic(name=topic, partitions=[partition])
    return shape(group_id=group, generation_id_or_member_epoch=-1, topics=[named_topic])


def commit(client: WireClient, group: str, topic: str, offset: int) -> None:
    """Until it is there."""
    request = commit_request(group, topic, offset)

    def is_done() -> bool:
        code: int = client.call(request, 8).topics[0].partitions[0].error_code
        assert code == 0 or code in PASSING, code
        return code == 0

    wait_until(is_done, timeout_s=LIMIT_S)


def committed(client: WireClient, group: str, topic: str) -> int:
    """-1 for nothing."""
    shape = m.OffsetFetchRequest
    asked = shape.OffsetFetchRequestTopic(name=topic, partition_indexes=[0])
    request = shape(group_id=group, topics=[asked])
    answer = client.call(request, 6)
    deadline = time.monotonic() + LIMIT_S
    while answer.error_code in PASSING and time.monotonic() < deadline:
        answer = client.call(request, 6)
    assert answer.error_code == 0, answer
    found: int = answer.topics[0].partitions[0].committed_offset
    return found


def _offset_request(topic: str, timestamp: int) -> m.ListOffsetsRequest:
    shape = m.ListOffsetsRequest
    partition = shape.ListOffsetsPartition(
        partition_index=0, current_leader_epoch=-1, timestamp=timestamp
    )
    return shape(replica_id=-1, topics=[shape.ListOffsetsTopic(name=topic, partitions=[partition])])


def offset_of(client: WireClient, topic: str, timestamp: int) -> int:
    answer = client.call(_offset_request(topic, timestamp), 4).topics[0].partitions[0]
    assert answer.error_code == 0, answer
    found: int = answer.offset
    return found


def fetched(client: WireClient, topic: str, offset: int) -> str:
    """What a Fetch tells of partition 0."""
    answer = client.call(fetch_request(topic, {0: offset}), 12).responses[0].partitions[0]
    records = list(read_records(bytes(answer.records or b"")))
    told = f"{named(answer.error_code)}, high watermark {answer.high_watermark}"
    return f"{told}, start {answer.log_start_offset}, {len(records)} records"


def has_come(client: WireClient) -> bool:
    """Whether an answer is there to be received."""
    return bool(select.select([client.socket], [], [], 0)[0])


# -- a disk that is slow


def slow_writes(world: World) -> Told:
    """A produce that waits for the disk, and what others are told meanwhile."""
    return _slow(world, syncs=False)


def slow_syncs(world: World) -> Told:
    """The same, of topics whose records are synced one by one."""
    return _slow(world, syncs=True)


def _slow(world: World, *, syncs: bool) -> Told:
    name, other = f"slow-{next(_numbers)}", f"slow-{next(_numbers)}"
    told: Told = {}
    with contextlib.ExitStack() as stack:
        late, second, asking = (stack.enter_context(WireClient(world.bootstrap)) for _ in range(3))
        for topic in (name, other):
            create(asking, topic, configs={"flush.messages": "1"} if syncs else {})
            told["before"] = produced(asking.call(_one(topic), 9))
        find(asking, name, GROUP_KEY)
        commit(asking, name, name, 0)
        with world.slow(syncs=syncs) as reached:
            late.send(_one(name), 9)
            reached(1)
            late.send(m.ApiVersionsRequest(), 0)
            second.send(_one(other), 9)
            reached(2)

            def ask(label: str, what: Callable[[], str]) -> None:
                answer = what()
                told[label] = f"{'behind' if has_come(late) else 'in front of'} it: {answer}"

            heartbeat = m.HeartbeatRequest(group_id=name, member_id="one", generation_id=1)
            ask("versions", lambda: named(asking.call(m.ApiVersionsRequest(), 0).error_code))
            ask("metadata", lambda: str(len(asking.topic(name).partitions)))
            ask("offsets", lambda: str(offset_of(asking, name, LATEST)))
            ask("commits", lambda: str(committed(asking, name, name)))
            ask("heartbeat", lambda: named(asking.call(heartbeat, 4).error_code))
            ask("fetch", lambda: fetched(asking, name, 1))
        told["the produce"] = produced(late.receive())
        told["behind it on its connection"] = named(late.receive().error_code)
        told["of another topic"] = produced(second.receive())
        told["then"] = fetched(asking, name, 1)
    return told


def _one(topic: str) -> m.ProduceRequest:
    request: m.ProduceRequest = produce_request(topic, {0: batch_of([b"v"])}, timeout_ms=100)
    return request


# -- a clock that is wrong


def clock_ahead(world: World) -> Told:
    """By a day."""
    name, told = f"clock-{next(_numbers)}", Told()
    stamped, kept_short, group = f"{name}-stamped", f"{name}-short", f"{name}-group"
    with WireClient(world.bootstrap) as client, WireClient(world.bootstrap) as member:
        create(client, name)
        create(client, stamped, configs={"message.timestamp.type": "LogAppendTime"})
        create(client, kept_short, configs={"retention.ms": str(HOUR_MS)})
        client.call(_one(kept_short), 9)
        find(client, group, GROUP_KEY)
        member_id = _join(member, group)
        find(client, name, TRANSACTION_KEY)
        producer = producer_of(client, name)
        _add_to_transaction(client, name, producer, name)
        told["transaction"] = _transaction(client, name)
        with world.skewed(DAY_MS):
            told["of the producer's time"] = produced(client.call(_one(name), 9))
            answer = client.call(_one(stamped), 9).responses[0].partition_responses[0]
            told["of the log's time"] = _distance(answer.log_append_time_ms)
            batch = client.call(fetch_request(stamped, {0: 0}), 12).responses[0].partitions[0]
            (record,) = read_records(bytes(batch.records))
            told["its record"] = _distance(record.timestamp)
            wait_until(lambda: _transaction(client, name) == "CompleteAbort", timeout_s=LIMIT_S)
            told["transaction then"] = _transaction(client, name)
            told["its end"] = named(client.call(_end(name, producer), 3).error_code)
            wait_until(lambda: offset_of(client, kept_short, EARLIEST) == 1, timeout_s=LIMIT_S)
            told["what was to be kept for an hour"] = fetched(client, kept_short, 1)
            beat = m.HeartbeatRequest(group_id=group, member_id=member_id, generation_id=1)
            told["member of a group"] = named(member.call(beat, 4).error_code)
        leave = m.LeaveGroupRequest.MemberIdentity(member_id=member_id)
        member.call(m.LeaveGroupRequest(group_id=group, members=[leave]), 4)
    return told


def clock_behind(world: World) -> Told:
    """By a day."""
    name, told = f"clock-{next(_numbers)}", Told()
    stamped = f"{name}-stamped"
    with WireClient(world.bootstrap) as client:
        create(client, name)
        create(client, stamped, configs={"message.timestamp.type": "LogAppendTime"})
        with world.skewed(-DAY_MS):
            told["of the producer's time"] = produced(client.call(_one(name), 9))
            answer = client.call(_one(stamped), 9).responses[0].partition_responses[0]
            told["of the log's time"] = _distance(answer.log_append_time_ms)
        told["then"] = produced(client.call(_one(name), 9))
    return told


def _distance(timestamp_ms: int) -> str:
    days = round((timestamp_ms - time.time_ns() / 1e6) / DAY_MS)
    return f"{days} days ahead"


def _join(client: WireClient, group: str) -> str:
    """A member of generation 1; its id."""
    shape = m.JoinGroupRequest
    join = shape(
        group_id=group,
        session_timeout_ms=60_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=[shape.JoinGroupRequestProtocol(name="range")],
    )
    deadline = time.monotonic() + LIMIT_S
    answer = client.call(join, 5)
    while answer.error_code and time.monotonic() < deadline:
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            join = join.copy(member_id=answer.member_id)
        answer = client.call(join, 5)
    assert answer.generation_id == 1, answer
    sync = m.SyncGroupRequest(group_id=group, member_id=answer.member_id, generation_id=1)
    sync.assignments = [
        m.SyncGroupRequest.SyncGroupRequestAssignment(member_id=answer.member_id, assignment=b"")
    ]
    assert client.call(sync, 3).error_code == 0
    return str(answer.member_id)


Producer = tuple[int, int]


def producer_of(client: WireClient, transactional_id: str | None) -> Producer:
    request = m.InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=60_000,
        producer_id=-1,
        producer_epoch=-1,
    )
    deadline = time.monotonic() + LIMIT_S
    answer = client.call(request, 4)
    while answer.error_code in PASSING and time.monotonic() < deadline:
        answer = client.call(request, 4)
    assert answer.error_code == 0, answer
    return answer.producer_id, answer.producer_epoch


def _add_to_transaction(
    client: WireClient, transactional_id: str, producer: Producer, topic: str
) -> None:
    shape = m.AddPartitionsToTxnRequest
    request = shape(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=[shape.AddPartitionsToTxnTopic(name=topic, partitions=[0])],
    )
    answer = client.call(request, 3).results_by_topic_v3_and_below[0]
    assert answer.results_by_partition[0].partition_error_code == 0, answer


def _end(transactional_id: str, producer: Producer) -> m.EndTxnRequest:
    return m.EndTxnRequest(
        transactional_id=transactional_id,
        producer_id=producer[0],
        producer_epoch=producer[1],
        committed=True,
    )


def _transaction(client: WireClient, transactional_id: str) -> str:
    request = m.DescribeTransactionsRequest(transactional_ids=[transactional_id])
    return str(client.call(request, 0).transaction_states[0].transaction_state)


# -- a machine that loses power

FLUSHED = {"never": "", "each": "1", "two": "2"}


def power_lost(world: World) -> Told:
    """What is there of three records and a commit that were acknowledged, by how topics flush."""
    name, told = f"power-{next(_numbers)}", Told()
    topics = {label: f"{name}-{label}" for label in FLUSHED}
    with WireClient(world.bootstrap) as client:
        find(client, name, GROUP_KEY)
        producer = producer_of(client, None)
        for label, topic in topics.items():
            every = FLUSHED[label]
            create(client, topic, configs={"flush.messages": every} if every else {})
            for sequence in range(3):
                assert produced(client.call(_sequenced(topic, producer, sequence), 9)) == (
                    f"NONE at {sequence}"
                )
        commit(client, name, topics["each"], 3)
        time_ms = time.time_ns() // 1_000_000
    world.lose_power()
    with WireClient(world.bootstrap) as client:
        find(client, name, GROUP_KEY)
        told["committed"] = str(committed(client, name, topics["each"]))
        for topic in topics.values():
            lead(client, topic)
        for label, topic in topics.items():
            told[f"{label}: end"] = str(offset_of(client, topic, LATEST))
            told[f"{label}: by time"] = str(offset_of(client, topic, time_ms - HOUR_MS))
            told[f"{label}: from the start"] = fetched(client, topic, 0)
            told[f"{label}: from the end that was"] = fetched(client, topic, 3)
            told[f"{label}: the producer goes on"] = produced(
                client.call(_sequenced(topic, producer, 3), 9)
            )
            told[f"{label}: another one"] = produced(client.call(_one(topic), 9))
    return told


def _sequenced(topic: str, producer: Producer, sequence: int) -> m.ProduceRequest:
    record = Record(0, time.time_ns() // 1_000_000, None, b"v", [])
    batch = build_batch(
        [record], producer_id=producer[0], producer_epoch=producer[1], base_sequence=sequence
    )
    request: m.ProduceRequest = produce_request(topic, {0: bytes(batch)})
    return request


SCENES: dict[str, Callable[[World], Told]] = {
    "disk-slow": slow_writes,
    "disk-slow, syncs": slow_syncs,
    "clock-skew, ahead": clock_ahead,
    "clock-skew, behind": clock_behind,
    "power-loss": power_lost,
}
