"""Generated from `schema/records/storage.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Struct, Tagged, Tags
from kwire.protocol.uuids import ZERO


class ProducerSnapshot(Message):
    """ProducerSnapshot, version 1: a data."""

    __slots__ = ("crc", "producer_entries")
    FIELDS = ("crc", "producer_entries")
    KIND = "data"
    MIN_VERSION, MAX_VERSION = 1, 1

    class ProducerEntry(Struct):
        __slots__ = (
            "coordinator_epoch",
            "current_txn_first_offset",
            "epoch",
            "last_offset",
            "last_sequence",
            "offset_delta",
            "producer_id",
            "timestamp",
        )
        FIELDS = (
            "producer_id",
            "epoch",
            "last_sequence",
            "last_offset",
            "offset_delta",
            "timestamp",
            "coordinator_epoch",
            "current_txn_first_offset",
        )

        def __init__(
            self,
            *,
            producer_id: int = 0,
            epoch: int = 0,
            last_sequence: int = 0,
            last_offset: int = 0,
            offset_delta: int = 0,
            timestamp: int = 0,
            coordinator_epoch: int = 0,
            current_txn_first_offset: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.producer_id = producer_id
            self.epoch = epoch
            self.last_sequence = last_sequence
            self.last_offset = last_offset
            self.offset_delta = offset_delta
            self.timestamp = timestamp
            self.coordinator_epoch = coordinator_epoch
            self.current_txn_first_offset = current_txn_first_offset
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        crc: int = 0,
        producer_entries: list[ProducerSnapshot.ProducerEntry] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.crc = crc
        self.producer_entries = [] if producer_entries is UNSET else producer_entries
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class RemoteLogSegmentMetadataRecord(Message):
    """RemoteLogSegmentMetadataRecord, version 0: a metadata record."""

    __slots__ = (
        "broker_id",
        "custom_metadata",
        "end_offset",
        "event_timestamp_ms",
        "max_timestamp_ms",
        "remote_log_segment_id",
        "remote_log_segment_state",
        "segment_leader_epochs",
        "segment_size_in_bytes",
        "start_offset",
    )
    FIELDS = (
        "remote_log_segment_id",
        "start_offset",
        "end_offset",
        "broker_id",
        "max_timestamp_ms",
        "event_timestamp_ms",
        "segment_leader_epochs",
        "segment_size_in_bytes",
        "custom_metadata",
        "remote_log_segment_state",
        "txn_index_empty",
    )
    API_KEY = 0
    KIND = "metadata"
    MIN_VERSION, MAX_VERSION = 0, 0

    class RemoteLogSegmentIdEntry(Struct):
        __slots__ = ("id", "topic_id_partition")
        FIELDS = ("topic_id_partition", "id")

        def __init__(
            self,
            *,
            topic_id_partition: RemoteLogSegmentMetadataRecord.TopicIdPartitionEntry = UNSET,
            id: bytes = ZERO,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic_id_partition = (
                RemoteLogSegmentMetadataRecord.TopicIdPartitionEntry()
                if topic_id_partition is UNSET
                else topic_id_partition
            )
            self.id = id
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class TopicIdPartitionEntry(Struct):
        __slots__ = ("id", "name", "partition")
        FIELDS = ("name", "id", "partition")

        def __init__(
            self,
            *,
            name: str = "",
            id: bytes = ZERO,
            partition: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.id = id
            self.partition = partition
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class SegmentLeaderEpochEntry(Struct):
        __slots__ = ("leader_epoch", "offset")
        FIELDS = ("leader_epoch", "offset")

        def __init__(
            self,
            *,
            leader_epoch: int = 0,
            offset: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.leader_epoch = leader_epoch
            self.offset = offset
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    txn_index_empty = Tagged["bool"](False)

    def __init__(
        self,
        *,
        remote_log_segment_id: RemoteLogSegmentMetadataRecord.RemoteLogSegmentIdEntry = UNSET,
        start_offset: int = 0,
        end_offset: int = 0,
        broker_id: int = 0,
        max_timestamp_ms: int = 0,
        event_timestamp_ms: int = 0,
        segment_leader_epochs: list[RemoteLogSegmentMetadataRecord.SegmentLeaderEpochEntry] = UNSET,
        segment_size_in_bytes: int = 0,
        custom_metadata: bytes | None = None,
        remote_log_segment_state: int = 0,
        txn_index_empty: bool = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.remote_log_segment_id = (
            RemoteLogSegmentMetadataRecord.RemoteLogSegmentIdEntry()
            if remote_log_segment_id is UNSET
            else remote_log_segment_id
        )
        self.start_offset = start_offset
        self.end_offset = end_offset
        self.broker_id = broker_id
        self.max_timestamp_ms = max_timestamp_ms
        self.event_timestamp_ms = event_timestamp_ms
        self.segment_leader_epochs = [] if segment_leader_epochs is UNSET else segment_leader_epochs
        self.segment_size_in_bytes = segment_size_in_bytes
        self.custom_metadata = custom_metadata
        self.remote_log_segment_state = remote_log_segment_state
        self._tagged = None
        if txn_index_empty is not UNSET:
            self.txn_index_empty = txn_index_empty
        if unknown_tags:
            self.unknown_tags = unknown_tags


class RemoteLogSegmentMetadataUpdateRecord(Message):
    """RemoteLogSegmentMetadataUpdateRecord, version 0: a metadata record."""

    __slots__ = (
        "broker_id",
        "custom_metadata",
        "event_timestamp_ms",
        "remote_log_segment_id",
        "remote_log_segment_state",
    )
    FIELDS = (
        "remote_log_segment_id",
        "broker_id",
        "event_timestamp_ms",
        "custom_metadata",
        "remote_log_segment_state",
    )
    API_KEY = 1
    KIND = "metadata"
    MIN_VERSION, MAX_VERSION = 0, 0

    class RemoteLogSegmentIdEntry(Struct):
        __slots__ = ("id", "topic_id_partition")
        FIELDS = ("topic_id_partition", "id")

        def __init__(
            self,
            *,
            topic_id_partition: RemoteLogSegmentMetadataUpdateRecord.TopicIdPartitionEntry = UNSET,
            id: bytes = ZERO,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic_id_partition = (
                RemoteLogSegmentMetadataUpdateRecord.TopicIdPartitionEntry()
                if topic_id_partition is UNSET
                else topic_id_partition
            )
            self.id = id
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class TopicIdPartitionEntry(Struct):
        __slots__ = ("id", "name", "partition")
        FIELDS = ("name", "id", "partition")

        def __init__(
            self,
            *,
            name: str = "",
            id: bytes = ZERO,
            partition: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.id = id
            self.partition = partition
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        remote_log_segment_id: RemoteLogSegmentMetadataUpdateRecord.RemoteLogSegmentIdEntry = UNSET,
        broker_id: int = 0,
        event_timestamp_ms: int = 0,
        custom_metadata: bytes | None = None,
        remote_log_segment_state: int = 0,
        unknown_tags: Tags = (),
    ) -> None:
        self.remote_log_segment_id = (
            RemoteLogSegmentMetadataUpdateRecord.RemoteLogSegmentIdEntry()
            if remote_log_segment_id is UNSET
            else remote_log_segment_id
        )
        self.broker_id = broker_id
        self.event_timestamp_ms = event_timestamp_ms
        self.custom_metadata = custom_metadata
        self.remote_log_segment_state = remote_log_segment_state
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class RemotePartitionDeleteMetadataRecord(Message):
    """RemotePartitionDeleteMetadataRecord, version 0: a metadata record."""

    __slots__ = (
        "broker_id",
        "event_timestamp_ms",
        "remote_partition_delete_state",
        "topic_id_partition",
    )
    FIELDS = (
        "topic_id_partition",
        "broker_id",
        "event_timestamp_ms",
        "remote_partition_delete_state",
    )
    API_KEY = 2
    KIND = "metadata"
    MIN_VERSION, MAX_VERSION = 0, 0

    class TopicIdPartitionEntry(Struct):
        __slots__ = ("id", "name", "partition")
        FIELDS = ("name", "id", "partition")

        def __init__(
            self,
            *,
            name: str = "",
            id: bytes = ZERO,
            partition: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.id = id
            self.partition = partition
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        topic_id_partition: RemotePartitionDeleteMetadataRecord.TopicIdPartitionEntry = UNSET,
        broker_id: int = 0,
        event_timestamp_ms: int = 0,
        remote_partition_delete_state: int = 0,
        unknown_tags: Tags = (),
    ) -> None:
        self.topic_id_partition = (
            RemotePartitionDeleteMetadataRecord.TopicIdPartitionEntry()
            if topic_id_partition is UNSET
            else topic_id_partition
        )
        self.broker_id = broker_id
        self.event_timestamp_ms = event_timestamp_ms
        self.remote_partition_delete_state = remote_partition_delete_state
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class RemoteLogSegmentMetadataSnapshotRecord(Message):
    """RemoteLogSegmentMetadataSnapshotRecord, version 0: a metadata record."""

    __slots__ = (
        "broker_id",
        "custom_metadata",
        "end_offset",
        "event_timestamp_ms",
        "max_timestamp_ms",
        "remote_log_segment_state",
        "segment_id",
        "segment_leader_epochs",
        "segment_size_in_bytes",
        "start_offset",
    )
    FIELDS = (
        "segment_id",
        "start_offset",
        "end_offset",
        "broker_id",
        "max_timestamp_ms",
        "event_timestamp_ms",
        "segment_leader_epochs",
        "segment_size_in_bytes",
        "custom_metadata",
        "remote_log_segment_state",
        "txn_index_empty",
    )
    API_KEY = 3
    KIND = "metadata"
    MIN_VERSION, MAX_VERSION = 0, 0

    class SegmentLeaderEpochEntry(Struct):
        __slots__ = ("leader_epoch", "offset")
        FIELDS = ("leader_epoch", "offset")

        def __init__(
            self,
            *,
            leader_epoch: int = 0,
            offset: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.leader_epoch = leader_epoch
            self.offset = offset
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    txn_index_empty = Tagged["bool"](False)

    def __init__(
        self,
        *,
        segment_id: bytes = ZERO,
        start_offset: int = 0,
        end_offset: int = 0,
        broker_id: int = 0,
        max_timestamp_ms: int = 0,
        event_timestamp_ms: int = 0,
        segment_leader_epochs: list[
            RemoteLogSegmentMetadataSnapshotRecord.SegmentLeaderEpochEntry
        ] = UNSET,
        segment_size_in_bytes: int = 0,
        custom_metadata: bytes | None = None,
        remote_log_segment_state: int = 0,
        txn_index_empty: bool = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.segment_id = segment_id
        self.start_offset = start_offset
        self.end_offset = end_offset
        self.broker_id = broker_id
        self.max_timestamp_ms = max_timestamp_ms
        self.event_timestamp_ms = event_timestamp_ms
        self.segment_leader_epochs = [] if segment_leader_epochs is UNSET else segment_leader_epochs
        self.segment_size_in_bytes = segment_size_in_bytes
        self.custom_metadata = custom_metadata
        self.remote_log_segment_state = remote_log_segment_state
        self._tagged = None
        if txn_index_empty is not UNSET:
            self.txn_index_empty = txn_index_empty
        if unknown_tags:
            self.unknown_tags = unknown_tags
