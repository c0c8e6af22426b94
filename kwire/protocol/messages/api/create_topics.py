"""Generated from `schema/api/create_topics.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tagged, Tags
from kwire.protocol.uuids import ZERO


class CreateTopicsRequest(Request["CreateTopicsResponse"]):
    """CreateTopicsRequest, versions 2-7: a request."""

    __slots__ = ("timeout_ms", "topics", "validate_only")
    FIELDS = ("topics", "timeout_ms", "validate_only")
    API_KEY = 19
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 2, 7

    class CreatableTopic(Struct):
        __slots__ = ("assignments", "configs", "name", "num_partitions", "replication_factor")
        FIELDS = ("name", "num_partitions", "replication_factor", "assignments", "configs")

        def __init__(
            self,
            *,
            name: str = "",
            num_partitions: int = 0,
            replication_factor: int = 0,
            assignments: list[CreateTopicsRequest.CreatableReplicaAssignment] = UNSET,
            configs: list[CreateTopicsRequest.CreatableTopicConfig] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.num_partitions = num_partitions
            self.replication_factor = replication_factor
            self.assignments = [] if assignments is UNSET else assignments
            self.configs = [] if configs is UNSET else configs
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class CreatableReplicaAssignment(Struct):
        __slots__ = ("broker_ids", "partition_index")
        FIELDS = ("partition_index", "broker_ids")

        def __init__(
            self,
            *,
            partition_index: int = 0,
            broker_ids: list[int] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.partition_index = partition_index
            self.broker_ids = [] if broker_ids is UNSET else broker_ids
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class CreatableTopicConfig(Struct):
        __slots__ = ("name", "value")
        FIELDS = ("name", "value")

        def __init__(
            self,
            *,
            name: str = "",
            value: str | None = "",
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.value = value
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        topics: list[CreateTopicsRequest.CreatableTopic] = UNSET,
        timeout_ms: int = 60000,
        validate_only: bool = False,
        unknown_tags: Tags = (),
    ) -> None:
        self.topics = [] if topics is UNSET else topics
        self.timeout_ms = timeout_ms
        self.validate_only = validate_only
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class CreateTopicsResponse(Message):
    """CreateTopicsResponse, versions 2-7: a response."""

    __slots__ = ("throttle_time_ms", "topics")
    FIELDS = ("throttle_time_ms", "topics")
    API_KEY = 19
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 2, 7

    class CreatableTopicResult(Struct):
        __slots__ = (
            "configs",
            "error_code",
            "error_message",
            "name",
            "num_partitions",
            "replication_factor",
            "topic_id",
        )
        FIELDS = (
            "name",
            "topic_id",
            "error_code",
            "error_message",
            "topic_config_error_code",
            "num_partitions",
            "replication_factor",
            "configs",
        )

        topic_config_error_code = Tagged["int"](0)

        def __init__(
            self,
            *,
            name: str = "",
            topic_id: bytes = ZERO,
            error_code: int = 0,
            error_message: str | None = "",
            num_partitions: int = -1,
            replication_factor: int = -1,
            configs: list[CreateTopicsResponse.CreatableTopicConfigs] | None = UNSET,
            topic_config_error_code: int = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.topic_id = topic_id
            self.error_code = error_code
            self.error_message = error_message
            self.num_partitions = num_partitions
            self.replication_factor = replication_factor
            self.configs = [] if configs is UNSET else configs
            self._tagged = None
            if topic_config_error_code is not UNSET:
                self.topic_config_error_code = topic_config_error_code
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class CreatableTopicConfigs(Struct):
        __slots__ = ("config_source", "is_sensitive", "name", "read_only", "value")
        FIELDS = ("name", "value", "read_only", "config_source", "is_sensitive")

        def __init__(
            self,
            *,
            name: str = "",
            value: str | None = "",
            read_only: bool = False,
            config_source: int = -1,
            is_sensitive: bool = False,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.value = value
            self.read_only = read_only
            self.config_source = config_source
            self.is_sensitive = is_sensitive
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[CreateTopicsResponse.CreatableTopicResult] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is UNSET else topics
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
