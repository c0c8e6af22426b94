"""Generated from `schema/api/alter_partition.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags
from kwire.protocol.uuids import ZERO


class AlterPartitionRequest(Request["AlterPartitionResponse"]):
    """AlterPartitionRequest, versions 2-3: a request."""

    __slots__ = ("broker_epoch", "broker_id", "topics")
    FIELDS = ("broker_id", "broker_epoch", "topics")
    API_KEY = 56
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 2, 3

    class TopicData(Struct):
        __slots__ = ("partitions", "topic_id")
        FIELDS = ("topic_id", "partitions")

        def __init__(
            self,
            *,
            topic_id: bytes = ZERO,
            partitions: list[AlterPartitionRequest.PartitionData] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class PartitionData(Struct):
        __slots__ = (
            "leader_epoch",
            "leader_recovery_state",
            "new_isr",
            "new_isr_with_epochs",
            "partition_epoch",
            "partition_index",
        )
        FIELDS = (
            "partition_index",
            "leader_epoch",
            "new_isr",
            "new_isr_with_epochs",
            "leader_recovery_state",
            "partition_epoch",
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            leader_epoch: int = 0,
            new_isr: list[int] = UNSET,
            new_isr_with_epochs: list[AlterPartitionRequest.BrokerState] = UNSET,
            leader_recovery_state: int = 0,
            partition_epoch: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.partition_index = partition_index
            self.leader_epoch = leader_epoch
            self.new_isr = [] if new_isr is UNSET else new_isr
            self.new_isr_with_epochs = [] if new_isr_with_epochs is UNSET else new_isr_with_epochs
            self.leader_recovery_state = leader_recovery_state
            self.partition_epoch = partition_epoch
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class BrokerState(Struct):
        __slots__ = ("broker_epoch", "broker_id")
        FIELDS = ("broker_id", "broker_epoch")

        def __init__(
            self,
            *,
            broker_id: int = 0,
            broker_epoch: int = -1,
            unknown_tags: Tags = (),
        ) -> None:
            self.broker_id = broker_id
            self.broker_epoch = broker_epoch
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        topics: list[AlterPartitionRequest.TopicData] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.topics = [] if topics is UNSET else topics
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class AlterPartitionResponse(Message):
    """AlterPartitionResponse, versions 2-3: a response."""

    __slots__ = ("error_code", "throttle_time_ms", "topics")
    FIELDS = ("throttle_time_ms", "error_code", "topics")
    API_KEY = 56
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 2, 3

    class TopicData(Struct):
        __slots__ = ("partitions", "topic_id")
        FIELDS = ("topic_id", "partitions")

        def __init__(
            self,
            *,
            topic_id: bytes = ZERO,
            partitions: list[AlterPartitionResponse.PartitionData] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class PartitionData(Struct):
        __slots__ = (
            "error_code",
            "isr",
            "leader_epoch",
            "leader_id",
            "leader_recovery_state",
            "partition_epoch",
            "partition_index",
        )
        FIELDS = (
            "partition_index",
            "error_code",
            "leader_id",
            "leader_epoch",
            "isr",
            "leader_recovery_state",
            "partition_epoch",
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            leader_id: int = 0,
            leader_epoch: int = 0,
            isr: list[int] = UNSET,
            leader_recovery_state: int = 0,
            partition_epoch: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.partition_index = partition_index
            self.error_code = error_code
            self.leader_id = leader_id
            self.leader_epoch = leader_epoch
            self.isr = [] if isr is UNSET else isr
            self.leader_recovery_state = leader_recovery_state
            self.partition_epoch = partition_epoch
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        topics: list[AlterPartitionResponse.TopicData] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.topics = [] if topics is UNSET else topics
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
