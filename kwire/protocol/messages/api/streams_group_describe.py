"""Generated from `schema/api/streams_group_describe.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags


class StreamsGroupDescribeRequest(Request["StreamsGroupDescribeResponse"]):
    """StreamsGroupDescribeRequest, versions 0-1: a request."""

    __slots__ = ("group_ids", "include_authorized_operations", "include_topology_description")
    FIELDS = ("group_ids", "include_authorized_operations", "include_topology_description")
    API_KEY = 89
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 1

    def __init__(
        self,
        *,
        group_ids: list[str] = UNSET,
        include_authorized_operations: bool = False,
        include_topology_description: bool = False,
        unknown_tags: Tags = (),
    ) -> None:
        self.group_ids = [] if group_ids is UNSET else group_ids
        self.include_authorized_operations = include_authorized_operations
        self.include_topology_description = include_topology_description
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class StreamsGroupDescribeResponse(Message):
    """StreamsGroupDescribeResponse, versions 0-1: a response."""

    __slots__ = ("groups", "throttle_time_ms")
    FIELDS = ("throttle_time_ms", "groups")
    API_KEY = 89
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 1

    class DescribedGroup(Struct):
        __slots__ = (
            "assignment_epoch",
            "assignor_name",
            "authorized_operations",
            "error_code",
            "error_message",
            "group_epoch",
            "group_id",
            "group_state",
            "members",
            "topology",
            "topology_description",
            "topology_description_status",
        )
        FIELDS = (
            "error_code",
            "error_message",
            "group_id",
            "group_state",
            "group_epoch",
            "assignment_epoch",
            "topology",
            "members",
            "authorized_operations",
            "topology_description",
            "topology_description_status",
            "assignor_name",
        )

        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = None,
            group_id: str = "",
            group_state: str = "",
            group_epoch: int = 0,
            assignment_epoch: int = 0,
            topology: StreamsGroupDescribeResponse.Topology | None = None,
            members: list[StreamsGroupDescribeResponse.Member] = UNSET,
            authorized_operations: int = -2147483648,
            topology_description: StreamsGroupDescribeResponse.TopologyDescription | None = None,
            topology_description_status: int = 0,
            assignor_name: str | None = None,
            unknown_tags: Tags = (),
        ) -> None:
            self.error_code = error_code
            self.error_message = error_message
            self.group_id = group_id
            self.group_state = group_state
            self.group_epoch = group_epoch
            self.assignment_epoch = assignment_epoch
            self.topology = topology
            self.members = [] if members is UNSET else members
            self.authorized_operations = authorized_operations
            self.topology_description = topology_description
            self.topology_description_status = topology_description_status
            self.assignor_name = assignor_name
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class Topology(Struct):
        __slots__ = ("epoch", "subtopologies")
        FIELDS = ("epoch", "subtopologies")

        def __init__(
            self,
            *,
            epoch: int = 0,
            subtopologies: list[StreamsGroupDescribeResponse.Subtopology] | None = None,
            unknown_tags: Tags = (),
        ) -> None:
            self.epoch = epoch
            self.subtopologies = subtopologies
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class Subtopology(Struct):
        __slots__ = (
            "repartition_sink_topics",
            "repartition_source_topics",
            "source_topics",
            "state_changelog_topics",
            "subtopology_id",
        )
        FIELDS = (
            "subtopology_id",
            "source_topics",
            "repartition_sink_topics",
            "state_changelog_topics",
            "repartition_source_topics",
        )

        def __init__(
            self,
            *,
            subtopology_id: str = "",
            source_topics: list[str] = UNSET,
            repartition_sink_topics: list[str] = UNSET,
            state_changelog_topics: list[StreamsGroupDescribeResponse.TopicInfo] = UNSET,
            repartition_source_topics: list[StreamsGroupDescribeResponse.TopicInfo] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.subtopology_id = subtopology_id
            self.source_topics = [] if source_topics is UNSET else source_topics
            self.repartition_sink_topics = (
                [] if repartition_sink_topics is UNSET else repartition_sink_topics
            )
            self.state_changelog_topics = (
                [] if state_changelog_topics is UNSET else state_changelog_topics
            )
            self.repartition_source_topics = (
                [] if repartition_source_topics is UNSET else repartition_source_topics
            )
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
            topic_configs: list[StreamsGroupDescribeResponse.KeyValue] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.partitions = partitions
            self.replication_factor = replication_factor
            self.topic_configs = [] if topic_configs is UNSET else topic_configs
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class Member(Struct):
        __slots__ = (
            "assignment",
            "client_host",
            "client_id",
            "client_tags",
            "instance_id",
            "is_classic",
            "member_epoch",
            "member_id",
            "process_id",
            "rack_id",
            "target_assignment",
            "task_end_offsets",
            "task_offsets",
            "topology_epoch",
            "user_endpoint",
        )
        FIELDS = (
            "member_id",
            "member_epoch",
            "instance_id",
            "rack_id",
            "client_id",
            "client_host",
            "topology_epoch",
            "process_id",
            "user_endpoint",
            "client_tags",
            "task_offsets",
            "task_end_offsets",
            "assignment",
            "target_assignment",
            "is_classic",
        )

        def __init__(
            self,
            *,
            member_id: str = "",
            member_epoch: int = 0,
            instance_id: str | None = None,
            rack_id: str | None = None,
            client_id: str = "",
            client_host: str = "",
            topology_epoch: int = 0,
            process_id: str = "",
            user_endpoint: StreamsGroupDescribeResponse.Endpoint | None = None,
            client_tags: list[StreamsGroupDescribeResponse.KeyValue] = UNSET,
            task_offsets: list[StreamsGroupDescribeResponse.TaskOffset] = UNSET,
            task_end_offsets: list[StreamsGroupDescribeResponse.TaskOffset] = UNSET,
            assignment: StreamsGroupDescribeResponse.Assignment = UNSET,
            target_assignment: StreamsGroupDescribeResponse.Assignment = UNSET,
            is_classic: bool = False,
            unknown_tags: Tags = (),
        ) -> None:
            self.member_id = member_id
            self.member_epoch = member_epoch
            self.instance_id = instance_id
            self.rack_id = rack_id
            self.client_id = client_id
            self.client_host = client_host
            self.topology_epoch = topology_epoch
            self.process_id = process_id
            self.user_endpoint = user_endpoint
            self.client_tags = [] if client_tags is UNSET else client_tags
            self.task_offsets = [] if task_offsets is UNSET else task_offsets
            self.task_end_offsets = [] if task_end_offsets is UNSET else task_end_offsets
            self.assignment = (
                StreamsGroupDescribeResponse.Assignment() if assignment is UNSET else assignment
            )
            self.target_assignment = (
                StreamsGroupDescribeResponse.Assignment()
                if target_assignment is UNSET
                else target_assignment
            )
            self.is_classic = is_classic
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

    class Assignment(Struct):
        __slots__ = ("active_tasks", "standby_tasks", "warmup_tasks")
        FIELDS = ("active_tasks", "standby_tasks", "warmup_tasks")

        def __init__(
            self,
            *,
            active_tasks: list[StreamsGroupDescribeResponse.TaskIds] = UNSET,
            standby_tasks: list[StreamsGroupDescribeResponse.TaskIds] = UNSET,
            warmup_tasks: list[StreamsGroupDescribeResponse.TaskIds] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.active_tasks = [] if active_tasks is UNSET else active_tasks
            self.standby_tasks = [] if standby_tasks is UNSET else standby_tasks
            self.warmup_tasks = [] if warmup_tasks is UNSET else warmup_tasks
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class TopologyDescription(Struct):
        __slots__ = ("global_stores", "subtopologies")
        FIELDS = ("subtopologies", "global_stores")

        def __init__(
            self,
            *,
            subtopologies: list[
                StreamsGroupDescribeResponse.TopologyDescriptionSubtopology
            ] = UNSET,
            global_stores: list[
                StreamsGroupDescribeResponse.TopologyDescriptionGlobalStore
            ] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.subtopologies = [] if subtopologies is UNSET else subtopologies
            self.global_stores = [] if global_stores is UNSET else global_stores
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

    class TopologyDescriptionSubtopology(Struct):
        __slots__ = ("nodes", "subtopology_id")
        FIELDS = ("subtopology_id", "nodes")

        def __init__(
            self,
            *,
            subtopology_id: str = "",
            nodes: list[StreamsGroupDescribeResponse.TopologyDescriptionNode] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.subtopology_id = subtopology_id
            self.nodes = [] if nodes is UNSET else nodes
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class TopologyDescriptionGlobalStore(Struct):
        __slots__ = ("processor", "source")
        FIELDS = ("source", "processor")

        def __init__(
            self,
            *,
            source: StreamsGroupDescribeResponse.TopologyDescriptionNode = UNSET,
            processor: StreamsGroupDescribeResponse.TopologyDescriptionNode = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.source = (
                StreamsGroupDescribeResponse.TopologyDescriptionNode()
                if source is UNSET
                else source
            )
            self.processor = (
                StreamsGroupDescribeResponse.TopologyDescriptionNode()
                if processor is UNSET
                else processor
            )
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class TopologyDescriptionNode(Struct):
        __slots__ = ("name", "node_type", "sink_topic", "source_topics", "stores", "successors")
        FIELDS = ("name", "node_type", "source_topics", "sink_topic", "stores", "successors")

        def __init__(
            self,
            *,
            name: str = "",
            node_type: int = 0,
            source_topics: list[str] = UNSET,
            sink_topic: str | None = None,
            stores: list[str] = UNSET,
            successors: list[str] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.node_type = node_type
            self.source_topics = [] if source_topics is UNSET else source_topics
            self.sink_topic = sink_topic
            self.stores = [] if stores is UNSET else stores
            self.successors = [] if successors is UNSET else successors
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: list[StreamsGroupDescribeResponse.DescribedGroup] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is UNSET else groups
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
