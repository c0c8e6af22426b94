"""Generated from `schema/api/streams_group_heartbeat.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags


class StreamsGroupHeartbeatRequest(Request["StreamsGroupHeartbeatResponse"]):
    """StreamsGroupHeartbeatRequest, versions 0-1: a request."""

    __slots__ = (
        "active_tasks",
        "client_tags",
        "endpoint_information_epoch",
        "group_id",
        "instance_id",
        "member_epoch",
        "member_id",
        "process_id",
        "rack_id",
        "rebalance_timeout_ms",
        "shutdown_application",
        "standby_tasks",
        "task_end_offsets",
        "task_offsets",
        "topology",
        "user_endpoint",
        "warmup_tasks",
    )
    FIELDS = (
        "group_id",
        "member_id",
        "member_epoch",
        "endpoint_information_epoch",
        "instance_id",
        "rack_id",
        "rebalance_timeout_ms",
        "topology",
        "active_tasks",
        "standby_tasks",
        "warmup_tasks",
        "process_id",
        "user_endpoint",
        "client_tags",
        "task_offsets",
        "task_end_offsets",
        "shutdown_application",
    )
    API_KEY = 88
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 1

    class Topology(Struct):
        __slots__ = ("epoch", "subtopologies")
        FIELDS = ("epoch", "subtopologies")

        def __init__(
            self,
            *,
            epoch: int = 0,
            subtopologies: list[StreamsGroupHeartbeatRequest.Subtopology] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.epoch = epoch
            self.subtopologies = [] if subtopologies is UNSET else subtopologies
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class Subtopology(Struct):
        __slots__ = (
            "copartition_groups",
            "repartition_sink_topics",
            "repartition_source_topics",
            "source_topic_regex",
            "source_topics",
            "state_changelog_topics",
            "subtopology_id",
        )
        FIELDS = (
            "subtopology_id",
            "source_topics",
            "source_topic_regex",
            "state_changelog_topics",
            "repartition_sink_topics",
            "repartition_source_topics",
            "copartition_groups",
        )

        def __init__(
            self,
            *,
            subtopology_id: str = "",
            source_topics: list[str] = UNSET,
            source_topic_regex: list[str] = UNSET,
            state_changelog_topics: list[StreamsGroupHeartbeatRequest.TopicInfo] = UNSET,
            repartition_sink_topics: list[str] = UNSET,
            repartition_source_topics: list[StreamsGroupHeartbeatRequest.TopicInfo] = UNSET,
            copartition_groups: list[StreamsGroupHeartbeatRequest.CopartitionGroup] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.subtopology_id = subtopology_id
            self.source_topics = [] if source_topics is UNSET else source_topics
            self.source_topic_regex = [] if source_topic_regex is UNSET else source_topic_regex
            self.state_changelog_topics = (
                [] if state_changelog_topics is UNSET else state_changelog_topics
            )
            self.repartition_sink_topics = (
                [] if repartition_sink_topics is UNSET else repartition_sink_topics
            )
            self.repartition_source_topics = (
                [] if repartition_source_topics is UNSET else repartition_source_topics
            )
            self.copartition_groups = [] if copartition_groups is UNSET else copartition_groups
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class TopicInfo(Struct):
        __slots__ = ("name", "partitions", "replication_factor", "topic_configs")
        FIELDS = ("name", "partitions", "replication_factor", "topic_configs")

        def __init__(
            self,
            *,
            name: str = "",
            partitions: int = 0,
            replication_factor: int = 0,
            topic_configs: list[StreamsGroupHeartbeatRequest.KeyValue] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.partitions = partitions
            self.replication_factor = replication_factor
            self.topic_configs = [] if topic_configs is UNSET else topic_configs
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class CopartitionGroup(Struct):
        __slots__ = ("repartition_source_topics", "source_topic_regex", "source_topics")
        FIELDS = ("source_topics", "source_topic_regex", "repartition_source_topics")

        def __init__(
            self,
            *,
            source_topics: list[int] = UNSET,
            source_topic_regex: list[int] = UNSET,
            repartition_source_topics: list[int] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.source_topics = [] if source_topics is UNSET else source_topics
            self.source_topic_regex = [] if source_topic_regex is UNSET else source_topic_regex
            self.repartition_source_topics = (
                [] if repartition_source_topics is UNSET else repartition_source_topics
            )
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class TaskIds(Struct):
        __slots__ = ("partitions", "subtopology_id")
        FIELDS = ("subtopology_id", "partitions")

        def __init__(
            self,
            *,
            subtopology_id: str = "",
            partitions: list[int] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.subtopology_id = subtopology_id
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class Endpoint(Struct):
        __slots__ = ("host", "port")
        FIELDS = ("host", "port")

        def __init__(
            self,
            *,
            host: str = "",
            port: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.host = host
            self.port = port
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class KeyValue(Struct):
        __slots__ = ("key", "value")
        FIELDS = ("key", "value")

        def __init__(
            self,
            *,
            key: str = "",
            value: str = "",
            unknown_tags: Tags = (),
        ) -> None:
            self.key = key
            self.value = value
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class TaskOffset(Struct):
        __slots__ = ("offset", "partition", "subtopology_id")
        FIELDS = ("subtopology_id", "partition", "offset")

        def __init__(
            self,
            *,
            subtopology_id: str = "",
            partition: int = 0,
            offset: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.subtopology_id = subtopology_id
            self.partition = partition
            self.offset = offset
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        endpoint_information_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        rebalance_timeout_ms: int = -1,
        topology: StreamsGroupHeartbeatRequest.Topology | None = None,
        active_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None = None,
        standby_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None = None,
        warmup_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None = None,
        process_id: str | None = None,
        user_endpoint: StreamsGroupHeartbeatRequest.Endpoint | None = None,
        client_tags: list[StreamsGroupHeartbeatRequest.KeyValue] | None = None,
        task_offsets: list[StreamsGroupHeartbeatRequest.TaskOffset] | None = None,
        task_end_offsets: list[StreamsGroupHeartbeatRequest.TaskOffset] | None = None,
        shutdown_application: bool = False,
        unknown_tags: Tags = (),
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.endpoint_information_epoch = endpoint_information_epoch
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.topology = topology
        self.active_tasks = active_tasks
        self.standby_tasks = standby_tasks
        self.warmup_tasks = warmup_tasks
        self.process_id = process_id
        self.user_endpoint = user_endpoint
        self.client_tags = client_tags
        self.task_offsets = task_offsets
        self.task_end_offsets = task_end_offsets
        self.shutdown_application = shutdown_application
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class StreamsGroupHeartbeatResponse(Message):
    """StreamsGroupHeartbeatResponse, versions 0-1: a response."""

    __slots__ = (
        "acceptable_recovery_lag",
        "acceptable_recovery_lag_legacy",
        "active_tasks",
        "endpoint_information_epoch",
        "error_code",
        "error_message",
        "heartbeat_interval_ms",
        "member_epoch",
        "member_id",
        "partitions_by_user_endpoint",
        "standby_tasks",
        "status",
        "task_offset_interval_ms",
        "throttle_time_ms",
        "topology_description_required",
        "warmup_tasks",
    )
    FIELDS = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "member_id",
        "member_epoch",
        "heartbeat_interval_ms",
        "acceptable_recovery_lag_legacy",
        "task_offset_interval_ms",
        "acceptable_recovery_lag",
        "status",
        "active_tasks",
        "standby_tasks",
        "warmup_tasks",
        "topology_description_required",
        "endpoint_information_epoch",
        "partitions_by_user_endpoint",
    )
    API_KEY = 88
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 1

    class Status(Struct):
        __slots__ = ("status_code", "status_detail")
        FIELDS = ("status_code", "status_detail")

        def __init__(
            self,
            *,
            status_code: int = 0,
            status_detail: str = "",
            unknown_tags: Tags = (),
        ) -> None:
            self.status_code = status_code
            self.status_detail = status_detail
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class TaskIds(Struct):
        __slots__ = ("partitions", "subtopology_id")
        FIELDS = ("subtopology_id", "partitions")

        def __init__(
            self,
            *,
            subtopology_id: str = "",
            partitions: list[int] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.subtopology_id = subtopology_id
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class EndpointToPartitions(Struct):
        __slots__ = ("active_partitions", "standby_partitions", "user_endpoint")
        FIELDS = ("user_endpoint", "active_partitions", "standby_partitions")

        def __init__(
            self,
            *,
            user_endpoint: StreamsGroupHeartbeatResponse.Endpoint = UNSET,
            active_partitions: list[StreamsGroupHeartbeatResponse.TopicPartition] = UNSET,
            standby_partitions: list[StreamsGroupHeartbeatResponse.TopicPartition] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.user_endpoint = (
                StreamsGroupHeartbeatResponse.Endpoint()
                if user_endpoint is UNSET
                else user_endpoint
            )
            self.active_partitions = [] if active_partitions is UNSET else active_partitions
            self.standby_partitions = [] if standby_partitions is UNSET else standby_partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class Endpoint(Struct):
        __slots__ = ("host", "port")
        FIELDS = ("host", "port")

        def __init__(
            self,
            *,
            host: str = "",
            port: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.host = host
            self.port = port
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class TopicPartition(Struct):
        __slots__ = ("partitions", "topic")
        FIELDS = ("topic", "partitions")

        def __init__(
            self,
            *,
            topic: str = "",
            partitions: list[int] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic = topic
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str = "",
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        acceptable_recovery_lag_legacy: int = 0,
        task_offset_interval_ms: int = 0,
        acceptable_recovery_lag: int = -1,
        status: list[StreamsGroupHeartbeatResponse.Status] | None = UNSET,
        active_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None = None,
        standby_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None = None,
        warmup_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None = None,
        topology_description_required: bool = False,
        endpoint_information_epoch: int = 0,
        partitions_by_user_endpoint: list[StreamsGroupHeartbeatResponse.EndpointToPartitions]
        | None = None,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.heartbeat_interval_ms = heartbeat_interval_ms
        self.acceptable_recovery_lag_legacy = acceptable_recovery_lag_legacy
        self.task_offset_interval_ms = task_offset_interval_ms
        self.acceptable_recovery_lag = acceptable_recovery_lag
        self.status = [] if status is UNSET else status
        self.active_tasks = active_tasks
        self.standby_tasks = standby_tasks
        self.warmup_tasks = warmup_tasks
        self.topology_description_required = topology_description_required
        self.endpoint_information_epoch = endpoint_information_epoch
        self.partitions_by_user_endpoint = partitions_by_user_endpoint
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
