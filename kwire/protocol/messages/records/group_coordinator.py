"""Generated from `schema/records/group_coordinator.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Struct, Tagged, Tags
from kwire.protocol.uuids import ZERO


class LegacyOffsetCommitKey(Message):
    """LegacyOffsetCommitKey, version 0: a key of a coordinator record."""

    __slots__ = ("group", "partition", "topic")
    FIELDS = ("group", "topic", "partition")
    API_KEY = 0
    KIND = "coordinator-key"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        group: str = "",
        topic: str = "",
        partition: int = 0,
        unknown_tags: Tags = (),
    ) -> None:
        self.group = group
        self.topic = topic
        self.partition = partition
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class LegacyOffsetCommitValue(Message):
    """LegacyOffsetCommitValue, version 0: a value of a coordinator record."""

    __slots__ = ("commit_timestamp", "metadata", "offset")
    FIELDS = ("offset", "metadata", "commit_timestamp")
    API_KEY = 0
    KIND = "coordinator-value"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        offset: int = 0,
        metadata: str = "",
        commit_timestamp: int = 0,
        unknown_tags: Tags = (),
    ) -> None:
        self.offset = offset
        self.metadata = metadata
        self.commit_timestamp = commit_timestamp
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class OffsetCommitKey(Message):
    """OffsetCommitKey, version 0: a key of a coordinator record."""

    __slots__ = ("group", "partition", "topic")
    FIELDS = ("group", "topic", "partition")
    API_KEY = 1
    KIND = "coordinator-key"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        group: str = "",
        topic: str = "",
        partition: int = 0,
        unknown_tags: Tags = (),
    ) -> None:
        self.group = group
        self.topic = topic
        self.partition = partition
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class OffsetCommitValue(Message):
    """OffsetCommitValue, versions 0-4: a value of a coordinator record."""

    __slots__ = ("commit_timestamp", "expire_timestamp", "leader_epoch", "metadata", "offset")
    FIELDS = (
        "offset",
        "leader_epoch",
        "metadata",
        "commit_timestamp",
        "expire_timestamp",
        "topic_id",
    )
    API_KEY = 1
    KIND = "coordinator-value"
    MIN_VERSION, MAX_VERSION = 0, 4

    topic_id = Tagged["bytes"](ZERO)

    def __init__(
        self,
        *,
        offset: int = 0,
        leader_epoch: int = -1,
        metadata: str = "",
        commit_timestamp: int = 0,
        expire_timestamp: int = -1,
        topic_id: bytes = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.offset = offset
        self.leader_epoch = leader_epoch
        self.metadata = metadata
        self.commit_timestamp = commit_timestamp
        self.expire_timestamp = expire_timestamp
        self._tagged = None
        if topic_id is not UNSET:
            self.topic_id = topic_id
        if unknown_tags:
            self.unknown_tags = unknown_tags


class GroupMetadataKey(Message):
    """GroupMetadataKey, version 0: a key of a coordinator record."""

    __slots__ = ("group",)
    FIELDS = ("group",)
    API_KEY = 2
    KIND = "coordinator-key"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        group: str = "",
        unknown_tags: Tags = (),
    ) -> None:
        self.group = group
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class GroupMetadataValue(Message):
    """GroupMetadataValue, versions 0-4: a value of a coordinator record."""

    __slots__ = (
        "current_state_timestamp",
        "generation",
        "leader",
        "members",
        "protocol",
        "protocol_type",
    )
    FIELDS = (
        "protocol_type",
        "generation",
        "protocol",
        "leader",
        "current_state_timestamp",
        "members",
    )
    API_KEY = 2
    KIND = "coordinator-value"
    MIN_VERSION, MAX_VERSION = 0, 4

    class MemberMetadata(Struct):
        __slots__ = (
            "assignment",
            "client_host",
            "client_id",
            "group_instance_id",
            "member_id",
            "rebalance_timeout",
            "session_timeout",
            "subscription",
        )
        FIELDS = (
            "member_id",
            "group_instance_id",
            "client_id",
            "client_host",
            "rebalance_timeout",
            "session_timeout",
            "subscription",
            "assignment",
        )

        def __init__(
            self,
            *,
            member_id: str = "",
            group_instance_id: str | None = None,
            client_id: str = "",
            client_host: str = "",
            rebalance_timeout: int = -1,
            session_timeout: int = 0,
            subscription: bytes = b"",
            assignment: bytes = b"",
            unknown_tags: Tags = (),
        ) -> None:
            self.member_id = member_id
            self.group_instance_id = group_instance_id
            self.client_id = client_id
            self.client_host = client_host
            self.rebalance_timeout = rebalance_timeout
            self.session_timeout = session_timeout
            self.subscription = subscription
            self.assignment = assignment
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        protocol_type: str = "",
        generation: int = 0,
        protocol: str | None = "",
        leader: str | None = "",
        current_state_timestamp: int = -1,
        members: list[GroupMetadataValue.MemberMetadata] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.protocol_type = protocol_type
        self.generation = generation
        self.protocol = protocol
        self.leader = leader
        self.current_state_timestamp = current_state_timestamp
        self.members = [] if members is UNSET else members
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ConsumerGroupMetadataKey(Message):
    """ConsumerGroupMetadataKey, version 0: a key of a coordinator record."""

    __slots__ = ("group_id",)
    FIELDS = ("group_id",)
    API_KEY = 3
    KIND = "coordinator-key"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        group_id: str = "",
        unknown_tags: Tags = (),
    ) -> None:
        self.group_id = group_id
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ConsumerGroupMetadataValue(Message):
    """ConsumerGroupMetadataValue, version 0: a value of a coordinator record."""

    __slots__ = ("epoch",)
    FIELDS = ("epoch", "metadata_hash")
    API_KEY = 3
    KIND = "coordinator-value"
    MIN_VERSION, MAX_VERSION = 0, 0

    metadata_hash = Tagged["int"](0)

    def __init__(
        self,
        *,
        epoch: int = 0,
        metadata_hash: int = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.epoch = epoch
        self._tagged = None
        if metadata_hash is not UNSET:
            self.metadata_hash = metadata_hash
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ConsumerGroupPartitionMetadataKey(Message):
    """ConsumerGroupPartitionMetadataKey, version 0: a key of a coordinator record."""

    __slots__ = ("group_id",)
    FIELDS = ("group_id",)
    API_KEY = 4
    KIND = "coordinator-key"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        group_id: str = "",
        unknown_tags: Tags = (),
    ) -> None:
        self.group_id = group_id
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ConsumerGroupPartitionMetadataValue(Message):
    """ConsumerGroupPartitionMetadataValue, version 0: a value of a coordinator record."""

    __slots__ = ("topics",)
    FIELDS = ("topics",)
    API_KEY = 4
    KIND = "coordinator-value"
    MIN_VERSION, MAX_VERSION = 0, 0

    class TopicMetadata(Struct):
        __slots__ = ("num_partitions", "partition_metadata", "topic_id", "topic_name")
        FIELDS = ("topic_id", "topic_name", "num_partitions", "partition_metadata")

        def __init__(
            self,
            *,
            topic_id: bytes = ZERO,
            topic_name: str = "",
            num_partitions: int = 0,
            partition_metadata: list[ConsumerGroupPartitionMetadataValue.PartitionMetadata] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic_id = topic_id
            self.topic_name = topic_name
            self.num_partitions = num_partitions
            self.partition_metadata = [] if partition_metadata is UNSET else partition_metadata
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class PartitionMetadata(Struct):
        __slots__ = ("partition", "racks")
        FIELDS = ("partition", "racks")

        def __init__(
            self,
            *,
            partition: int = 0,
            racks: list[str] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.partition = partition
            self.racks = [] if racks is UNSET else racks
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        topics: list[ConsumerGroupPartitionMetadataValue.TopicMetadata] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.topics = [] if topics is UNSET else topics
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ConsumerGroupMemberMetadataKey(Message):
    """ConsumerGroupMemberMetadataKey, version 0: a key of a coordinator record."""

    __slots__ = ("group_id", "member_id")
    FIELDS = ("group_id", "member_id")
    API_KEY = 5
    KIND = "coordinator-key"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        unknown_tags: Tags = (),
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ConsumerGroupMemberMetadataValue(Message):
    """ConsumerGroupMemberMetadataValue, version 0: a value of a coordinator record."""

    __slots__ = (
        "client_host",
        "client_id",
        "instance_id",
        "rack_id",
        "rebalance_timeout_ms",
        "server_assignor",
        "subscribed_topic_names",
        "subscribed_topic_regex",
    )
    FIELDS = (
        "instance_id",
        "rack_id",
        "client_id",
        "client_host",
        "subscribed_topic_names",
        "subscribed_topic_regex",
        "rebalance_timeout_ms",
        "server_assignor",
        "classic_member_metadata",
    )
    API_KEY = 5
    KIND = "coordinator-value"
    MIN_VERSION, MAX_VERSION = 0, 0

    class ClassicMemberMetadata(Struct):
        __slots__ = ("session_timeout_ms", "supported_protocols")
        FIELDS = ("session_timeout_ms", "supported_protocols")

        def __init__(
            self,
            *,
            session_timeout_ms: int = 0,
            supported_protocols: list[ConsumerGroupMemberMetadataValue.ClassicProtocol] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.session_timeout_ms = session_timeout_ms
            self.supported_protocols = [] if supported_protocols is UNSET else supported_protocols
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class ClassicProtocol(Struct):
        __slots__ = ("metadata", "name")
        FIELDS = ("name", "metadata")

        def __init__(
            self,
            *,
            name: str = "",
            metadata: bytes = b"",
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.metadata = metadata
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    classic_member_metadata = Tagged[
        "ConsumerGroupMemberMetadataValue.ClassicMemberMetadata | None"
    ](maker=lambda: ConsumerGroupMemberMetadataValue.ClassicMemberMetadata())

    def __init__(
        self,
        *,
        instance_id: str | None = "",
        rack_id: str | None = "",
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: list[str] = UNSET,
        subscribed_topic_regex: str | None = "",
        rebalance_timeout_ms: int = -1,
        server_assignor: str | None = "",
        classic_member_metadata: ConsumerGroupMemberMetadataValue.ClassicMemberMetadata
        | None = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.subscribed_topic_names = (
            [] if subscribed_topic_names is UNSET else subscribed_topic_names
        )
        self.subscribed_topic_regex = subscribed_topic_regex
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.server_assignor = server_assignor
        self._tagged = None
        if classic_member_metadata is not UNSET:
            self.classic_member_metadata = classic_member_metadata
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ConsumerGroupTargetAssignmentMetadataKey(Message):
    """ConsumerGroupTargetAssignmentMetadataKey, version 0: a key of a coordinator record."""

    __slots__ = ("group_id",)
    FIELDS = ("group_id",)
    API_KEY = 6
    KIND = "coordinator-key"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        group_id: str = "",
        unknown_tags: Tags = (),
    ) -> None:
        self.group_id = group_id
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ConsumerGroupTargetAssignmentMetadataValue(Message):
    """ConsumerGroupTargetAssignmentMetadataValue, version 0: a value of a coordinator record."""

    __slots__ = ("assignment_epoch",)
    FIELDS = ("assignment_epoch", "assignment_timestamp")
    API_KEY = 6
    KIND = "coordinator-value"
    MIN_VERSION, MAX_VERSION = 0, 0

    assignment_timestamp = Tagged["int"](0)

    def __init__(
        self,
        *,
        assignment_epoch: int = 0,
        assignment_timestamp: int = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.assignment_epoch = assignment_epoch
        self._tagged = None
        if assignment_timestamp is not UNSET:
            self.assignment_timestamp = assignment_timestamp
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ConsumerGroupTargetAssignmentMemberKey(Message):
    """ConsumerGroupTargetAssignmentMemberKey, version 0: a key of a coordinator record."""

    __slots__ = ("group_id", "member_id")
    FIELDS = ("group_id", "member_id")
    API_KEY = 7
    KIND = "coordinator-key"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        unknown_tags: Tags = (),
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ConsumerGroupTargetAssignmentMemberValue(Message):
    """ConsumerGroupTargetAssignmentMemberValue, version 0: a value of a coordinator record."""

    __slots__ = ("topic_partitions",)
    FIELDS = ("topic_partitions",)
    API_KEY = 7
    KIND = "coordinator-value"
    MIN_VERSION, MAX_VERSION = 0, 0

    class TopicPartition(Struct):
        __slots__ = ("partitions", "topic_id")
        FIELDS = ("topic_id", "partitions")

        def __init__(
            self,
            *,
            topic_id: bytes = ZERO,
            partitions: list[int] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        topic_partitions: list[ConsumerGroupTargetAssignmentMemberValue.TopicPartition] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.topic_partitions = [] if topic_partitions is UNSET else topic_partitions
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ConsumerGroupCurrentMemberAssignmentKey(Message):
    """ConsumerGroupCurrentMemberAssignmentKey, version 0: a key of a coordinator record."""

    __slots__ = ("group_id", "member_id")
    FIELDS = ("group_id", "member_id")
    API_KEY = 8
    KIND = "coordinator-key"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        unknown_tags: Tags = (),
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ConsumerGroupCurrentMemberAssignmentValue(Message):
    """ConsumerGroupCurrentMemberAssignmentValue, version 0: a value of a coordinator record."""

    __slots__ = (
        "assigned_partitions",
        "member_epoch",
        "partitions_pending_revocation",
        "previous_member_epoch",
        "state",
    )
    FIELDS = (
        "member_epoch",
        "previous_member_epoch",
        "state",
        "assigned_partitions",
        "partitions_pending_revocation",
    )
    API_KEY = 8
    KIND = "coordinator-value"
    MIN_VERSION, MAX_VERSION = 0, 0

    class TopicPartitions(Struct):
        __slots__ = ("partitions", "topic_id")
        FIELDS = ("topic_id", "partitions", "assignment_epochs")

        assignment_epochs = Tagged["list[int] | None"](maker=list)

        def __init__(
            self,
            *,
            topic_id: bytes = ZERO,
            partitions: list[int] = UNSET,
            assignment_epochs: list[int] | None = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if assignment_epochs is not UNSET:
                self.assignment_epochs = assignment_epochs
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        member_epoch: int = 0,
        previous_member_epoch: int = 0,
        state: int = 0,
        assigned_partitions: list[
            ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions
        ] = UNSET,
        partitions_pending_revocation: list[
            ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions
        ] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.member_epoch = member_epoch
        self.previous_member_epoch = previous_member_epoch
        self.state = state
        self.assigned_partitions = [] if assigned_partitions is UNSET else assigned_partitions
        self.partitions_pending_revocation = (
            [] if partitions_pending_revocation is UNSET else partitions_pending_revocation
        )
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ShareGroupMemberMetadataKey(Message):
    """ShareGroupMemberMetadataKey, version 0: a key of a coordinator record."""

    __slots__ = ("group_id", "member_id")
    FIELDS = ("group_id", "member_id")
    API_KEY = 10
    KIND = "coordinator-key"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        unknown_tags: Tags = (),
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ShareGroupMemberMetadataValue(Message):
    """ShareGroupMemberMetadataValue, version 0: a value of a coordinator record."""

    __slots__ = ("client_host", "client_id", "rack_id", "subscribed_topic_names")
    FIELDS = ("rack_id", "client_id", "client_host", "subscribed_topic_names")
    API_KEY = 10
    KIND = "coordinator-value"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        rack_id: str | None = "",
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: list[str] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.subscribed_topic_names = (
            [] if subscribed_topic_names is UNSET else subscribed_topic_names
        )
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ShareGroupMetadataKey(Message):
    """ShareGroupMetadataKey, version 0: a key of a coordinator record."""

    __slots__ = ("group_id",)
    FIELDS = ("group_id",)
    API_KEY = 11
    KIND = "coordinator-key"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        group_id: str = "",
        unknown_tags: Tags = (),
    ) -> None:
        self.group_id = group_id
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ShareGroupMetadataValue(Message):
    """ShareGroupMetadataValue, version 0: a value of a coordinator record."""

    __slots__ = ("epoch", "metadata_hash")
    FIELDS = ("epoch", "metadata_hash")
    API_KEY = 11
    KIND = "coordinator-value"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        epoch: int = 0,
        metadata_hash: int = 0,
        unknown_tags: Tags = (),
    ) -> None:
        self.epoch = epoch
        self.metadata_hash = metadata_hash
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ShareGroupTargetAssignmentMetadataKey(Message):
    """ShareGroupTargetAssignmentMetadataKey, version 0: a key of a coordinator record."""

    __slots__ = ("group_id",)
    FIELDS = ("group_id",)
    API_KEY = 12
    KIND = "coordinator-key"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        group_id: str = "",
        unknown_tags: Tags = (),
    ) -> None:
        self.group_id = group_id
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ShareGroupTargetAssignmentMetadataValue(Message):
    """ShareGroupTargetAssignmentMetadataValue, version 0: a value of a coordinator record."""

    __slots__ = ("assignment_epoch",)
    FIELDS = ("assignment_epoch", "assignment_timestamp")
    API_KEY = 12
    KIND = "coordinator-value"
    MIN_VERSION, MAX_VERSION = 0, 0

    assignment_timestamp = Tagged["int"](0)

    def __init__(
        self,
        *,
        assignment_epoch: int = 0,
        assignment_timestamp: int = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.assignment_epoch = assignment_epoch
        self._tagged = None
        if assignment_timestamp is not UNSET:
            self.assignment_timestamp = assignment_timestamp
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ShareGroupTargetAssignmentMemberKey(Message):
    """ShareGroupTargetAssignmentMemberKey, version 0: a key of a coordinator record."""

    __slots__ = ("group_id", "member_id")
    FIELDS = ("group_id", "member_id")
    API_KEY = 13
    KIND = "coordinator-key"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        unknown_tags: Tags = (),
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ShareGroupTargetAssignmentMemberValue(Message):
    """ShareGroupTargetAssignmentMemberValue, version 0: a value of a coordinator record."""

    __slots__ = ("topic_partitions",)
    FIELDS = ("topic_partitions",)
    API_KEY = 13
    KIND = "coordinator-value"
    MIN_VERSION, MAX_VERSION = 0, 0

    class TopicPartition(Struct):
        __slots__ = ("partitions", "topic_id")
        FIELDS = ("topic_id", "partitions")

        def __init__(
            self,
            *,
            topic_id: bytes = ZERO,
            partitions: list[int] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        topic_partitions: list[ShareGroupTargetAssignmentMemberValue.TopicPartition] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.topic_partitions = [] if topic_partitions is UNSET else topic_partitions
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ShareGroupCurrentMemberAssignmentKey(Message):
    """ShareGroupCurrentMemberAssignmentKey, version 0: a key of a coordinator record."""

    __slots__ = ("group_id", "member_id")
    FIELDS = ("group_id", "member_id")
    API_KEY = 14
    KIND = "coordinator-key"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        unknown_tags: Tags = (),
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ShareGroupCurrentMemberAssignmentValue(Message):
    """ShareGroupCurrentMemberAssignmentValue, version 0: a value of a coordinator record."""

    __slots__ = ("assigned_partitions", "member_epoch", "previous_member_epoch", "state")
    FIELDS = ("member_epoch", "previous_member_epoch", "state", "assigned_partitions")
    API_KEY = 14
    KIND = "coordinator-value"
    MIN_VERSION, MAX_VERSION = 0, 0

    class TopicPartitions(Struct):
        __slots__ = ("partitions", "topic_id")
        FIELDS = ("topic_id", "partitions")

        def __init__(
            self,
            *,
            topic_id: bytes = ZERO,
            partitions: list[int] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic_id = topic_id
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        member_epoch: int = 0,
        previous_member_epoch: int = 0,
        state: int = 0,
        assigned_partitions: list[ShareGroupCurrentMemberAssignmentValue.TopicPartitions] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.member_epoch = member_epoch
        self.previous_member_epoch = previous_member_epoch
        self.state = state
        self.assigned_partitions = [] if assigned_partitions is UNSET else assigned_partitions
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ShareGroupStatePartitionMetadataKey(Message):
    """ShareGroupStatePartitionMetadataKey, version 0: a key of a coordinator record."""

    __slots__ = ("group_id",)
    FIELDS = ("group_id",)
    API_KEY = 15
    KIND = "coordinator-key"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        group_id: str = "",
        unknown_tags: Tags = (),
    ) -> None:
        self.group_id = group_id
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ShareGroupStatePartitionMetadataValue(Message):
    """ShareGroupStatePartitionMetadataValue, version 0: a value of a coordinator record."""

    __slots__ = ("deleting_topics", "initialized_topics", "initializing_topics")
    FIELDS = ("initializing_topics", "initialized_topics", "deleting_topics")
    API_KEY = 15
    KIND = "coordinator-value"
    MIN_VERSION, MAX_VERSION = 0, 0

    class TopicPartitionsInfo(Struct):
        __slots__ = ("partitions", "topic_id", "topic_name")
        FIELDS = ("topic_id", "topic_name", "partitions")

        def __init__(
            self,
            *,
            topic_id: bytes = ZERO,
            topic_name: str = "",
            partitions: list[int] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic_id = topic_id
            self.topic_name = topic_name
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class TopicInfo(Struct):
        __slots__ = ("topic_id", "topic_name")
        FIELDS = ("topic_id", "topic_name")

        def __init__(
            self,
            *,
            topic_id: bytes = ZERO,
            topic_name: str = "",
            unknown_tags: Tags = (),
        ) -> None:
            self.topic_id = topic_id
            self.topic_name = topic_name
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        initializing_topics: list[
            ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo
        ] = UNSET,
        initialized_topics: list[ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo] = UNSET,
        deleting_topics: list[ShareGroupStatePartitionMetadataValue.TopicInfo] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.initializing_topics = [] if initializing_topics is UNSET else initializing_topics
        self.initialized_topics = [] if initialized_topics is UNSET else initialized_topics
        self.deleting_topics = [] if deleting_topics is UNSET else deleting_topics
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ConsumerGroupRegularExpressionKey(Message):
    """ConsumerGroupRegularExpressionKey, version 0: a key of a coordinator record."""

    __slots__ = ("group_id", "regular_expression")
    FIELDS = ("group_id", "regular_expression")
    API_KEY = 16
    KIND = "coordinator-key"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        group_id: str = "",
        regular_expression: str = "",
        unknown_tags: Tags = (),
    ) -> None:
        self.group_id = group_id
        self.regular_expression = regular_expression
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ConsumerGroupRegularExpressionValue(Message):
    """ConsumerGroupRegularExpressionValue, version 0: a value of a coordinator record."""

    __slots__ = ("timestamp", "topics", "version")
    FIELDS = ("topics", "version", "timestamp")
    API_KEY = 16
    KIND = "coordinator-value"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        topics: list[str] = UNSET,
        version: int = 0,
        timestamp: int = 0,
        unknown_tags: Tags = (),
    ) -> None:
        self.topics = [] if topics is UNSET else topics
        self.version = version
        self.timestamp = timestamp
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class StreamsGroupMetadataKey(Message):
    """StreamsGroupMetadataKey, version 0: a key of a coordinator record."""

    __slots__ = ("group_id",)
    FIELDS = ("group_id",)
    API_KEY = 17
    KIND = "coordinator-key"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        group_id: str = "",
        unknown_tags: Tags = (),
    ) -> None:
        self.group_id = group_id
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class StreamsGroupMetadataValue(Message):
    """StreamsGroupMetadataValue, version 0: a value of a coordinator record."""

    __slots__ = ("epoch", "metadata_hash")
    FIELDS = (
        "epoch",
        "metadata_hash",
        "validated_topology_epoch",
        "last_assignment_configs",
        "stored_description_topology_epoch",
        "failed_description_topology_epoch",
    )
    API_KEY = 17
    KIND = "coordinator-value"
    MIN_VERSION, MAX_VERSION = 0, 0

    class LastAssignmentConfig(Struct):
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

    validated_topology_epoch = Tagged["int"](-1)
    last_assignment_configs = Tagged["list[StreamsGroupMetadataValue.LastAssignmentConfig] | None"](
        maker=list
    )
    stored_description_topology_epoch = Tagged["int"](-1)
    failed_description_topology_epoch = Tagged["int"](-1)

    def __init__(
        self,
        *,
        epoch: int = 0,
        metadata_hash: int = 0,
        validated_topology_epoch: int = UNSET,
        last_assignment_configs: list[StreamsGroupMetadataValue.LastAssignmentConfig]
        | None = UNSET,
        stored_description_topology_epoch: int = UNSET,
        failed_description_topology_epoch: int = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.epoch = epoch
        self.metadata_hash = metadata_hash
        self._tagged = None
        if validated_topology_epoch is not UNSET:
            self.validated_topology_epoch = validated_topology_epoch
        if last_assignment_configs is not UNSET:
            self.last_assignment_configs = last_assignment_configs
        if stored_description_topology_epoch is not UNSET:
            self.stored_description_topology_epoch = stored_description_topology_epoch
        if failed_description_topology_epoch is not UNSET:
            self.failed_description_topology_epoch = failed_description_topology_epoch
        if unknown_tags:
            self.unknown_tags = unknown_tags


class StreamsGroupMemberMetadataKey(Message):
    """StreamsGroupMemberMetadataKey, version 0: a key of a coordinator record."""

    __slots__ = ("group_id", "member_id")
    FIELDS = ("group_id", "member_id")
    API_KEY = 19
    KIND = "coordinator-key"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        unknown_tags: Tags = (),
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class StreamsGroupMemberMetadataValue(Message):
    """StreamsGroupMemberMetadataValue, version 0: a value of a coordinator record."""

    __slots__ = (
        "client_host",
        "client_id",
        "client_tags",
        "instance_id",
        "process_id",
        "rack_id",
        "rebalance_timeout_ms",
        "topology_epoch",
        "user_endpoint",
    )
    FIELDS = (
        "instance_id",
        "rack_id",
        "client_id",
        "client_host",
        "rebalance_timeout_ms",
        "topology_epoch",
        "process_id",
        "user_endpoint",
        "client_tags",
    )
    API_KEY = 19
    KIND = "coordinator-value"
    MIN_VERSION, MAX_VERSION = 0, 0

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

    def __init__(
        self,
        *,
        instance_id: str | None = "",
        rack_id: str | None = "",
        client_id: str = "",
        client_host: str = "",
        rebalance_timeout_ms: int = -1,
        topology_epoch: int = 0,
        process_id: str = "",
        user_endpoint: StreamsGroupMemberMetadataValue.Endpoint | None = None,
        client_tags: list[StreamsGroupMemberMetadataValue.KeyValue] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.topology_epoch = topology_epoch
        self.process_id = process_id
        self.user_endpoint = user_endpoint
        self.client_tags = [] if client_tags is UNSET else client_tags
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class StreamsGroupTargetAssignmentMetadataKey(Message):
    """StreamsGroupTargetAssignmentMetadataKey, version 0: a key of a coordinator record."""

    __slots__ = ("group_id",)
    FIELDS = ("group_id",)
    API_KEY = 20
    KIND = "coordinator-key"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        group_id: str = "",
        unknown_tags: Tags = (),
    ) -> None:
        self.group_id = group_id
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class StreamsGroupTargetAssignmentMetadataValue(Message):
    """StreamsGroupTargetAssignmentMetadataValue, version 0: a value of a coordinator record."""

    __slots__ = ("assignment_epoch",)
    FIELDS = ("assignment_epoch", "assignment_timestamp")
    API_KEY = 20
    KIND = "coordinator-value"
    MIN_VERSION, MAX_VERSION = 0, 0

    assignment_timestamp = Tagged["int"](0)

    def __init__(
        self,
        *,
        assignment_epoch: int = 0,
        assignment_timestamp: int = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.assignment_epoch = assignment_epoch
        self._tagged = None
        if assignment_timestamp is not UNSET:
            self.assignment_timestamp = assignment_timestamp
        if unknown_tags:
            self.unknown_tags = unknown_tags


class StreamsGroupTargetAssignmentMemberKey(Message):
    """StreamsGroupTargetAssignmentMemberKey, version 0: a key of a coordinator record."""

    __slots__ = ("group_id", "member_id")
    FIELDS = ("group_id", "member_id")
    API_KEY = 21
    KIND = "coordinator-key"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        unknown_tags: Tags = (),
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class StreamsGroupTargetAssignmentMemberValue(Message):
    """StreamsGroupTargetAssignmentMemberValue, version 0: a value of a coordinator record."""

    __slots__ = ("active_tasks", "standby_tasks", "warmup_tasks")
    FIELDS = ("active_tasks", "standby_tasks", "warmup_tasks")
    API_KEY = 21
    KIND = "coordinator-value"
    MIN_VERSION, MAX_VERSION = 0, 0

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

    def __init__(
        self,
        *,
        active_tasks: list[StreamsGroupTargetAssignmentMemberValue.TaskIds] = UNSET,
        standby_tasks: list[StreamsGroupTargetAssignmentMemberValue.TaskIds] = UNSET,
        warmup_tasks: list[StreamsGroupTargetAssignmentMemberValue.TaskIds] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.active_tasks = [] if active_tasks is UNSET else active_tasks
        self.standby_tasks = [] if standby_tasks is UNSET else standby_tasks
        self.warmup_tasks = [] if warmup_tasks is UNSET else warmup_tasks
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class StreamsGroupCurrentMemberAssignmentKey(Message):
    """StreamsGroupCurrentMemberAssignmentKey, version 0: a key of a coordinator record."""

    __slots__ = ("group_id", "member_id")
    FIELDS = ("group_id", "member_id")
    API_KEY = 22
    KIND = "coordinator-key"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        unknown_tags: Tags = (),
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class StreamsGroupCurrentMemberAssignmentValue(Message):
    """StreamsGroupCurrentMemberAssignmentValue, version 0: a value of a coordinator record."""

    __slots__ = (
        "active_tasks",
        "active_tasks_pending_revocation",
        "member_epoch",
        "previous_member_epoch",
        "standby_tasks",
        "standby_tasks_pending_revocation",
        "state",
        "warmup_tasks",
        "warmup_tasks_pending_revocation",
    )
    FIELDS = (
        "member_epoch",
        "previous_member_epoch",
        "state",
        "active_tasks",
        "standby_tasks",
        "warmup_tasks",
        "active_tasks_pending_revocation",
        "standby_tasks_pending_revocation",
        "warmup_tasks_pending_revocation",
    )
    API_KEY = 22
    KIND = "coordinator-value"
    MIN_VERSION, MAX_VERSION = 0, 0

    class TaskIds(Struct):
        __slots__ = ("partitions", "subtopology_id")
        FIELDS = ("subtopology_id", "partitions", "assignment_epochs")

        assignment_epochs = Tagged["list[int] | None"](maker=list)

        def __init__(
            self,
            *,
            subtopology_id: str = "",
            partitions: list[int] = UNSET,
            assignment_epochs: list[int] | None = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.subtopology_id = subtopology_id
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if assignment_epochs is not UNSET:
                self.assignment_epochs = assignment_epochs
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        member_epoch: int = 0,
        previous_member_epoch: int = 0,
        state: int = 0,
        active_tasks: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = UNSET,
        standby_tasks: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = UNSET,
        warmup_tasks: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = UNSET,
        active_tasks_pending_revocation: list[
            StreamsGroupCurrentMemberAssignmentValue.TaskIds
        ] = UNSET,
        standby_tasks_pending_revocation: list[
            StreamsGroupCurrentMemberAssignmentValue.TaskIds
        ] = UNSET,
        warmup_tasks_pending_revocation: list[
            StreamsGroupCurrentMemberAssignmentValue.TaskIds
        ] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.member_epoch = member_epoch
        self.previous_member_epoch = previous_member_epoch
        self.state = state
        self.active_tasks = [] if active_tasks is UNSET else active_tasks
        self.standby_tasks = [] if standby_tasks is UNSET else standby_tasks
        self.warmup_tasks = [] if warmup_tasks is UNSET else warmup_tasks
        self.active_tasks_pending_revocation = (
            [] if active_tasks_pending_revocation is UNSET else active_tasks_pending_revocation
        )
        self.standby_tasks_pending_revocation = (
            [] if standby_tasks_pending_revocation is UNSET else standby_tasks_pending_revocation
        )
        self.warmup_tasks_pending_revocation = (
            [] if warmup_tasks_pending_revocation is UNSET else warmup_tasks_pending_revocation
        )
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class StreamsGroupTopologyKey(Message):
    """StreamsGroupTopologyKey, version 0: a key of a coordinator record."""

    __slots__ = ("group_id",)
    FIELDS = ("group_id",)
    API_KEY = 23
    KIND = "coordinator-key"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        group_id: str = "",
        unknown_tags: Tags = (),
    ) -> None:
        self.group_id = group_id
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class StreamsGroupTopologyValue(Message):
    """StreamsGroupTopologyValue, version 0: a value of a coordinator record."""

    __slots__ = ("epoch", "subtopologies")
    FIELDS = ("epoch", "subtopologies")
    API_KEY = 23
    KIND = "coordinator-value"
    MIN_VERSION, MAX_VERSION = 0, 0

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
            state_changelog_topics: list[StreamsGroupTopologyValue.TopicInfo] = UNSET,
            repartition_sink_topics: list[str] = UNSET,
            repartition_source_topics: list[StreamsGroupTopologyValue.TopicInfo] = UNSET,
            copartition_groups: list[StreamsGroupTopologyValue.CopartitionGroup] = UNSET,
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
            topic_configs: list[StreamsGroupTopologyValue.TopicConfig] = UNSET,
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

    class TopicConfig(Struct):
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

    def __init__(
        self,
        *,
        epoch: int = 0,
        subtopologies: list[StreamsGroupTopologyValue.Subtopology] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.epoch = epoch
        self.subtopologies = [] if subtopologies is UNSET else subtopologies
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
