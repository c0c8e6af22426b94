"""The quorum's part of a node's configuration (`controller.quorum.*`, `metadata.*`)."""

from __future__ import annotations

from kwire.config import BrokerConfig, ConfigError
from kwire.kraft.metadata_log import metadata_log_config
from kwire.kraft.raft import RaftConfig
from kwire.kraft.raft.types import Endpoint, Endpoints, ReplicaKey
from kwire.kraft.raft.voters import VoterNode, VoterSet
from kwire.kraft.snapshots.policy import SnapshotPolicy
from kwire.log.partition.config import LogConfig

CONTROLLER_ROLE = "controller"
FETCH_WAIT_MAX_MS = 500
"""A follower hears from its leader at least that often, and twice in its fetch timeout."""


def split_address(text: str, setting: str) -> tuple[str, int]:
    """`HOST:PORT` or `[HOST]:PORT`; raises ConfigError."""
    host, _, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if not host or not port.isdecimal() or int(port) > 65535:
        raise ConfigError(f"Invalid value {text} for configuration {setting}: not HOST:PORT")
    return host, int(port)


def static_voters(config: BrokerConfig, listener_name: str) -> VoterSet | None:
    """The voters of `controller.quorum.voters`, None where it is not set."""
    setting = "controller.quorum.voters"
    entries: list[str] = config[setting] or []
    nodes = []
    for entry in entries:
        node_id, at, address = entry.partition("@")
        if not at or not node_id.isdecimal():
            raise ConfigError(
                f"Invalid value {entry} for configuration {setting}: not ID@HOST:PORT"
            )
        host, port = split_address(address, setting)
        nodes.append(
            VoterNode(ReplicaKey(int(node_id)), (Endpoint(listener_name, host, port),), 0, 0)
        )
    return VoterSet(nodes) if nodes else None


def raft_config(
    config: BrokerConfig,
    *,
    cluster_id: str,
    directory_id: bytes,
    endpoints: Endpoints,
    roles: tuple[str, ...],
) -> RaftConfig:
    """This node's place in the quorum.

    `endpoints` are the advertised controller listeners of this node (none on a broker),
    `directory_id` that of the directory with the metadata log. Raises ConfigError.
    """
    names: list[str] = config["controller.listener.names"] or [CONTROLLER_ROLE.upper()]
    servers: list[str] = config["controller.quorum.bootstrap.servers"] or []
    bootstrap = tuple(
        split_address(server, "controller.quorum.bootstrap.servers") for server in servers
    )
    fetch_timeout_ms: int = config["controller.quorum.fetch.timeout.ms"]
    return RaftConfig(
        node_id=config.node_id,
        directory_id=directory_id,
        cluster_id=cluster_id,
        listener_name=names[0],
        endpoints=endpoints,
        bootstrap_servers=bootstrap,
        static_voters=static_voters(config, names[0]),
        can_be_voter=CONTROLLER_ROLE in roles,
        auto_join=config["controller.quorum.auto.join.enable"],
        election_timeout_ms=config["controller.quorum.election.timeout.ms"],
        election_backoff_max_ms=config["controller.quorum.election.backoff.max.ms"],
        fetch_timeout_ms=fetch_timeout_ms,
        fetch_wait_max_ms=min(FETCH_WAIT_MAX_MS, max(1, fetch_timeout_ms // 2)),
        request_timeout_ms=config["controller.quorum.request.timeout.ms"],
        retry_backoff_ms=config["controller.quorum.retry.backoff.ms"],
        fetch_bytes_max=config["controller.quorum.fetch.max.bytes"],
        fetch_snapshot_bytes_max=config["controller.quorum.fetch.snapshot.max.bytes"],
    )


def snapshot_policy(config: BrokerConfig) -> SnapshotPolicy:
    return SnapshotPolicy(
        bytes_between=config["metadata.log.max.record.bytes.between.snapshots"],
        interval_ms=config["metadata.log.max.snapshot.interval.ms"],
        retention_bytes=config["metadata.max.retention.bytes"],
        retention_ms=config["metadata.max.retention.ms"],
    )


def log_config(config: BrokerConfig) -> LogConfig:
    """The settings of the metadata log."""
    segment_bytes: int | None = config["internal.metadata.log.segment.bytes"]
    if segment_bytes is None:
        segment_bytes = config["metadata.log.segment.bytes"]
    return metadata_log_config(
        segment_bytes=segment_bytes, segment_ms=config["metadata.log.segment.ms"]
    )
