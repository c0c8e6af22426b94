"""Generated from `schema/records/share_coordinator.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Struct, Tagged, Tags
from kwire.protocol.uuids import ZERO


class ShareSnapshotKey(Message):
    """ShareSnapshotKey, version 0: a key of a coordinator record."""

    __slots__ = ("group_id", "partition", "topic_id")
    FIELDS = ("group_id", "topic_id", "partition")
    API_KEY = 0
    KIND = "coordinator-key"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        group_id: str = "",
        topic_id: bytes = ZERO,
        partition: int = 0,
        unknown_tags: Tags = (),
    ) -> None:
        self.group_id = group_id
        self.topic_id = topic_id
        self.partition = partition
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ShareSnapshotValue(Message):
    """ShareSnapshotValue, version 0: a value of a coordinator record."""

    __slots__ = (
        "create_timestamp",
        "leader_epoch",
        "snapshot_epoch",
        "start_offset",
        "state_batches",
        "state_epoch",
        "write_timestamp",
    )
    FIELDS = (
        "snapshot_epoch",
        "state_epoch",
        "leader_epoch",
        "start_offset",
        "delivery_complete_count",
        "create_timestamp",
        "write_timestamp",
        "state_batches",
    )
    API_KEY = 0
    KIND = "coordinator-value"
    MIN_VERSION, MAX_VERSION = 0, 0

    class StateBatch(Struct):
        __slots__ = ("delivery_count", "delivery_state", "first_offset", "last_offset")
        FIELDS = ("first_offset", "last_offset", "delivery_state", "delivery_count")

        def __init__(
            self,
            *,
            first_offset: int = 0,
            last_offset: int = 0,
            delivery_state: int = 0,
            delivery_count: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.first_offset = first_offset
            self.last_offset = last_offset
            self.delivery_state = delivery_state
            self.delivery_count = delivery_count
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    delivery_complete_count = Tagged["int"](-1)

    def __init__(
        self,
        *,
        snapshot_epoch: int = 0,
        state_epoch: int = 0,
        leader_epoch: int = 0,
        start_offset: int = 0,
        create_timestamp: int = 0,
        write_timestamp: int = 0,
        state_batches: list[ShareSnapshotValue.StateBatch] = UNSET,
        delivery_complete_count: int = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.snapshot_epoch = snapshot_epoch
        self.state_epoch = state_epoch
        self.leader_epoch = leader_epoch
        self.start_offset = start_offset
        self.create_timestamp = create_timestamp
        self.write_timestamp = write_timestamp
        self.state_batches = [] if state_batches is UNSET else state_batches
        self._tagged = None
        if delivery_complete_count is not UNSET:
            self.delivery_complete_count = delivery_complete_count
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ShareUpdateKey(Message):
    """ShareUpdateKey, version 0: a key of a coordinator record."""

    __slots__ = ("group_id", "partition", "topic_id")
    FIELDS = ("group_id", "topic_id", "partition")
    API_KEY = 1
    KIND = "coordinator-key"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        group_id: str = "",
        topic_id: bytes = ZERO,
        partition: int = 0,
        unknown_tags: Tags = (),
    ) -> None:
        self.group_id = group_id
        self.topic_id = topic_id
        self.partition = partition
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ShareUpdateValue(Message):
    """ShareUpdateValue, version 0: a value of a coordinator record."""

    __slots__ = ("leader_epoch", "snapshot_epoch", "start_offset", "state_batches")
    FIELDS = (
        "snapshot_epoch",
        "leader_epoch",
        "start_offset",
        "delivery_complete_count",
        "state_batches",
    )
    API_KEY = 1
    KIND = "coordinator-value"
    MIN_VERSION, MAX_VERSION = 0, 0

    class StateBatch(Struct):
        __slots__ = ("delivery_count", "delivery_state", "first_offset", "last_offset")
        FIELDS = ("first_offset", "last_offset", "delivery_state", "delivery_count")

        def __init__(
            self,
            *,
            first_offset: int = 0,
            last_offset: int = 0,
            delivery_state: int = 0,
            delivery_count: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.first_offset = first_offset
            self.last_offset = last_offset
            self.delivery_state = delivery_state
            self.delivery_count = delivery_count
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    delivery_complete_count = Tagged["int"](-1)

    def __init__(
        self,
        *,
        snapshot_epoch: int = 0,
        leader_epoch: int = 0,
        start_offset: int = 0,
        state_batches: list[ShareUpdateValue.StateBatch] = UNSET,
        delivery_complete_count: int = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.snapshot_epoch = snapshot_epoch
        self.leader_epoch = leader_epoch
        self.start_offset = start_offset
        self.state_batches = [] if state_batches is UNSET else state_batches
        self._tagged = None
        if delivery_complete_count is not UNSET:
            self.delivery_complete_count = delivery_complete_count
        if unknown_tags:
            self.unknown_tags = unknown_tags
