"""Metadata directories that Apache Kafka 4.4 wrote open and go on.

`kraft/clean.tar.gz` was stopped cleanly after four starts, `kraft/killed.tar.gz` was killed and
starts at a snapshot. Indexes are left out: they are rebuilt.
"""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest

from kwire.clock import SeededRandom
from kwire.config import BrokerConfig
from kwire.kraft.controller.config_rules import KafkaConfigRules
from kwire.kraft.controller.context import ControllerConfig, ControllerContext
from kwire.kraft.controller.controller import Controller
from kwire.kraft.images.image_publisher import ImagePublisher
from kwire.kraft.images.metadata_image import MetadataImage
from kwire.kraft.metadata_log import MetadataLog, metadata_log_config
from kwire.kraft.raft import RaftConfig
from kwire.kraft.raft.types import Endpoint
from kwire.kraft.raft_driver import RaftDriver
from kwire.kraft.snapshots.content import parse_snapshot
from kwire.log.directories.identity_files import parse_properties
from kwire.log.scheduling import ImmediateScheduler
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol import uuids

CONFIG = BrokerConfig.load(
    properties={"process.roles": "broker,controller", "node.id": "1"},
    environment={},
    developer=True,
)
GOLDEN = Path(__file__).parent / "kraft"
EXPECTED = {
    "clean": {"epoch": 5, "start": 0, "latest": (792, 4), "end": 794, "voters": [1]},
    "killed": {"epoch": 3, "start": 230, "latest": (350, 2), "end": 361, "voters": [1]},
}


class StillClock:
    def wall_ms(self) -> int:
        return 1_795_900_000_000

    def time(self) -> float:
        return 1.0


class NoNetwork:
    def send(self, node: int, api_key: int, request: Any, **_: Any) -> Pending[Any]:
        raise AssertionError(f"a request to {node}")

    def disconnect(self, node_id: int) -> None:
        pass


class Opened:
    def __init__(self, root: Path) -> None:
        properties = parse_properties((root / "meta.properties").read_bytes())
        clock, scheduler = StillClock(), ImmediateScheduler()
        self.log = MetadataLog.open(str(root), metadata_log_config(), clock, scheduler=scheduler)
        self.publisher = ImagePublisher()
        self.errors: list[Exception] = []
        node_id = int(properties["node.id"])
        self.controller = Controller(
            ControllerConfig(node_id, properties["cluster.id"], KafkaConfigRules(CONFIG)),
            SeededRandom(1),
        )
        self.state = self.log.log_state()
        self.history = self.log.voter_history(self.state, None)
        voter = self.history.voters.get(node_id)
        assert voter is not None
        self.driver = RaftDriver(
            RaftConfig(
                node_id,
                uuids.from_text(properties["directory.id"]),
                properties["cluster.id"],
                endpoints=voter.endpoints,
            ),
            self.log,
            sender=NoNetwork(),
            loop=clock,
            scheduler=scheduler,
            clock=clock,
            random=SeededRandom(1),
            controller=self.controller,
            on_fatal=self.errors.append,
        )
        self.driver.add_listener(self.publisher)
        self.driver.snapshotter.source = self.publisher
        self.driver.start()


@pytest.fixture(params=["clean", "killed"])
def case(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def root(case: str, tmp_path: Path) -> Path:
    with tarfile.open(GOLDEN / f"{case}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


def test_opens_and_leads(case: str, root: Path) -> None:
    opened = Opened(root)
    expected = EXPECTED[case]
    assert not opened.errors
    raft = opened.driver.raft
    assert raft.is_leader
    assert raft.epoch == expected["epoch"]
    assert opened.state.latest_snapshot == expected["latest"]
    assert raft.log.start_offset == expected["start"]
    assert raft.voters.voters.ids == expected["voters"]
    assert raft.voters.level == 1
    assert opened.state.end_offset == expected["end"]
    batch = next(iter(opened.log.read_batches(expected["end"], raft.log.end_offset)))
    assert batch.epoch == expected["epoch"], "the epoch begins at the log's former end"
    assert opened.publisher.image == opened.controller.image


def test_snapshots_are_what_the_image_says(case: str, root: Path) -> None:
    """Kafka's newest snapshot, loaded and written by us, holds the same state."""
    opened = Opened(root)
    latest = opened.state.latest_snapshot
    assert latest is not None
    theirs = parse_snapshot(opened.log.snapshots.read(latest))
    image = MetadataImage()
    image.load(theirs.records, latest.offset - 1, latest.epoch)
    again = MetadataImage()
    again.load([record for record, _ in image.to_records()], latest.offset - 1, latest.epoch)
    assert again == image
    assert theirs.kraft_version == 1
    assert theirs.voters == opened.driver.raft.voters.voters


def test_goes_on_from_there(case: str, root: Path) -> None:
    opened = Opened(root)
    runner = opened.driver.runner
    assert runner is not None
    request = m.AllocateProducerIdsRequest
    before = len(opened.publisher.image.topics.by_name)
    assert before > 5
    broker = opened.publisher.image.brokers[1]
    reply = runner.handle(
        request(broker_id=1, broker_epoch=broker.epoch), ControllerContext()
    ).result()
    assert reply.error_code == 0
    assert opened.driver.snapshotter.take()
    snapshot = opened.driver.raft.log.latest_snapshot
    assert snapshot is not None
    assert snapshot.epoch == opened.driver.raft.epoch
    opened.driver.stop()
    again = Opened(root)
    assert not again.errors
    assert again.publisher.image == again.controller.image
    assert again.publisher.image.next_producer_id == reply.producer_id_start + reply.producer_id_len
    assert len(again.publisher.image.topics.by_name) == before
    shutil.rmtree(root)


def test_a_changed_listener_is_written_down(case: str, root: Path) -> None:
    """The leader's own entry among the voters follows its configuration (Kafka 4.4 does so)."""
    opened = Opened(root)
    config = opened.driver.config
    opened.driver.stop()
    assert config.endpoints == opened.history.voters.endpoints(1)
    moved = Opened.__new__(Opened)
    clock, scheduler = StillClock(), ImmediateScheduler()
    moved.log = MetadataLog.open(str(root), metadata_log_config(), clock, scheduler=scheduler)
    endpoint = Endpoint("CONTROLLER", "127.0.0.1", 1)
    driver = RaftDriver(
        RaftConfig(1, config.directory_id, config.cluster_id, endpoints=(endpoint,)),
        moved.log,
        sender=NoNetwork(),
        loop=clock,
        scheduler=scheduler,
        clock=clock,
        random=SeededRandom(1),
    )
    driver.start()
    assert driver.raft.voters.voters.endpoints(1) == (endpoint,)
