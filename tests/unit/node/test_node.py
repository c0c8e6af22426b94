"""A whole node in this process, on asyncio's own loop: what runs where uvloop is missing."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kwire.config.broker_config import BrokerConfig
from kwire.kraft.metadata_log import MetadataLog
from kwire.network.loop import new_event_loop
from kwire.node.host_name import reachable_name
from kwire.node.node import Node, StartError
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.testing.cluster import NodeInThread
from tests.support.wire import (
    WireClient,
    batch_of,
    fetch_request,
    fetch_values,
    produce_request,
    produce_values,
)

RESET = struct.pack("ii", 1, 0)
"""Of SO_LINGER: a close sends RST."""


def node_on_asyncio(*directories: Path) -> NodeInThread:
    thread = NodeInThread(*directories, use_uvloop=False)
    assert type(thread.loop).__module__.startswith("asyncio")
    return thread


@pytest.fixture
def bootstrap(tmp_path: Path) -> Iterator[str]:
    with node_on_asyncio(tmp_path) as thread:
        yield thread.bootstrap


def test_it_serves_without_uvloop(bootstrap: str) -> None:
    with WireClient(bootstrap) as client:
        client.create_topic("t")
        large = [b"x" * 900_000 for _ in range(3)]
        for value in large:
            produce_values(client, "t", 0, [value])
        assert fetch_values(client, "t", 0) == large


def test_replies_leave_in_request_order(bootstrap: str) -> None:
    with WireClient(bootstrap) as client:
        client.create_topic("t", partitions=2)
        produce_values(client, "t", 0, [b"ready"])
        produce_values(client, "t", 1, [b"ready"])
        for number in range(20):
            client.send(produce_request("t", {number % 2: batch_of([b"%d" % number])}), 9)
            client.send(fetch_request("t", {0: 0}), 12)
        for _ in range(20):
            produced, fetched = client.receive(), client.receive()
            assert produced.responses[0].partition_responses[0].error_code == 0
            assert fetched.responses[0].partitions[0].error_code == 0


def test_a_waiting_fetch_is_woken_by_data(bootstrap: str) -> None:
    with WireClient(bootstrap) as client, WireClient(bootstrap) as other:
        client.create_topic("t")
        produce_values(other, "t", 0, [b"first"])
        client.send(fetch_request("t", {0: 1}, wait_ms=20_000), 12)
        produce_values(other, "t", 0, [b"second"])
        assert client.receive().responses[0].partitions[0].high_watermark == 2


def test_a_waiting_fetch_counts_the_bytes_of_all_partitions(bootstrap: str) -> None:
    with WireClient(bootstrap) as client, WireClient(bootstrap) as other:
        client.create_topic("t", partitions=2)
        for partition in (0, 1):
            produce_values(other, "t", partition, [b"ready"])
        batch = batch_of([b"x" * 100])
        client.send(fetch_request("t", {0: 1, 1: 1}, wait_ms=20_000, bytes_min=2 * len(batch)), 12)
        other.call(produce_request("t", {0: batch}), 9)
        other.call(produce_request("t", {1: batch}), 9)
        partitions = client.receive().responses[0].partitions
        assert [len(bytes(p.records)) for p in partitions] == [len(batch)] * 2


def test_a_waiting_fetch_ends_when_its_topic_is_deleted(bootstrap: str) -> None:
    from kwire.protocol import messages as m

    with WireClient(bootstrap) as client, WireClient(bootstrap) as other:
        client.create_topic("t")
        produce_values(other, "t", 0, [b"first"])
        client.send(fetch_request("t", {0: 1}, wait_ms=30_000), 12)
        shape = m.DeleteTopicsRequest
        other.call(shape(topic_names=["t"], timeout_ms=10_000), 5)
        code = client.receive().responses[0].partitions[0].error_code
        assert code in (3, 6)


def test_a_waiting_fetch_ends_with_its_time(bootstrap: str) -> None:
    with WireClient(bootstrap) as client:
        client.create_topic("t")
        produce_values(client, "t", 0, [b"first"])
        answer = client.call(fetch_request("t", {0: 1}, wait_ms=50), 12)
        assert answer.responses[0].partitions[0].error_code == 0
        assert bytes(answer.responses[0].partitions[0].records) == b""


def test_nothing_is_left_parked_when_clients_go(tmp_path: Path) -> None:
    thread = node_on_asyncio(tmp_path)
    bootstrap = thread.start().bootstrap
    try:
        with WireClient(bootstrap) as client:
            client.create_topic("t")
            produce_values(client, "t", 0, [b"first"])
            for number in range(20):
                # Who resets is gone; who only closes may still want its answer: up to its deadline.
                resets = number % 2 == 0
                with WireClient(bootstrap) as waiting:
                    wait_ms = 600_000 if resets else 1_000
                    waiting.send(fetch_request("t", {0: 1}, wait_ms=wait_ms), 12)
                    client.metadata([])  # the fetch was received before or with this
                    if resets:
                        waiting.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            partition = thread.node.replicas.partition("t", 0)
            assert partition is not None
            while len(next(iter(thread.node.listeners.bound.values())).connections) > 1:
                client.metadata([])
            assert not partition.data_listeners
            assert len(thread.node.deadlines) == 0
    finally:
        thread.stop()


@pytest.mark.parametrize(("resolves", "expected"), [(True, "box"), (False, "localhost")])
def test_a_listener_on_every_interface_is_advertised_by_a_name_that_resolves(
    monkeypatch: pytest.MonkeyPatch, resolves: bool, expected: str
) -> None:
    def look_up(name: str, port: object) -> list[object]:
        assert name == "box"
        if not resolves:
            raise socket.gaierror
        return []

    monkeypatch.setattr(socket, "gethostname", lambda: "box")
    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    assert reachable_name() == expected


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("node.id=1", "node.id=2", "node 2"),
        ("version=1", "version=9", "has version 9, known are 0, 1"),
    ],
)
def test_a_directory_of_another_node_or_of_an_unknown_version_is_refused(
    tmp_path: Path, old: str, new: str, told: str
) -> None:
    thread = node_on_asyncio(tmp_path)
    thread.start()
    thread.stop()
    properties = tmp_path / "meta.properties"
    properties.write_text(properties.read_text().replace(old, new))
    other = node_on_asyncio(tmp_path)
    try:
        with pytest.raises(StartError, match=told):
            other.start()
    finally:
        other.stop()


def test_a_start_without_descriptors_for_its_metadata_says_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends with one line; whoever keeps it alive starts it again."""
    node = node_on_asyncio(tmp_path)
    node.start()
    node.stop()
    real, opened = os.open, []

    def used_up(path: str, flags: int, *rest: int, **named: int) -> int:
        if "__cluster_metadata-0" in str(path) and str(path).endswith("0.log"):
            opened.append(path)
        if len(opened) > 1:  # the log was opened, and is to be read
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), path)
        return real(path, flags, *rest, **named)

    monkeypatch.setattr(os, "open", used_up)
    again = node_on_asyncio(tmp_path)
    try:
        with pytest.raises(StartError, match="Too many open files"):
            again.start()
    finally:
        monkeypatch.undo()
        again.stop()


def test_a_start_on_a_full_disk_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(MetadataLog, "open", full)
    node = node_on_asyncio(tmp_path)
    try:
        with pytest.raises(StartError) as raised:
            node.start()
    finally:
        node.stop()
    assert str(raised.value) == f"{tmp_path}: No space left on device"


def test_a_directory_without_an_id_gets_one_for_good(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Of a data directory; where it holds the metadata, the quorum knows the node by it."""
    one, two = tmp_path / "one", tmp_path / "two"
    thread = node_on_asyncio(one, two)
    thread.start()
    thread.stop()

    def take_id(directory: Path) -> None:
        file = directory / "meta.properties"
        lines = file.read_text().splitlines(keepends=True)
        file.write_text("".join(line for line in lines if not line.startswith("directory.id")))

    take_id(two)
    texts = []
    for _ in range(2):
        thread = node_on_asyncio(one, two)
        thread.start()
        thread.stop()
        texts.append((two / "meta.properties").read_text())
    assert texts[0] == texts[1]
    assert sum(line.startswith("directory.id=") for line in texts[0].splitlines()) == 1
    take_id(one)
    config = BrokerConfig.load(
        overrides={"log.dirs": f"{one},{two}", "listeners": "PLAINTEXT://127.0.0.1:0"}
    )
    loop = new_event_loop(use_uvloop=False)
    node = Node(config, loop)
    starting = loop.create_task(node.start())
    with caplog.at_level("WARNING"):
        loop.run_until_complete(_until(lambda: "does not vote" in caplog.text))
    starting.cancel()
    loop.run_until_complete(asyncio.wait([starting]))
    loop.run_until_complete(node.stop())
    loop.close()


async def _until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.005)


def test_a_failed_start_does_not_note_a_clean_stop(tmp_path: Path) -> None:
    """What was killed still has to be recovered after a start that failed before the logs were."""
    thread = node_on_asyncio(tmp_path)
    thread.start()
    thread.stop()
    clean = tmp_path / ".kafka_cleanshutdown"
    assert clean.exists()
    clean.unlink()  # as after a kill
    config = BrokerConfig.load(
        overrides={"log.dirs": str(tmp_path), "listeners": "PLAINTEXT://192.0.2.1:1"}
    )
    loop = new_event_loop(use_uvloop=False)
    node = Node(config, loop)
    with pytest.raises(StartError, match=r"192\.0\.2\.1"):
        loop.run_until_complete(node.start())
    loop.run_until_complete(node.stop())
    loop.close()
    assert not clean.exists()


def test_creating_a_topic_syncs_nothing_on_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each new partition was synced by the loop's own thread once: others waited for the disk."""
    node = node_on_asyncio(tmp_path)
    bootstrap = node.start().bootstrap
    by: list[int | None] = []
    try:
        for name in ("fdatasync", "fsync"):
            real = getattr(os, name)
            monkeypatch.setattr(
                os, name, lambda fd, real=real: (by.append(threading.get_ident()), real(fd))[1]
            )
        with WireClient(bootstrap) as client:
            client.create_topic("t", partitions=20)
            for partition in range(20):
                produce_values(client, "t", partition, [b"v"])
            while len(by) < 40:  # the files of 20 partitions and the directories around them
                client.metadata([])
        synced = list(by)
    finally:
        node.stop()
    assert node.thread_id not in synced


@pytest.mark.parametrize(
    ("at", "byte", "message"),
    [
        (16, 3, "Invalid magic found in record: 3"),
        (16, 0x80, "Invalid magic found in record: -128"),
        (11, 13, "Record size 13 is less than the minimum record overhead (14)"),
        (8, 0xFF, "Record size -16777158 is less than the minimum record overhead (14)"),
        (11, 40, None),
        (17, 0, None),
    ],
)
def test_a_produce_says_why_its_bytes_are_no_batch(
    bootstrap: str, at: int, byte: int, message: str | None
) -> None:
    """The texts, and which errors have none, measured on Apache Kafka 4.4."""
    with WireClient(bootstrap) as client:
        client.create_topic("t")
        client.topic("t")
        batch = bytearray(batch_of([b"vv"]))
        batch[at] = byte if at != 17 else batch[17] ^ 1
        answer = client.call(produce_request("t", {0: bytes(batch)}), 9)
        (found,) = answer.responses[0].partition_responses
        assert (found.error_code, found.error_message) == (ErrorCode.CORRUPT_MESSAGE, message)
        assert (found.base_offset, found.log_start_offset) == (-1, -1)


def test_a_produce_of_null_records_is_refused(bootstrap: str) -> None:
    """Apache Kafka 4.4 never answers one: its client waits for the request's timeout."""
    with WireClient(bootstrap) as client:
        client.create_topic("t")
        client.topic("t")
        answer = client.call(produce_request("t", {0: None}), 9)  # type: ignore[dict-item]
        (found,) = answer.responses[0].partition_responses
        assert (found.error_code, found.error_message) == (ErrorCode.INVALID_RECORD, None)


class _NobodyMay:
    def authorize(self, *_: object) -> bool:
        return False


def test_who_may_not_ask_raft_is_refused_by_way_of_a_broker_too(tmp_path: Path) -> None:
    with node_on_asyncio(tmp_path) as thread, WireClient(thread.bootstrap) as client:
        thread.node.parts.authorizer = _NobodyMay()
        for request in (
            m.DescribeQuorumRequest(),
            m.AddRaftVoterRequest(),
            m.RemoveRaftVoterRequest(),
        ):
            answer = client.call(request, request.MAX_VERSION)
            assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED, request
