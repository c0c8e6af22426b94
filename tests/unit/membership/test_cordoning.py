"""Cordoned log directories of a node: static ones, older metadata versions, stored values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from kwire.config.broker_config import BrokerConfig
from kwire.config.errors import ConfigError
from kwire.node.node import Node
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.testing.cluster import NodeInThread, wait_for
from tests.support.wire import WireClient

BROKER, SET, DELETE = 4, 0, 1
BEFORE_CORDONING, LATEST = 29, 33
NAMES = ("d1", "d2", "d3")
REQUIRES = (
    "The cordoned.log.dirs configuration value cannot be set because it requires "
    "metadata.version >= 4.3-IV0"
)


class Served:
    """A node with some log directories of three, and questions to it."""

    def __init__(self, base: Path, node: Node, client: WireClient) -> None:
        self.base, self.node, self.client = base, node, client

    def cordoned(self) -> list[str]:
        results = self.client.call(m.DescribeLogDirsRequest(topics=None), 5).results
        return sorted(Path(result.log_dir).name for result in results if result.is_cordoned)

    def registered(self) -> list[str]:
        """What the controller knows to be cordoned."""
        ids = self.node.image.brokers[self.node.broker_id].cordoned_directories or ()
        manager = self.node.log_manager
        return sorted(Path(d.path).name for d in manager.directories if d.directory_id in ids)

    def wait_until_registered(self, names: list[str]) -> None:
        wait_for(lambda: self.registered() == names, f"{names} registered", timeout_s=20)

    def homes(self, topic: str) -> list[str]:
        logs = self.node.log_manager.logs()
        homes = [self.node.log_manager.directory_of(log.topic, log.partition) for log in logs]
        return sorted(
            {Path(home.path).name for log, home in zip(logs, homes) if log.topic == topic and home}
        )

    def create(self, topic: str) -> None:
        self.client.create_topic(topic, partitions=6)

    def set(self, operation: int, value: str | None) -> tuple[int, str | None]:
        shape = m.IncrementalAlterConfigsRequest
        config = shape.AlterableConfig(
            name="cordoned.log.dirs", config_operation=operation, value=value
        )
        resource = shape.AlterConfigsResource(
            resource_type=BROKER, resource_name=str(self.node.broker_id), configs=[config]
        )
        request = shape(resources=[resource], validate_only=False)
        result = self.client.call(request, 1).responses[0]
        return result.error_code, result.error_message


@contextmanager
def served(
    base: Path,
    names: tuple[str, ...] = NAMES,
    settings: Mapping[str, str] | None = None,
    features: Mapping[str, int] | None = None,
) -> Iterator[Served]:
    directories = [base / name for name in names]
    with (
        NodeInThread(*directories, settings=settings, features=features) as thread,
        WireClient(thread.bootstrap) as client,
    ):
        yield Served(base, thread.node, client)


def test_a_static_setting_cordons_from_the_start_and_a_dynamic_one_wins(tmp_path: Path) -> None:
    static = {"cordoned.log.dirs": str(tmp_path / "d2")}
    with served(tmp_path, settings=static) as broker:
        assert broker.cordoned() == ["d2"]
        broker.wait_until_registered(["d2"])
        broker.create("t")
        assert broker.homes("t") == ["d1", "d3"]
        assert broker.set(SET, "*") == (0, None)
        broker.wait_until_registered(["d1", "d2", "d3"])
    with served(tmp_path, settings=static) as broker:
        broker.wait_until_registered(["d1", "d2", "d3"])
        assert broker.cordoned() == ["d1", "d2", "d3"]
        assert broker.set(DELETE, None) == (0, None)
        broker.wait_until_registered(["d2"])


def test_below_its_metadata_version_only_the_broker_minds_a_static_setting(tmp_path: Path) -> None:
    """As Apache Kafka 4.4 formatted with --release-version 4.2-IV1 does."""
    static = {"cordoned.log.dirs": str(tmp_path / "d2")}
    features = {"metadata.version": BEFORE_CORDONING}
    with served(tmp_path, settings=static, features=features) as broker:
        broker.create("t")
        assert broker.homes("t") == ["d1", "d3"]
        assert (broker.cordoned(), broker.registered()) == ([], [])
        for operation, value in ((SET, "*"), (SET, ""), (DELETE, None)):
            assert broker.set(operation, value) == (ErrorCode.INVALID_CONFIG, REQUIRES)
        assert broker.set(SET, "/nope")[0] == ErrorCode.INVALID_REQUEST
        shape = m.UpdateFeaturesRequest
        update = shape.FeatureUpdateKey(
            feature="metadata.version", max_version_level=LATEST, upgrade_type=1
        )
        request = shape(feature_updates=[update], timeout_ms=10_000)
        assert broker.client.call(request, 2).error_code == 0
        broker.wait_until_registered(["d2"])
        assert broker.cordoned() == ["d2"]


def test_a_stored_value_with_what_is_no_log_directory_any_more_is_told_and_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A directory is cordoned, emptied, and taken out of log.dirs.

    Apache Kafka 4.4 applies none of the broker's dynamic settings then.
    """
    with served(tmp_path) as broker:
        value = f"{tmp_path}/d3,{tmp_path}/d2"
        assert broker.set(SET, value) == (0, None)
        broker.wait_until_registered(["d2", "d3"])
    with served(tmp_path, names=("d1", "d2")) as broker:
        broker.create("t")
        assert broker.homes("t") == ["d1", "d2"]
        assert (broker.cordoned(), broker.registered()) == ([], [])
    told = [one.getMessage() for one in caplog.records if "cordoned" in one.getMessage()]
    assert len(told) == 1
    assert f"cordoned.log.dirs={value} cannot be used" in told[0]
    assert f"Missing entries : {tmp_path}/d3" in told[0]


NEEDED = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
    "controller.quorum.bootstrap.servers": "localhost:9093",
}
MISSING = (
    "All entries in cordoned.log.dirs must be present in log.dirs or log.dir. Missing entries : "
)
ALONE = "When cordoned.log.dirs is set to *, it must not contain other values"


@pytest.mark.parametrize(
    ("log_dirs", "cordoned", "refusal"),
    [
        ("/a", "/nope", MISSING + "/nope"),
        ("/a,/b", "*,/a", ALONE),
        ("/a,/b", "/x,*", ALONE),
        ("/a,/b", "/a/", MISSING + "/a/"),
        ("/a/,/b", "/a", MISSING + "/a"),
        ("/a,/b", "/b,", "Configuration 'cordoned.log.dirs' values must not be empty."),
        ("/a,/b", "/b, /b", None),
        ("/a,/b", "*,*", None),
        (" /a , /b ", " /b ", None),
        ("/a,/b", "", None),
    ],
)
def test_static_values_are_checked_as_kafka_does(
    log_dirs: str, cordoned: str, refusal: str | None
) -> None:
    settings = {**NEEDED, "log.dirs": log_dirs, "cordoned.log.dirs": cordoned}
    if refusal is None:
        BrokerConfig.load(settings, developer=False)
        return
    with pytest.raises(ConfigError) as refused:
        BrokerConfig.load(settings, developer=False)
    assert str(refused.value).startswith(refusal)


def test_a_controller_alone_does_not_check_its_cordoned_directories() -> None:
    settings = {**NEEDED, "process.roles": "controller", "listeners": "CONTROLLER://localhost:9093"}
    settings |= {"log.dirs": "/a", "cordoned.log.dirs": "/nope"}
    assert BrokerConfig.load(settings, developer=False)["cordoned.log.dirs"] == ["/nope"]
