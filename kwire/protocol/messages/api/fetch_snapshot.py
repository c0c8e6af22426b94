"""Generated from `schema/api/fetch_snapshot.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Records, Request, Struct, Tagged, Tags
from kwire.protocol.uuids import ZERO


class FetchSnapshotRequest(Request["FetchSnapshotResponse"]):
    """FetchSnapshotRequest, versions 0-1: a request."""

    __slots__ = ("max_bytes", "replica_id", "topics")
    FIELDS = ("cluster_id", "replica_id", "max_bytes", "topics")
    API_KEY = 59
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 1

    class TopicSnapshot(Struct):
        __slots__ = ("name", "partitions")
        FIELDS = ("name", "partitions")

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[FetchSnapshotRequest.PartitionSnapshot] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class PartitionSnapshot(Struct):
        __slots__ = ("current_leader_epoch", "partition", "position", "snapshot_id")
        FIELDS = (
            "partition",
            "current_leader_epoch",
            "snapshot_id",
            "position",
            "replica_directory_id",
        )

        replica_directory_id = Tagged["bytes"](ZERO)

        def __init__(
            self,
            *,
            partition: int = 0,
            current_leader_epoch: int = 0,
            snapshot_id: FetchSnapshotRequest.SnapshotId = UNSET,
            position: int = 0,
            replica_directory_id: bytes = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.partition = partition
            self.current_leader_epoch = current_leader_epoch
            self.snapshot_id = (
                FetchSnapshotRequest.SnapshotId() if snapshot_id is UNSET else snapshot_id
            )
            self.position = position
            self._tagged = None
            if replica_directory_id is not UNSET:
                self.replica_directory_id = replica_directory_id
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class SnapshotId(Struct):
        __slots__ = ("end_offset", "epoch")
        FIELDS = ("end_offset", "epoch")

        def __init__(
            self,
            *,
            end_offset: int = 0,
            epoch: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.end_offset = end_offset
            self.epoch = epoch
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    cluster_id = Tagged["str | None"](None)

    def __init__(
        self,
        *,
        replica_id: int = -1,
        max_bytes: int = 2147483647,
        topics: list[FetchSnapshotRequest.TopicSnapshot] = UNSET,
        cluster_id: str | None = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.replica_id = replica_id
        self.max_bytes = max_bytes
        self.topics = [] if topics is UNSET else topics
        self._tagged = None
        if cluster_id is not UNSET:
            self.cluster_id = cluster_id
        if unknown_tags:
            self.unknown_tags = unknown_tags


class FetchSnapshotResponse(Message):
    """FetchSnapshotResponse, versions 0-1: a response."""

    __slots__ = ("error_code", "throttle_time_ms", "topics")
    FIELDS = ("throttle_time_ms", "error_code", "topics", "node_endpoints")
    API_KEY = 59
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 1

    class TopicSnapshot(Struct):
        __slots__ = ("name", "partitions")
        FIELDS = ("name", "partitions")

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[FetchSnapshotResponse.PartitionSnapshot] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class PartitionSnapshot(Struct):
        __slots__ = ("error_code", "index", "position", "size", "snapshot_id", "unaligned_records")
        FIELDS = (
            "index",
            "error_code",
            "snapshot_id",
            "current_leader",
            "size",
            "position",
            "unaligned_records",
        )

        current_leader = Tagged["FetchSnapshotResponse.LeaderIdAndEpoch"](
            maker=lambda: FetchSnapshotResponse.LeaderIdAndEpoch()
        )

        def __init__(
            self,
            *,
            index: int = 0,
            error_code: int = 0,
            snapshot_id: FetchSnapshotResponse.SnapshotId = UNSET,
            size: int = 0,
            position: int = 0,
            unaligned_records: Records = b"",
            current_leader: FetchSnapshotResponse.LeaderIdAndEpoch = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.index = index
            self.error_code = error_code
            self.snapshot_id = (
                FetchSnapshotResponse.SnapshotId() if snapshot_id is UNSET else snapshot_id
            )
            self.size = size
            self.position = position
            self.unaligned_records = unaligned_records
            self._tagged = None
            if current_leader is not UNSET:
                self.current_leader = current_leader
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class SnapshotId(Struct):
        __slots__ = ("end_offset", "epoch")
        FIELDS = ("end_offset", "epoch")

        def __init__(
            self,
            *,
            end_offset: int = 0,
            epoch: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.end_offset = end_offset
            self.epoch = epoch
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class LeaderIdAndEpoch(Struct):
        __slots__ = ("leader_epoch", "leader_id")
        FIELDS = ("leader_id", "leader_epoch")

        def __init__(
            self,
            *,
            leader_id: int = 0,
            leader_epoch: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.leader_id = leader_id
            self.leader_epoch = leader_epoch
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class NodeEndpoint(Struct):
        __slots__ = ("host", "node_id", "port")
        FIELDS = ("node_id", "host", "port")

        def __init__(
            self,
            *,
            node_id: int = 0,
            host: str = "",
            port: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.node_id = node_id
            self.host = host
            self.port = port
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    node_endpoints = Tagged["list[FetchSnapshotResponse.NodeEndpoint]"](maker=list)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        topics: list[FetchSnapshotResponse.TopicSnapshot] = UNSET,
        node_endpoints: list[FetchSnapshotResponse.NodeEndpoint] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.topics = [] if topics is UNSET else topics
        self._tagged = None
        if node_endpoints is not UNSET:
            self.node_endpoints = node_endpoints
        if unknown_tags:
            self.unknown_tags = unknown_tags
