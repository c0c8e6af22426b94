"""Generated from `schema/records/clients.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Struct, Tags
from kwire.protocol.uuids import ZERO


class AbortedTxn(Message):
    """AbortedTxn, version 0: a data."""

    __slots__ = ("first_offset", "last_offset", "last_stable_offset", "producer_id")
    FIELDS = ("producer_id", "first_offset", "last_offset", "last_stable_offset")
    KIND = "data"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        producer_id: int = 0,
        first_offset: int = 0,
        last_offset: int = 0,
        last_stable_offset: int = 0,
        unknown_tags: Tags = (),
    ) -> None:
        self.producer_id = producer_id
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.last_stable_offset = last_stable_offset
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ConsumerProtocolAssignment(Message):
    """ConsumerProtocolAssignment, versions 0-3: a data."""

    __slots__ = ("assigned_partitions", "user_data")
    FIELDS = ("assigned_partitions", "user_data")
    KIND = "data"
    MIN_VERSION, MAX_VERSION = 0, 3

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
        assigned_partitions: list[ConsumerProtocolAssignment.TopicPartition] = UNSET,
        user_data: bytes | None = None,
        unknown_tags: Tags = (),
    ) -> None:
        self.assigned_partitions = [] if assigned_partitions is UNSET else assigned_partitions
        self.user_data = user_data
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ConsumerProtocolSubscription(Message):
    """ConsumerProtocolSubscription, versions 0-3: a data."""

    __slots__ = ("generation_id", "owned_partitions", "rack_id", "topics", "user_data")
    FIELDS = ("topics", "user_data", "owned_partitions", "generation_id", "rack_id")
    KIND = "data"
    MIN_VERSION, MAX_VERSION = 0, 3

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
        topics: list[str] = UNSET,
        user_data: bytes | None = None,
        owned_partitions: list[ConsumerProtocolSubscription.TopicPartition] = UNSET,
        generation_id: int = -1,
        rack_id: str | None = None,
        unknown_tags: Tags = (),
    ) -> None:
        self.topics = [] if topics is UNSET else topics
        self.user_data = user_data
        self.owned_partitions = [] if owned_partitions is UNSET else owned_partitions
        self.generation_id = generation_id
        self.rack_id = rack_id
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ControlRecordTypeSchema(Message):
    """ControlRecordTypeSchema, version 0: a data."""

    __slots__ = ("type",)
    FIELDS = ("type",)
    KIND = "data"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        type: int = 0,
        unknown_tags: Tags = (),
    ) -> None:
        self.type = type
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class DefaultPrincipalData(Message):
    """DefaultPrincipalData, version 0: a data."""

    __slots__ = ("name", "token_authenticated", "type")
    FIELDS = ("type", "name", "token_authenticated")
    KIND = "data"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        type: str = "",
        name: str = "",
        token_authenticated: bool = False,
        unknown_tags: Tags = (),
    ) -> None:
        self.type = type
        self.name = name
        self.token_authenticated = token_authenticated
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class EndTxnMarker(Message):
    """EndTxnMarker, version 0: a data."""

    __slots__ = ("coordinator_epoch",)
    FIELDS = ("coordinator_epoch",)
    KIND = "data"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        coordinator_epoch: int = 0,
        unknown_tags: Tags = (),
    ) -> None:
        self.coordinator_epoch = coordinator_epoch
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class KRaftVersionRecord(Message):
    """KRaftVersionRecord, version 0: a data."""

    __slots__ = ("kraft_version", "version")
    FIELDS = ("version", "kraft_version")
    KIND = "data"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        version: int = 0,
        kraft_version: int = 0,
        unknown_tags: Tags = (),
    ) -> None:
        self.version = version
        self.kraft_version = kraft_version
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class LeaderChangeMessage(Message):
    """LeaderChangeMessage, versions 0-1: a data."""

    __slots__ = ("granting_voters", "leader_id", "version", "voters")
    FIELDS = ("version", "leader_id", "voters", "granting_voters")
    KIND = "data"
    MIN_VERSION, MAX_VERSION = 0, 1

    class Voter(Struct):
        __slots__ = ("voter_directory_id", "voter_id")
        FIELDS = ("voter_id", "voter_directory_id")

        def __init__(
            self,
            *,
            voter_id: int = 0,
            voter_directory_id: bytes = ZERO,
            unknown_tags: Tags = (),
        ) -> None:
            self.voter_id = voter_id
            self.voter_directory_id = voter_directory_id
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        version: int = 0,
        leader_id: int = 0,
        voters: list[LeaderChangeMessage.Voter] = UNSET,
        granting_voters: list[LeaderChangeMessage.Voter] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.version = version
        self.leader_id = leader_id
        self.voters = [] if voters is UNSET else voters
        self.granting_voters = [] if granting_voters is UNSET else granting_voters
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class SnapshotFooterRecord(Message):
    """SnapshotFooterRecord, version 0: a data."""

    __slots__ = ("version",)
    FIELDS = ("version",)
    KIND = "data"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        version: int = 0,
        unknown_tags: Tags = (),
    ) -> None:
        self.version = version
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class SnapshotHeaderRecord(Message):
    """SnapshotHeaderRecord, version 0: a data."""

    __slots__ = ("last_contained_log_timestamp", "version")
    FIELDS = ("version", "last_contained_log_timestamp")
    KIND = "data"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        version: int = 0,
        last_contained_log_timestamp: int = 0,
        unknown_tags: Tags = (),
    ) -> None:
        self.version = version
        self.last_contained_log_timestamp = last_contained_log_timestamp
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class VotersRecord(Message):
    """VotersRecord, version 0: a data."""

    __slots__ = ("version", "voters")
    FIELDS = ("version", "voters")
    KIND = "data"
    MIN_VERSION, MAX_VERSION = 0, 0

    class Voter(Struct):
        __slots__ = ("endpoints", "kraft_version_feature", "voter_directory_id", "voter_id")
        FIELDS = ("voter_id", "voter_directory_id", "endpoints", "kraft_version_feature")

        def __init__(
            self,
            *,
            voter_id: int = 0,
            voter_directory_id: bytes = ZERO,
            endpoints: list[VotersRecord.Endpoint] = UNSET,
            kraft_version_feature: VotersRecord.KRaftVersionFeature = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.voter_id = voter_id
            self.voter_directory_id = voter_directory_id
            self.endpoints = [] if endpoints is UNSET else endpoints
            self.kraft_version_feature = (
                VotersRecord.KRaftVersionFeature()
                if kraft_version_feature is UNSET
                else kraft_version_feature
            )
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class Endpoint(Struct):
        __slots__ = ("host", "name", "port")
        FIELDS = ("name", "host", "port")

        def __init__(
            self,
            *,
            name: str = "",
            host: str = "",
            port: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.host = host
            self.port = port
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class KRaftVersionFeature(Struct):
        __slots__ = ("max_supported_version", "min_supported_version")
        FIELDS = ("min_supported_version", "max_supported_version")

        def __init__(
            self,
            *,
            min_supported_version: int = 0,
            max_supported_version: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.min_supported_version = min_supported_version
            self.max_supported_version = max_supported_version
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        version: int = 0,
        voters: list[VotersRecord.Voter] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.version = version
        self.voters = [] if voters is UNSET else voters
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
