"""The metadata quorum, the controller where this node's is active, and this broker in it."""

from __future__ import annotations

from collections.abc import Iterator

from kwire.kraft.images.metadata_image import MetadataImage
from kwire.kraft.raft_driver import RaftDriver
from kwire.membership.lifecycle import BrokerLifecycle, State
from kwire.metrics.blocks import Value, encoded, single

CONTROLLER = "kafka_controller_kafkacontroller_"
RAFT = "kafka_server_raft_metrics_"
LOADER = "kafka_server_metadataloader_"
NO_LEADER = -1
PARTITIONS_A_TURN = 500

BROKER_STATES = {
    State.NEW: 0,
    State.REGISTERING: 1,
    State.FENCED: 2,
    State.RUNNING: 3,
    State.STOPPING: 6,
    State.STOPPED: 7,
}
"""As BrokerState of Apache Kafka 4.4 numbers them."""


def read_quorum(driver: RaftDriver | None, image: MetadataImage) -> Iterator[bytes]:
    """Raft, and what of the metadata this node has published."""
    if driver is not None:
        yield from _read_raft(driver)
    features = image.features.finalized
    yield encoded(
        ("featureName",),
        (f"{LOADER}finalizedlevel",),
        [(_camel_case(name), level) for name, level in sorted(features.items())],
    )
    yield single(
        {
            f"{LOADER}currentmetadataversion": features.get("metadata.version", 0),
            "kafka_server_broker_metadata_metrics_last_applied_record_offset": image.offset,
        }
    )


def _read_raft(driver: RaftDriver) -> Iterator[bytes]:
    raft = driver.raft
    leader = raft.leader()
    values: dict[str, Value] = {
        f"{RAFT}current_epoch": raft.epoch,
        f"{RAFT}current_leader": NO_LEADER if raft.leader_id is None else raft.leader_id,
        f"{RAFT}high_watermark": raft.log.high_watermark,
        f"{RAFT}log_end_offset": raft.log.end_offset,
        f"{RAFT}number_of_voters": len(raft.voters.voters.ids),
    }
    if leader is not None:
        values[f"{RAFT}number_of_observers"] = len(leader.observers)
    yield single(values)
    state = raft.role.name.value.lower()
    yield encoded(("state",), ("kafka_server_raftmetrics_current_state",), [(state, 1)])


def read_controller(driver: RaftDriver | None, image: MetadataImage) -> Iterator[bytes]:
    """What Apache Kafka shows on every controller; what only the active one knows is 0 elsewhere,
    also there."""
    if driver is None or driver.runner is None:
        return
    is_active = driver.is_active
    topics = list(image.topics.by_id.values())
    partitions = offline = imbalanced = seen = 0
    for topic in topics:
        for partition in topic.partitions.values():
            partitions += 1
            offline += partition.leader < 0
            imbalanced += not partition.has_preferred_leader
        seen += len(topic.partitions) + 1
        if seen >= PARTITIONS_A_TURN:
            seen = 0
            yield b""
    fenced = sum(1 for broker in image.brokers.values() if broker.fenced)
    leaving = sum(1 for broker in image.brokers.values() if broker.in_controlled_shutdown)
    yield single(
        {
            f"{CONTROLLER}activecontrollercount": int(is_active),
            f"{CONTROLLER}activebrokercount": len(image.brokers) - fenced,
            f"{CONTROLLER}fencedbrokercount": fenced,
            f"{CONTROLLER}controlledshutdownbrokercount": leaving,
            f"{CONTROLLER}globaltopiccount": len(topics),
            f"{CONTROLLER}globalpartitioncount": partitions,
            f"{CONTROLLER}offlinepartitionscount": offline,
            f"{CONTROLLER}preferredreplicaimbalancecount": imbalanced,
            f"{CONTROLLER}metadataerrorcount": 0,
            f"{CONTROLLER}lastappliedrecordoffset": image.offset,
            f"{CONTROLLER}lastcommittedrecordoffset": image.offset,
        }
    )


def read_broker(lifecycle: BrokerLifecycle) -> Iterator[bytes]:
    """The state of this broker."""
    yield single({"kafka_server_kafkaserver_brokerstate": BROKER_STATES[lifecycle.state]})


def _camel_case(feature: str) -> str:
    """`metadata.version` -> `metadataVersion`."""
    first, *others = feature.split(".")
    return first + "".join(each.capitalize() for each in others)
