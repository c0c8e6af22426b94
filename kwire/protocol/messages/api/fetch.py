"""Generated from `schema/api/fetch.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Records, Request, Struct, Tagged, Tags
from kwire.protocol.uuids import ZERO


class FetchRequest(Request["FetchResponse"]):
    """FetchRequest, versions 4-18: a request."""

    __slots__ = (
        "forgotten_topics_data",
        "isolation_level",
        "max_bytes",
        "max_wait_ms",
        "min_bytes",
        "rack_id",
        "replica_id",
        "session_epoch",
        "session_id",
        "topics",
    )
    FIELDS = (
        "cluster_id",
        "replica_id",
        "replica_state",
        "max_wait_ms",
        "min_bytes",
        "max_bytes",
        "isolation_level",
        "session_id",
        "session_epoch",
        "topics",
        "forgotten_topics_data",
        "rack_id",
    )
    API_KEY = 1
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 4, 18

    class ReplicaState(Struct):
        __slots__ = ("replica_epoch", "replica_id")
        FIELDS = ("replica_id", "replica_epoch")

        def __init__(
            self,
            *,
            replica_id: int = -1,
            replica_epoch: int = -1,
            unknown_tags: Tags = (),
        ) -> None:
            self.replica_id = replica_id
            self.replica_epoch = replica_epoch
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class FetchTopic(Struct):
        __slots__ = ("partitions", "topic", "topic_id")
        FIELDS = ("topic", "topic_id", "partitions")

        def __init__(
            self,
            *,
            topic: str = "",
            topic_id: bytes = ZERO,
            partitions: list[FetchRequest.FetchPartition] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic = topic
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class FetchPartition(Struct):
        __slots__ = (
            "current_leader_epoch",
            "fetch_offset",
            "last_fetched_epoch",
            "log_start_offset",
            "partition",
            "partition_max_bytes",
        )
        FIELDS = (
            "partition",
            "current_leader_epoch",
            "fetch_offset",
            "last_fetched_epoch",
            "log_start_offset",
            "partition_max_bytes",
            "replica_directory_id",
            "high_watermark",
        )

        replica_directory_id = Tagged["bytes"](ZERO)
        high_watermark = Tagged["int"](9223372036854775807)

        def __init__(
            self,
            *,
            partition: int = 0,
            current_leader_epoch: int = -1,
            fetch_offset: int = 0,
            last_fetched_epoch: int = -1,
            log_start_offset: int = -1,
            partition_max_bytes: int = 0,
            replica_directory_id: bytes = UNSET,
            high_watermark: int = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.partition = partition
            self.current_leader_epoch = current_leader_epoch
            self.fetch_offset = fetch_offset
            self.last_fetched_epoch = last_fetched_epoch
            self.log_start_offset = log_start_offset
            self.partition_max_bytes = partition_max_bytes
            self._tagged = None
            if replica_directory_id is not UNSET:
                self.replica_directory_id = replica_directory_id
            if high_watermark is not UNSET:
                self.high_watermark = high_watermark
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class ForgottenTopic(Struct):
        __slots__ = ("partitions", "topic", "topic_id")
        FIELDS = ("topic", "topic_id", "partitions")

        def __init__(
            self,
            *,
            topic: str = "",
            topic_id: bytes = ZERO,
            partitions: list[int] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic = topic
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    cluster_id = Tagged["str | None"](None)
    replica_state = Tagged["FetchRequest.ReplicaState"](maker=lambda: FetchRequest.ReplicaState())

    def __init__(
        self,
        *,
        replica_id: int = -1,
        max_wait_ms: int = 0,
        min_bytes: int = 0,
        max_bytes: int = 2147483647,
        isolation_level: int = 0,
        session_id: int = 0,
        session_epoch: int = -1,
        topics: list[FetchRequest.FetchTopic] = UNSET,
        forgotten_topics_data: list[FetchRequest.ForgottenTopic] = UNSET,
        rack_id: str = "",
        cluster_id: str | None = UNSET,
        replica_state: FetchRequest.ReplicaState = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.replica_id = replica_id
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.isolation_level = isolation_level
        self.session_id = session_id
        self.session_epoch = session_epoch
        self.topics = [] if topics is UNSET else topics
        self.forgotten_topics_data = [] if forgotten_topics_data is UNSET else forgotten_topics_data
        self.rack_id = rack_id
        self._tagged = None
        if cluster_id is not UNSET:
            self.cluster_id = cluster_id
        if replica_state is not UNSET:
            self.replica_state = replica_state
        if unknown_tags:
            self.unknown_tags = unknown_tags


class FetchResponse(Message):
    """FetchResponse, versions 4-18: a response."""

    __slots__ = ("error_code", "responses", "session_id", "throttle_time_ms")
    FIELDS = ("throttle_time_ms", "error_code", "session_id", "responses", "node_endpoints")
    API_KEY = 1
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 4, 18

    class FetchableTopicResponse(Struct):
        __slots__ = ("partitions", "topic", "topic_id")
        FIELDS = ("topic", "topic_id", "partitions")

        def __init__(
            self,
            *,
            topic: str = "",
            topic_id: bytes = ZERO,
            partitions: list[FetchResponse.PartitionData] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic = topic
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class PartitionData(Struct):
        __slots__ = (
            "aborted_transactions",
            "error_code",
            "high_watermark",
            "last_stable_offset",
            "log_start_offset",
            "partition_index",
            "preferred_read_replica",
            "records",
        )
        FIELDS = (
            "partition_index",
            "error_code",
            "high_watermark",
            "last_stable_offset",
            "log_start_offset",
            "diverging_epoch",
            "current_leader",
            "snapshot_id",
            "aborted_transactions",
            "preferred_read_replica",
            "records",
        )

        diverging_epoch = Tagged["FetchResponse.EpochEndOffset"](
            maker=lambda: FetchResponse.EpochEndOffset()
        )
        current_leader = Tagged["FetchResponse.LeaderIdAndEpoch"](
            maker=lambda: FetchResponse.LeaderIdAndEpoch()
        )
        snapshot_id = Tagged["FetchResponse.SnapshotId"](maker=lambda: FetchResponse.SnapshotId())

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            high_watermark: int = 0,
            last_stable_offset: int = -1,
            log_start_offset: int = -1,
            aborted_transactions: list[FetchResponse.AbortedTransaction] | None = UNSET,
            preferred_read_replica: int = -1,
            records: Records | None = None,
            diverging_epoch: FetchResponse.EpochEndOffset = UNSET,
            current_leader: FetchResponse.LeaderIdAndEpoch = UNSET,
            snapshot_id: FetchResponse.SnapshotId = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.partition_index = partition_index
            self.error_code = error_code
            self.high_watermark = high_watermark
            self.last_stable_offset = last_stable_offset
            self.log_start_offset = log_start_offset
            self.aborted_transactions = (
                [] if aborted_transactions is UNSET else aborted_transactions
            )
            self.preferred_read_replica = preferred_read_replica
            self.records = records
            self._tagged = None
            if diverging_epoch is not UNSET:
                self.diverging_epoch = diverging_epoch
            if current_leader is not UNSET:
                self.current_leader = current_leader
            if snapshot_id is not UNSET:
                self.snapshot_id = snapshot_id
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class EpochEndOffset(Struct):
        __slots__ = ("end_offset", "epoch")
        FIELDS = ("epoch", "end_offset")

        def __init__(
            self,
            *,
            epoch: int = -1,
            end_offset: int = -1,
            unknown_tags: Tags = (),
        ) -> None:
            self.epoch = epoch
            self.end_offset = end_offset
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class LeaderIdAndEpoch(Struct):
        __slots__ = ("leader_epoch", "leader_id")
        FIELDS = ("leader_id", "leader_epoch")

        def __init__(
            self,
            *,
            leader_id: int = -1,
            leader_epoch: int = -1,
            unknown_tags: Tags = (),
        ) -> None:
            self.leader_id = leader_id
            self.leader_epoch = leader_epoch
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class SnapshotId(Struct):
        __slots__ = ("end_offset", "epoch")
        FIELDS = ("end_offset", "epoch")

        def __init__(
            self,
            *,
            end_offset: int = -1,
            epoch: int = -1,
            unknown_tags: Tags = (),
        ) -> None:
            self.end_offset = end_offset
            self.epoch = epoch
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class AbortedTransaction(Struct):
        __slots__ = ("first_offset", "producer_id")
        FIELDS = ("producer_id", "first_offset")

        def __init__(
            self,
            *,
            producer_id: int = 0,
            first_offset: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.producer_id = producer_id
            self.first_offset = first_offset
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class NodeEndpoint(Struct):
        __slots__ = ("host", "node_id", "port", "rack")
        FIELDS = ("node_id", "host", "port", "rack")

        def __init__(
            self,
            *,
            node_id: int = 0,
            host: str = "",
            port: int = 0,
            rack: str | None = None,
            unknown_tags: Tags = (),
        ) -> None:
            self.node_id = node_id
            self.host = host
            self.port = port
            self.rack = rack
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    node_endpoints = Tagged["list[FetchResponse.NodeEndpoint]"](maker=list)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        session_id: int = 0,
        responses: list[FetchResponse.FetchableTopicResponse] = UNSET,
        node_endpoints: list[FetchResponse.NodeEndpoint] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.session_id = session_id
        self.responses = [] if responses is UNSET else responses
        self._tagged = None
        if node_endpoints is not UNSET:
            self.node_endpoints = node_endpoints
        if unknown_tags:
            self.unknown_tags = unknown_tags
