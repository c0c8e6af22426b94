"""The longest turn of a broker's loop in requests that name many partitions.

    python -m bench.longest_turns [--topics 400] [--partitions 5] [--rounds 5] [--only NAME ...]

One node in this process, on asyncio's own loop. Told are, of each request, the processor time of
the longest turn of the loop from before it is sent until its answer is there, and of all turns
together: the smallest of the rounds behind the first (which compiles codecs), and the first. What
asyncio's own transport takes to send more than a megabyte is left out: it copies what uvloop's
sends as it is.
"""

from __future__ import annotations

import argparse
import asyncio
import asyncio.selector_events
import gc
import socket
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from kwire.config.broker_config import BrokerConfig
from kwire.node.node import Node
from kwire.protocol import frame
from kwire.protocol import messages as m
from kwire.protocol.records import Record, build_batch

CREATED_AT_ONCE = 200
MUCH_BYTES = 40 << 20
COPIED_BYTES = 1 << 20
TIMEOUT_S = 300
GROUP, TRANSACTION = 0, 1


class TimedTransport(asyncio.selector_events._SelectorSocketTransport):  # type: ignore[name-defined,misc]
    """Tells its loop what it takes for much data."""

    def writelines(self, parts: Iterable[Any]) -> None:
        parts = list(parts)
        began = time.thread_time()
        super().writelines(parts)
        if sum(map(len, parts)) >= COPIED_BYTES:
            self._loop.copied_s += time.thread_time() - began

    def _write_ready(self) -> None:
        began = time.thread_time()
        super()._write_ready()
        self._loop.copied_s += time.thread_time() - began


class TimedLoop(asyncio.SelectorEventLoop):
    """`longest_s` and `all_s` of its turns since they were last set to 0, in processor time."""

    def __init__(self) -> None:
        super().__init__()
        self.longest_s = self.all_s = self.copied_s = 0.0

    def _make_socket_transport(self, *of: Any, **options: Any) -> TimedTransport:
        return TimedTransport(self, *of, **options)

    def _run_once(self) -> None:
        began, self.copied_s = time.thread_time(), 0.0
        super()._run_once()  # type: ignore[misc]
        took = time.thread_time() - began - self.copied_s
        self.all_s += took
        self.longest_s = max(self.longest_s, took)

    def reset(self) -> None:
        """Forget the turns so far."""
        self.longest_s = self.all_s = 0.0


class Bench:
    """A node, and one connection to it."""

    def __init__(self, directory: str, topics: int, partitions: int) -> None:
        self.names = [f"many-topics-{number}" for number in range(topics)]
        self.indexes = range(partitions)
        self.loop = TimedLoop()
        self._thread = threading.Thread(target=self.loop.run_forever)
        self._thread.start()
        settings = {"log.dirs": directory, "listeners": "PLAINTEXT://127.0.0.1:0"}
        self.node = Node(BrokerConfig.load(overrides=settings), self.loop)
        asyncio.run_coroutine_threadsafe(self.node.start(), self.loop).result(TIMEOUT_S)
        self.socket = socket.create_connection(self.node.ready_address())
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.groups = 0
        self.has_much = False

    def stop(self) -> None:
        self.socket.close()
        asyncio.run_coroutine_threadsafe(self.node.stop(), self.loop).result(TIMEOUT_S)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    def ask(self, request: m.Request, version: int) -> bytes:
        """The answer's frame."""
        key = type(request).API_KEY
        asked = b"".join(frame.encode_request(key, version, 1, "bench", request))
        self._turn_over()
        self.loop.reset()
        self.socket.sendall(asked)
        size = struct.unpack(">i", self._read(4))[0]
        return self._read(size)

    def call(self, request: m.Request, version: int) -> m.Response:
        answer = self.ask(request, version)
        return frame.decode_response(type(request).API_KEY, version, answer)[1]

    def turns_ms(self) -> tuple[float, float]:
        """(the longest turn, all turns) of what was asked last."""
        self._turn_over()
        return self.loop.longest_s * 1e3, self.loop.all_s * 1e3

    def _turn_over(self) -> None:
        over = threading.Event()
        self.loop.call_soon_threadsafe(over.set)
        over.wait(TIMEOUT_S)

    def _read(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            found = self.socket.recv(min(1 << 20, count - len(data)))
            if not found:
                raise SystemExit("bench: the broker closed the connection")
            data += found
        return bytes(data)


# -- what is asked


def create(bench: Bench) -> None:
    shape = m.CreateTopicsRequest
    for first in range(0, len(bench.names), CREATED_AT_ONCE):
        names = bench.names[first : first + CREATED_AT_ONCE]
        topics = [
            shape.CreatableTopic(name=name, num_partitions=len(bench.indexes), replication_factor=1)
            for name in names
        ]
        bench.call(shape(topics=topics, timeout_ms=TIMEOUT_S * 1000), 5)


def metadata(bench: Bench) -> None:
    bench.ask(m.MetadataRequest(topics=None, allow_auto_topic_creation=False), 12)


def metadata_by_name(bench: Bench) -> None:
    shape = m.MetadataRequest.MetadataRequestTopic
    asked = [shape(name=name) for name in bench.names]
    bench.ask(m.MetadataRequest(topics=asked, allow_auto_topic_creation=False), 12)


def produce(bench: Bench) -> None:
    bench.ask(_produce(bench, bench.names, 100), 9)


def _produce(bench: Bench, names: list[str], value_bytes: int) -> m.ProduceRequest:
    shape = m.ProduceRequest
    batch = bytes(build_batch([Record(key=b"k", value=bytes(value_bytes))]))
    topics = [
        shape.TopicProduceData(
            name=name,
            partition_data=[
                shape.PartitionProduceData(index=index, records=batch) for index in bench.indexes
            ],
        )
        for name in names
    ]
    return shape(acks=-1, timeout_ms=TIMEOUT_S * 1000, topic_data=topics)


def _fetch(bench: Bench, offset: int, wait_ms: int, session: tuple[int, int]) -> m.FetchRequest:
    shape = m.FetchRequest
    is_named = session[1] <= 0
    topics = [
        shape.FetchTopic(
            topic=name,
            partitions=[
                shape.FetchPartition(
                    partition=index, fetch_offset=offset, partition_max_bytes=1 << 20
                )
                for index in bench.indexes
            ],
        )
        for name in (bench.names if is_named else ())
    ]
    return shape(
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=50 << 20,
        session_id=session[0],
        session_epoch=session[1],
        topics=topics,
    )


def fetch_full(bench: Bench) -> None:
    """Everything from the beginning."""
    bench.ask(_fetch(bench, 0, 0, (0, -1)), 12)


def _end(bench: Bench) -> int:
    """The end offset of all partitions."""
    partition = bench.node.replicas.partition(bench.names[0], 0)
    assert partition is not None
    assert partition.log is not None
    return partition.log.log_end_offset


def fetch_full_at_the_end(bench: Bench) -> None:
    """Nothing, after a while."""
    bench.ask(_fetch(bench, _end(bench), 50, (0, -1)), 12)


def fetch_much(bench: Bench) -> None:
    """MUCH_BYTES, as much of each partition: the last record."""
    if not bench.has_much:
        bench.has_much = True
        value_bytes = MUCH_BYTES // (len(bench.names) * len(bench.indexes))
        for first in range(0, len(bench.names), CREATED_AT_ONCE):
            names = bench.names[first : first + CREATED_AT_ONCE]
            bench.call(_produce(bench, names, value_bytes), 9)
    bench.ask(_fetch(bench, _end(bench) - 1, 0, (0, -1)), 12)


def fetch_of_a_session(bench: Bench) -> None:
    """What an opened session has not told yet: one fetch behind the first."""
    opened = bench.call(_fetch(bench, 0, 0, (0, 0)), 12)
    bench.ask(_fetch(bench, 0, 0, (opened.session_id, 1)), 12)


def list_offsets(bench: Bench) -> None:
    shape = m.ListOffsetsRequest
    topics = [
        shape.ListOffsetsTopic(
            name=name,
            partitions=[
                shape.ListOffsetsPartition(partition_index=index, timestamp=-1)
                for index in bench.indexes
            ],
        )
        for name in bench.names
    ]
    bench.ask(shape(replica_id=-1, topics=topics), 7)


def find_coordinator(bench: Bench, name: str, key_type: int = GROUP) -> None:
    while True:
        found = bench.call(m.FindCoordinatorRequest(key=name, key_type=key_type), 3)
        assert isinstance(found, m.FindCoordinatorResponse)
        if not found.error_code:
            return
        time.sleep(0.1)


def commit(bench: Bench) -> None:
    """Of another group each time: none is known by its bytes."""
    bench.groups += 1
    shape = m.OffsetCommitRequest
    topics = [
        shape.OffsetCommitRequestTopic(
            name=name,
            partitions=[
                shape.OffsetCommitRequestPartition(partition_index=index, committed_offset=1)
                for index in bench.indexes
            ],
        )
        for name in bench.names
    ]
    group = f"bench-{bench.groups}"
    find_coordinator(bench, group)
    request = shape(group_id=group, generation_id_or_member_epoch=-1, topics=topics)
    while True:
        answered = bench.call(request, 8)
        assert isinstance(answered, m.OffsetCommitResponse)
        codes = {each.error_code for topic in answered.topics for each in topic.partitions}
        if codes == {0}:
            return
        time.sleep(0.1)


def commit_in_a_transaction(bench: Bench) -> None:
    """Of a new transaction each time, which takes the group's partition in first."""
    bench.groups += 1
    shape = m.TxnOffsetCommitRequest
    topics = [
        shape.TxnOffsetCommitRequestTopic(
            name=name,
            partitions=[
                shape.TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=1)
                for index in bench.indexes
            ],
        )
        for name in bench.names
    ]
    name = f"bench-{bench.groups}"
    find_coordinator(bench, name)
    find_coordinator(bench, name, TRANSACTION)
    init = m.InitProducerIdRequest(
        transactional_id=name, transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1
    )
    producer = bench.call(init, 4)
    while producer.error_code:
        time.sleep(0.1)
        producer = bench.call(init, 4)
    request = shape(
        transactional_id=name,
        group_id=name,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        topics=topics,
    )
    while True:
        answered = bench.call(request, 5)
        assert isinstance(answered, m.TxnOffsetCommitResponse)
        codes = {each.error_code for topic in answered.topics for each in topic.partitions}
        if codes == {0}:
            return
        time.sleep(0.1)


def fetch_offsets(bench: Bench) -> None:
    shape = m.OffsetFetchRequest
    bench.ask(shape(groups=[shape.OffsetFetchRequestGroup(group_id="bench-1", topics=None)]), 8)


def epochs(bench: Bench) -> None:
    shape = m.OffsetForLeaderEpochRequest
    topics = [
        shape.OffsetForLeaderTopic(
            topic=name,
            partitions=[
                shape.OffsetForLeaderPartition(
                    partition=index, current_leader_epoch=-1, leader_epoch=0
                )
                for index in bench.indexes
            ],
        )
        for name in bench.names
    ]
    bench.ask(shape(replica_id=-1, topics=topics), 4)


def log_dirs(bench: Bench) -> None:
    bench.ask(m.DescribeLogDirsRequest(topics=None), 4)


def checkpoint(bench: Bench, moved: int | None = None) -> None:
    """The file of high watermarks, of which some or all have moved since the last one."""
    done = threading.Event()
    manager = bench.node.log_manager

    def move() -> None:
        for log in manager.logs()[:moved]:
            log.update_high_watermark(0 if log.high_watermark else 1)

    def begin() -> None:
        manager.checkpoint_high_watermarks().add_done_callback(lambda _: done.set())

    bench.loop.call_soon_threadsafe(move)
    bench._turn_over()
    bench.loop.reset()
    bench.loop.call_soon_threadsafe(begin)
    done.wait(TIMEOUT_S)


def checkpoint_of_few(bench: Bench) -> None:
    checkpoint(bench, 10)


def checkpoint_of_none(bench: Bench) -> None:
    checkpoint(bench, 0)


ASKED: dict[str, Callable[[Bench], None]] = {
    "Metadata of all topics": metadata,
    "Metadata of all topics by name": metadata_by_name,
    "Produce to all partitions": produce,
    "Fetch of all partitions": fetch_full,
    "Fetch of all at their end": fetch_full_at_the_end,
    "Fetch of a session of all": fetch_of_a_session,
    "ListOffsets": list_offsets,
    "OffsetCommit of all partitions": commit,
    "TxnOffsetCommit of all partitions": commit_in_a_transaction,
    "OffsetFetch": fetch_offsets,
    "OffsetForLeaderEpoch": epochs,
    "DescribeLogDirs": log_dirs,
    "high watermark checkpoint, all moved": checkpoint,
    "high watermark checkpoint, 10 moved": checkpoint_of_few,
    "high watermark checkpoint, none moved": checkpoint_of_none,
    "Fetch of 40 MB of all partitions": fetch_much,
}


def measure(topics: int, partitions: int, rounds: int, only: list[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="bench-turns-") as directory:
        bench = Bench(f"{directory}/data", topics, partitions)
        try:
            create(bench)
            gc.collect()
            gc.freeze()
            gc.disable()
            print(f"{topics * partitions:,} partitions; ms of processor time: longest turn, all")
            for name, ask in ASKED.items():
                if only and name not in only:
                    continue
                found = []
                for _ in range(rounds + 1):
                    ask(bench)
                    found.append(bench.turns_ms())
                    gc.collect()
                longest, every = min(each[0] for each in found[1:]), min(a for _, a in found[1:])
                first = found[0]
                print(f"{name:34} {longest:7.1f} {every:8.1f}   first {first[0]:7.1f}", flush=True)
        finally:
            bench.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topics", type=int, default=400)
    parser.add_argument("--partitions", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", action="append", default=[], choices=list(ASKED))
    options = parser.parse_args()
    measure(options.topics, options.partitions, options.rounds, options.only)


if __name__ == "__main__":
    main()
