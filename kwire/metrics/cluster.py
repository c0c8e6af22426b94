"""The metadata quorum, the controller where this node's is active, and this broker in it."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from kwire.kraft.features import SUPPORTED_FEATURES
from kwire.kraft.images.cluster import BrokerImage
from kwire.kraft.images.image_publisher import ElectionCounts
from kwire.kraft.images.metadata_image import MetadataImage
from kwire.kraft.raft_driver import RaftDriver
from kwire.membership.lifecycle import BrokerLifecycle, State
from kwire.metrics.blocks import Value, encoded, single

CONTROLLER = "kafka_controller_kafkacontroller_"
RAFT = "kafka_server_raft_metrics_"
LOADER = "kafka_server_metadataloader_"
STATS = "kafka_controller_controllerstats_"
BROKER = "kafka_server_broker_metadata_metrics_"
NODE = "kafka_server_node_metrics_"
EMITTER = "kafka_server_snapshotemitter_"
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


def read_quorum(
    driver: RaftDriver | None, image: MetadataImage, published_ms: int, wall_ms: int
) -> Iterator[bytes]:
    """Raft, and what of the metadata this node has published; `published_ms` is the timestamp of
    the last of it, -1 for none."""
    if driver is not None:
        yield from _read_raft(driver)
        yield single(
            {
                f"{LOADER}currentcontrollerid": NO_LEADER
                if driver.leader_id is None
                else driver.leader_id,
                f"{LOADER}handleloadsnapshotcount": driver.counts.snapshots_loaded,
                f"{EMITTER}latestsnapshotgeneratedbytes": driver.snapshotter.written_bytes,
                f"{EMITTER}latestsnapshotgeneratedagems": max(
                    0, driver.now_ms - driver.snapshotter.written_at_ms
                ),
            }
        )
    features = image.features.finalized
    yield encoded(
        ("featureName",),
        (f"{LOADER}finalizedlevel",),
        [(_camel_case(name), level) for name, level in sorted(features.items())],
    )
    yield single(
        {
            f"{LOADER}currentmetadataversion": features.get("metadata.version", 0),
            f"{BROKER}last_applied_record_offset": image.offset,
            f"{BROKER}last_applied_record_timestamp": published_ms,
            f"{BROKER}last_applied_record_lag_ms": _lag_ms(published_ms, wall_ms),
            f"{BROKER}metadata_apply_error_count": 0,
            f"{BROKER}metadata_load_error_count": 0,
        }
    )
    rows = [(_dashes(name), *levels) for name, levels in sorted(SUPPORTED_FEATURES.items())]
    names = (f"{NODE}minimum_supported_level", f"{NODE}maximum_supported_level")
    yield encoded(("feature_name",), names, rows)


def _lag_ms(published_ms: int, wall_ms: int) -> int:
    return max(0, wall_ms - published_ms) if published_ms >= 0 else 0


def _dashes(feature: str) -> str:
    """`metadata.version` -> `metadata-version`, as Apache Kafka tags it."""
    return feature.replace(".", "-")


def _read_raft(driver: RaftDriver) -> Iterator[bytes]:
    raft = driver.raft
    leader = raft.leader()
    values: dict[str, Value] = {
        f"{RAFT}current_epoch": raft.epoch,
        f"{RAFT}current_leader": NO_LEADER if raft.leader_id is None else raft.leader_id,
        f"{RAFT}high_watermark": raft.log.high_watermark,
        f"{RAFT}log_end_offset": raft.log.end_offset,
        f"{RAFT}number_of_voters": len(raft.voters.voters.ids),
        f"{RAFT}current_vote": -1 if raft.role.voted is None else raft.role.voted.id,
        f"{RAFT}log_end_epoch": raft.log.last_epoch,
        "kwire_raft_appended_records_total": driver.counts.appended_records,
        "kwire_raft_fetched_records_total": driver.counts.fetched_records,
    }
    for name, times_s in (
        ("commit", driver.counts.commit_times_s),
        ("election", driver.counts.election_times_s),
    ):
        average, longest = average_and_max_ms(times_s)
        values[f"{RAFT}{name}_latency_avg"] = average
        values[f"{RAFT}{name}_latency_max"] = longest
    if leader is not None:
        values[f"{RAFT}number_of_observers"] = len(leader.observers)
        values[f"{RAFT}uncommitted_voter_change"] = int(leader.pending_change is not None)
    yield single(values)
    state = raft.role.name.value.lower()
    yield encoded(("state",), ("kafka_server_raftmetrics_current_state",), [(state, 1)])


def average_and_max_ms(times_s: Collection[float]) -> tuple[float, float]:
    """Of the last times; 0 without any."""
    if not times_s:
        return 0.0, 0.0
    return round(sum(times_s) / len(times_s) * 1000, 3), round(max(times_s) * 1000, 3)


def read_controller(
    driver: RaftDriver | None, image: MetadataImage, elections: ElectionCounts, published_ms: int
) -> Iterator[bytes]:
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
            f"{CONTROLLER}lastappliedrecordtimestamp": published_ms,
            f"{CONTROLLER}lastappliedrecordlagms": 0
            if is_active
            else _lag_ms(published_ms, driver.clock.wall_ms()),
            f"{CONTROLLER}newactivecontrollerscount": driver.counts.leaders,
            f"{CONTROLLER}timedoutbrokerheartbeatcount": 0,
            f"{STATS}uncleanleaderelections_total": elections.unclean,
            f"{STATS}electionfromeligibleleaderreplicas_total": elections.of_eligible,
        }
    )
    yield encoded(
        ("broker",),
        (f"{CONTROLLER}brokerregistrationstate",),
        [(str(broker_id), _registration_state(x)) for broker_id, x in image.brokers.items()],
    )
    if is_active:
        silences = driver.runner.controller.silences_ms(driver.now_ms)
        yield encoded(
            ("broker",),
            (f"{CONTROLLER}timesincelastheartbeatreceivedms",),
            [(str(broker_id), silence_ms) for broker_id, silence_ms in silences],
        )


def _registration_state(broker: BrokerImage) -> int:
    """As Apache Kafka 4.4 numbers them."""
    if broker.fenced:
        return 10
    return 20 if broker.in_controlled_shutdown else 30


def read_broker(lifecycle: BrokerLifecycle) -> Iterator[bytes]:
    """The state of this broker."""
    yield single({"kafka_server_kafkaserver_brokerstate": BROKER_STATES[lifecycle.state]})


def _camel_case(feature: str) -> str:
    """`metadata.version` -> `metadataVersion`."""
    first, *others = feature.split(".")
    return first + "".join(each.capitalize() for each in others)
