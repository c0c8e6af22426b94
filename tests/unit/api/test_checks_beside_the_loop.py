"""A batch whose check would hold up the event loop is checked beside it, in its order.

A batch of a few hundred kilobytes can hold a hundred megabytes of records: while one was unpacked,
nobody else's requests were answered.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.protocol.records import Codec, Record, build_batch, kernel
from kwire.testing.cluster import NodeInThread
from tests.support.frames import Closed
from tests.support.wire import WireClient, batch_of, fetch_values, produce_request

LARGE = bytes(3_000_000)


class GatedExecutor:
    """One worker whose jobs wait until the gate is open; `arrived` counts them."""

    def __init__(self, gate: threading.Event) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._gate = gate
        self.arrived = threading.Semaphore(0)

    def submit(self, job: Callable[..., Any], *arguments: Any) -> Future[Any]:
        def gated() -> Any:
            self._gate.wait(30)
            return job(*arguments)

        self.arrived.release()
        return self._pool.submit(gated)

    def shutdown(self, wait: bool = True) -> None:
        self._gate.set()
        self._pool.shutdown(wait=wait)


class GatedNode:
    """A node in a thread; its checks of batches wait for `gate`."""

    def __init__(self, directory: Path) -> None:
        self.gate = threading.Event()
        self.checker: GatedExecutor | None = None
        self._thread = NodeInThread(directory, new_executor=self._executor)
        self.node = self._thread.node
        self.address = self._thread.start().bootstrap

    def _executor(self, name: str) -> Any:
        if name != "kwire-check":
            return ThreadPoolExecutor(1)
        self.checker = GatedExecutor(self.gate)
        return self.checker

    def wait_for_check(self) -> None:
        """Until one more check has been asked for."""
        while self.checker is None:
            with WireClient(self.address) as client:
                client.metadata([])
        assert self.checker.arrived.acquire(timeout=30)

    def begin_stop(self) -> Future[None]:
        return self._thread.begin_stop()

    def stop(self) -> None:
        self.gate.set()
        self._thread.stop()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[GatedNode]:
    node = GatedNode(tmp_path)
    try:
        with WireClient(node.address) as client:
            client.create_topic("t", partitions=2)
            client.topic("t")
        yield node
    finally:
        node.stop()


def bomb(codec: Codec = Codec.GZIP, value: bytes = LARGE) -> bytes:
    return bytes(build_batch([Record(0, 5, b"k", value)], codec=codec))


def answers(response: Any) -> list[tuple[int, int]]:
    (topic,) = response.responses
    return [(answer.error_code, answer.base_offset) for answer in topic.partition_responses]


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.SNAPPY, Codec.ZSTD])
def test_others_are_answered_while_a_batch_is_unpacked(served: GatedNode, codec: Codec) -> None:
    value = LARGE if codec != Codec.ZSTD else random_bytes()
    with WireClient(served.address) as one, WireClient(served.address) as other:
        one.send(produce_request("t", {0: bomb(codec, value)}), 9)
        served.wait_for_check()
        for number in range(3):
            request = produce_request("t", {0: batch_of([b"small"])})
            assert answers(other.call(request, 9)) == [(0, number)]
        served.gate.set()
        assert answers(one.receive()) == [(0, 3)]
        assert fetch_values(other, "t", 0)[-1] == value


def random_bytes() -> bytes:
    """Which zstd leaves so large that it is not unpacked on the spot."""
    import random

    return random.Random(1).randbytes(200_000)


def test_a_record_that_is_too_large_when_unpacked_is_refused(served: GatedNode) -> None:
    with WireClient(served.address) as client:
        client.create_topic("bound", configs={"max.decompressed.message.bytes": "2000000"})
        client.topic("bound")
        client.send(produce_request("bound", {0: bomb()}), 9)
        served.wait_for_check()
        served.gate.set()
        assert answers(client.receive()) == [(ErrorCode.INVALID_RECORD, -1)]
        client.call(produce_request("bound", {0: batch_of([b"small"])}), 9)
        assert fetch_values(client, "bound", 0) == [b"small"]


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.ZSTD])
def test_a_bomb_is_refused_by_what_all_its_records_have(served: GatedNode, codec: Codec) -> None:
    """The default of max.decompressed.message.bytes is two gigabytes, and it bounds a record: the
    records of a batch together were bounded by it too, so that 13 KB took 300 MB of memory."""
    batch = bytes(build_batch([Record(0, 5, None, bytes(1_000_000))] * 140, codec=codec))
    assert len(batch) < 200_000
    with WireClient(served.address) as client:
        client.send(produce_request("t", {0: batch}), 9)
        if codec == Codec.GZIP:
            served.wait_for_check()
        served.gate.set()
        assert answers(client.receive()) == [(ErrorCode.RECORD_LIST_TOO_LARGE, -1)]


def test_the_connections_next_requests_wait_for_it(served: GatedNode) -> None:
    with WireClient(served.address) as client:
        client.send(produce_request("t", {0: bomb()}), 9)
        client.send(produce_request("t", {0: batch_of([b"second"])}), 9)
        served.wait_for_check()
        served.gate.set()
        assert answers(client.receive()) == [(0, 0)]
        assert answers(client.receive()) == [(0, 1)]


def test_partitions_of_a_request_have_their_own_answers(served: GatedNode) -> None:
    with WireClient(served.address) as client:
        batches = {0: bomb(), 1: batch_of([b"small"]), 7: bomb()}
        client.send(produce_request("t", batches), 9)
        served.wait_for_check()
        served.gate.set()
        found = answers(client.receive())
        assert found == [(0, 0), (0, 0), (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)]


def test_it_is_appended_although_the_client_is_gone_and_what_follows_behind_it(
    served: GatedNode,
) -> None:
    """KAFKA-3703: with acks=0 a client sends and leaves."""
    client = WireClient(served.address)
    client.send(produce_request("t", {0: bomb()}, acks=0), 9)
    for number in range(3):
        client.send(produce_request("t", {0: batch_of([b"%d" % number])}, acks=0), 9)
    client.send(m.MetadataRequest(topics=[]), 9)
    served.wait_for_check()
    client.close()
    with WireClient(served.address) as other:
        other.metadata([])
        assert fetch_values(other, "t", 0) == []
        served.gate.set()
        values: list[bytes] = []
        while len(values) < 4:
            values = fetch_values(other, "t", 0)
        assert values == [LARGE, b"0", b"1", b"2"]


def test_rules_that_change_meanwhile_are_applied(served: GatedNode) -> None:
    with WireClient(served.address) as client, WireClient(served.address) as admin:
        client.send(produce_request("t", {0: bomb()}), 9)
        served.wait_for_check()
        shape = m.IncrementalAlterConfigsRequest
        changes = [
            shape.AlterableConfig(name=name, config_operation=0, value=value)
            for name, value in (
                ("compression.type", "uncompressed"),
                ("max.message.bytes", str(2 * len(LARGE))),
            )
        ]
        resource = shape.AlterConfigsResource(resource_type=2, resource_name="t", configs=changes)
        admin.call(shape(resources=[resource]), 1)
        while served.node.log_manager.get("t", 0).config.compression_type != "uncompressed":  # type: ignore[union-attr]
            admin.metadata([])
        served.gate.set()
        assert answers(client.receive()) == [(0, 0)]
        log = served.node.log_manager.get("t", 0)
        assert log is not None
        assert log.size_bytes > len(LARGE)


def test_without_the_compiled_kernel_a_long_walk_is_cut_up(
    served: GatedNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was walked in one go: half a second for a million records."""
    monkeypatch.setattr(kernel, "COMPILED", False)
    turns: list[Any] = []
    checks = served.node.workers.checks
    scheduler = checks._scheduler
    call_soon = scheduler.call_soon
    monkeypatch.setattr(scheduler, "call_soon", lambda f: (turns.append(f), call_soon(f))[1])
    with WireClient(served.address) as client:
        batch = bytes(build_batch([Record(0, 5, None, b"v")] * 10_000))
        assert answers(client.call(produce_request("t", {1: batch}), 9)) == [(0, 0)]
        assert len(fetch_values(client, "t", 1)) == 10_000
    assert len(turns) == 6


def test_a_stop_waits_for_the_check_under_way_and_begins_no_other(served: GatedNode) -> None:
    """Its thread would have told its end to a loop that is closed."""
    clients = [WireClient(served.address) for _ in range(3)]
    for client in clients:
        client.send(produce_request("t", {0: bomb()}), 9)
    served.wait_for_check()
    stopping = served.begin_stop()
    for client in clients:
        with pytest.raises(Closed):
            client.receive()
        client.close()
    assert not stopping.done()
    served.gate.set()
    stopping.result(30)
    assert served.node.workers.checks.held_bytes == 0
