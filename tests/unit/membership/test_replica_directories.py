"""Several log directories: placement, moves by request, one that fails beside one that serves."""

from __future__ import annotations

import errno
import functools
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kwire.log.files import SystemFiles
from kwire.node.node import StartError
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.testing.cluster import NodeInThread, wait_for
from tests.support.wire import WireClient, batch_of, fetch_values, produce_request, produce_values


class FailingFiles(SystemFiles):
    """Files whose syncs fail below one path."""

    def __init__(self) -> None:
        super().__init__()
        self.failing = "/nowhere"
        self.paths: dict[int, str] = {}
        self.failed_syncs: list[str] = []
        self.unreadable = "/nowhere"

    def _check(self, path: str) -> None:
        if path.startswith(self.unreadable):
            raise OSError(errno.EIO, "input/output error", path)

    def read_file(self, path: str) -> bytes:
        self._check(path)
        return super().read_file(path)

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> int:
        handle = super().open(path, create=create, writable=writable)
        self.paths[handle] = path
        return handle

    def fdatasync(self, handle: int) -> None:
        if self.paths.get(handle, "").startswith(self.failing):
            self.failed_syncs.append(self.paths[handle])
            raise OSError(errno.EIO, "input/output error", self.paths[handle])
        super().fdatasync(handle)


class TwoDirectories:
    """A node with the directories `one` (with the metadata) and `two`."""

    def __init__(self, path: Path) -> None:
        self.one, self.two = str(path / "one"), str(path / "two")
        self.files = FailingFiles()
        settings = {"log.flush.interval.messages": 1}
        self._thread = NodeInThread(self.one, self.two, settings=settings, files=self.files)
        self.node = self._thread.node
        self.fatal: list[str] = []
        self.node.on_fatal = self.fatal.append

    def start(self) -> str:
        return self._thread.start().bootstrap

    def stop(self) -> None:
        self._thread.stop()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[TwoDirectories]:
    broker = TwoDirectories(tmp_path)
    try:
        broker.bootstrap = broker.start()  # type: ignore[attr-defined]
        yield broker
    finally:
        broker.stop()


def directories(client: WireClient) -> dict[str, tuple[int, dict[str, int]]]:
    """Path -> (error, partition -> size)."""
    response = client.call(m.DescribeLogDirsRequest(topics=None), 4)
    return {
        result.log_dir: (
            result.error_code,
            {
                f"{topic.name}-{partition.partition_index}": partition.partition_size
                for topic in result.topics
                for partition in topic.partitions
            },
        )
        for result in response.results
    }


def produce_code(client: WireClient, partition: int) -> int:
    response = client.call(produce_request("t", {partition: batch_of([b"x"])}), 9)
    return int(response.responses[0].partition_responses[0].error_code)


def move(client: WireClient, path: str, topic: str, partition: int) -> int:
    request = m.AlterReplicaLogDirsRequest
    response = client.call(
        request(
            dirs=[
                request.AlterReplicaLogDir(
                    path=path,
                    topics=[
                        request.AlterReplicaLogDirTopic(name=topic, partitions=[partition]),
                    ],
                )
            ]
        ),
        2,
    )
    return int(response.results[0].partitions[0].error_code)


def assigned(broker: TwoDirectories, partition: int) -> bytes:
    found = broker.node.image.topics.by_name["t"].partitions[partition]
    return bytes(found.directories[0])


def is_assigned(broker: TwoDirectories, partition: int, directory: bytes) -> bool:
    return assigned(broker, partition) == directory


def directory_id(broker: TwoDirectories, path: str) -> bytes:
    return next(
        bytes(d.directory_id) for d in broker.node.log_manager.directories if d.path == path
    )


def test_partitions_are_spread_and_the_controller_knows_where(broker: TwoDirectories) -> None:
    with WireClient(broker.bootstrap) as client:  # type: ignore[attr-defined]
        client.create_topic("t", partitions=4)
        produce_values(client, "t", 0, [b"x"])
        found = directories(client)
        assert [len(partitions) for _, partitions in found.values()] == [2, 2]
        for partition in range(4):
            home = broker.node.log_manager.directory_of("t", partition)
            assert home is not None
            wait_for(
                functools.partial(is_assigned, broker, partition, home.directory_id),
                "the directory is known to the controller",
            )


def test_a_replica_is_moved_by_request(broker: TwoDirectories) -> None:
    with WireClient(broker.bootstrap) as client:  # type: ignore[attr-defined]
        client.create_topic("t")
        values = [b"%d" % number for number in range(20)]
        for value in values:
            produce_values(client, "t", 0, [value])
        home = broker.node.log_manager.directory_of("t", 0)
        assert home is not None
        target = broker.two if home.path == broker.one else broker.one
        assert move(client, target, "t", 0) == 0
        wait_for(
            lambda: "t-0" in directories(client)[target][1], "the replica is in its new directory"
        )
        wait_for(lambda: broker.node.log_manager.moves.moves == {}, "the move is over")
        produce_values(client, "t", 0, [b"later"])
        assert fetch_values(client, "t", 0) == [*values, b"later"]
        wait_for(
            lambda: assigned(broker, 0) == directory_id(broker, target),
            "the controller knows the new directory",
        )
        assert move(client, "/elsewhere", "t", 0) == ErrorCode.LOG_DIR_NOT_FOUND
        assert move(client, target, "unknown", 0) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert move(client, target, "t", 7) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_throttled_move_goes_on_after_a_restart(tmp_path: Path) -> None:
    """The rate is changed while the move is under way; a stop in the middle costs nothing."""
    values = [b"%d" % number for number in range(20)]
    broker = TwoDirectories(tmp_path)
    try:
        with WireClient(broker.start()) as client:
            client.create_topic("t")
            for value in values:
                produce_values(client, "t", 0, [value])
            alter_rate(client, "0")
            wait_for(lambda: broker.node.log_manager.moves.rate_max == 0, "the throttle is gone")
            home = broker.node.log_manager.directory_of("t", 0)
            assert home is not None
            source, target = home.path, {broker.one: broker.two, broker.two: broker.one}[home.path]
            # More than is left for the turn that switches over.
            produce_values(client, "t", 0, [bytes(900_000)])
            produce_values(client, "t", 0, [bytes(900_000)])
            assert move(client, target, "t", 0) == 0
            assert broker.node.log_manager.moves.moves
    finally:
        broker.stop()
    broker = TwoDirectories(tmp_path)
    try:
        with WireClient(broker.start()) as client:
            assert list(broker.node.log_manager.moves.moves) == [("t", 0)]
            assert "t-0" in directories(client)[source][1]
            alter_rate(client, str(1 << 40))
            wait_for(
                lambda: "t-0" in directories(client)[target][1],
                "the replica is in its new directory",
            )
            wait_for(lambda: broker.node.log_manager.moves.moves == {}, "the move is over")
            produce_values(client, "t", 0, [b"later"])
            assert fetch_values(client, "t", 0) == [*values, *[bytes(900_000)] * 2, b"later"]
            wait_for(
                lambda: assigned(broker, 0) == directory_id(broker, target),
                "the controller knows the new directory",
            )
    finally:
        broker.stop()


def alter_rate(client: WireClient, value: str) -> None:
    """Change the limit of moves for the whole cluster."""
    shape = m.IncrementalAlterConfigsRequest
    config = shape.AlterableConfig(
        name="replica.alter.log.dirs.io.max.bytes.per.second", config_operation=0, value=value
    )
    resource = shape.AlterConfigsResource(resource_type=4, resource_name="", configs=[config])
    response = client.call(shape(resources=[resource], validate_only=False), 1)
    assert response.responses[0].error_code == 0


def test_one_failed_directory_leaves_the_other_serving(broker: TwoDirectories) -> None:
    with WireClient(broker.bootstrap) as client:  # type: ignore[attr-defined]
        client.create_topic("t", partitions=2)
        for partition in (0, 1):
            produce_values(client, "t", partition, [b"before"])
        bad = next(p for p in (0, 1) if f"t-{p}" in directories(client)[broker.two][1])
        wait_for(
            lambda: assigned(broker, bad) == directory_id(broker, broker.two),
            "the controller knows the directory",
        )
        broker.files.failing = broker.two
        assert produce_code(client, bad) == ErrorCode.KAFKA_STORAGE_ERROR
        assert produce_code(client, 1 - bad) == 0
        assert directories(client)[broker.two][0] == ErrorCode.KAFKA_STORAGE_ERROR
        assert directories(client)[broker.one][0] == 0
        # The controller takes the leadership away: there is no replica elsewhere.
        wait_for(
            lambda: broker.node.image.topics.by_name["t"].partitions[bad].leader == -1,
            "the partition has no leader",
        )
        assert broker.node.image.topics.by_name["t"].partitions[1 - bad].leader == 1
        assert move(client, broker.two, "t", 1 - bad) == ErrorCode.KAFKA_STORAGE_ERROR
        client.create_topic("after", partitions=3)
        produce_values(client, "after", 2, [b"x"])
        assert len([p for p in directories(client)[broker.one][1] if p.startswith("after")]) == 3
        assert len(broker.files.failed_syncs) == 1  # never tried again
        assert broker.fatal == []


def test_the_node_ends_when_the_directory_with_the_metadata_fails(broker: TwoDirectories) -> None:
    with WireClient(broker.bootstrap) as client:  # type: ignore[attr-defined]
        client.create_topic("t", partitions=2)
        good = next(p for p in (0, 1) if f"t-{p}" in directories(client)[broker.one][1])
        broker.files.failing = f"{broker.one}/t-"
        assert produce_code(client, good) == ErrorCode.KAFKA_STORAGE_ERROR
        wait_for(lambda: bool(broker.fatal), "the node ends")
        assert broker.one in broker.fatal[0]
        broker.files.failing = "/nowhere"


@pytest.mark.parametrize("what", ["directory", "file"])
def test_replicas_of_a_directory_that_fails_at_the_start_are_not_made_anew_elsewhere(
    what: str, tmp_path: Path
) -> None:
    """Empty logs in the other directory hid all records and gave their offsets anew."""
    broker = TwoDirectories(tmp_path)
    try:
        with WireClient(broker.start()) as client:
            client.create_topic("t", partitions=2)
            for partition in (0, 1):
                produce_values(client, "t", partition, [b"before"])
            bad = next(p for p in (0, 1) if f"t-{p}" in directories(client)[broker.two][1])
            wait_for(
                lambda: assigned(broker, bad) == directory_id(broker, broker.two),
                "the controller knows the directory",
            )
    finally:
        broker.stop()
    broker = TwoDirectories(tmp_path)
    broken = f"{broker.two}/meta.properties" if what == "directory" else f"{broker.two}/t-{bad}/"
    broker.files.unreadable = broken
    try:
        with WireClient(broker.start()) as client:
            assert directories(client)[broker.two][0] == ErrorCode.KAFKA_STORAGE_ERROR
            assert f"t-{bad}" not in directories(client)[broker.one][1]
            wait_for(
                lambda: broker.node.image.topics.by_name["t"].partitions[bad].leader == -1,
                "the partition has no leader",
            )
            assert produce_code(client, bad) != 0
            assert fetch_values(client, "t", 1 - bad) == [b"before"]
            assert produce_code(client, 1 - bad) == 0
        assert broker.fatal == []
    finally:
        broker.stop()
    broker = TwoDirectories(tmp_path)
    try:
        with WireClient(broker.start()) as client:
            assert fetch_values(client, "t", bad) == [b"before"]
            assert produce_code(client, bad) == 0
            assert fetch_values(client, "t", 1 - bad) == [b"before", b"x"]
    finally:
        broker.stop()


def test_the_node_does_not_start_without_the_directory_of_the_metadata(tmp_path: Path) -> None:
    broker = TwoDirectories(tmp_path)
    broker.start()
    broker.stop()
    broker = TwoDirectories(tmp_path)
    broker.files.unreadable = f"{broker.one}/meta.properties"
    try:
        with pytest.raises(StartError, match=f"{broker.one}, which holds the metadata"):
            broker.start()
    finally:
        broker.stop()


def test_a_replica_whose_log_is_gone_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broker = TwoDirectories(tmp_path)
    try:
        with WireClient(broker.start()) as client:
            client.create_topic("t", partitions=2)
            found = directories(client)
            gone = next(path for path in found if "t-1" in found[path][1])
    finally:
        broker.stop()
    shutil.rmtree(f"{gone}/t-1")
    broker = TwoDirectories(tmp_path)
    try:
        broker.start()
        assert "no log of t-1 is in any log directory" in caplog.text
        assert "t-0" not in caplog.text
    finally:
        broker.stop()
