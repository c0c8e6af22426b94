"""Generated from `schema/records/transaction_coordinator.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Struct, Tagged, Tags


class TransactionLogKey(Message):
    """TransactionLogKey, version 0: a key of a coordinator record."""

    __slots__ = ("transactional_id",)
    FIELDS = ("transactional_id",)
    API_KEY = 0
    KIND = "coordinator-key"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        transactional_id: str = "",
        unknown_tags: Tags = (),
    ) -> None:
        self.transactional_id = transactional_id
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class TransactionLogValue(Message):
    """TransactionLogValue, versions 0-1: a value of a coordinator record."""

    __slots__ = (
        "producer_epoch",
        "producer_id",
        "transaction_last_update_timestamp_ms",
        "transaction_partitions",
        "transaction_start_timestamp_ms",
        "transaction_status",
        "transaction_timeout_ms",
    )
    FIELDS = (
        "producer_id",
        "previous_producer_id",
        "next_producer_id",
        "producer_epoch",
        "next_producer_epoch",
        "transaction_timeout_ms",
        "transaction_status",
        "transaction_partitions",
        "transaction_last_update_timestamp_ms",
        "transaction_start_timestamp_ms",
        "client_transaction_version",
    )
    API_KEY = 0
    KIND = "coordinator-value"
    MIN_VERSION, MAX_VERSION = 0, 1

    class PartitionsSchema(Struct):
        __slots__ = ("partition_ids", "topic")
        FIELDS = ("topic", "partition_ids")

        def __init__(
            self,
            *,
            topic: str = "",
            partition_ids: list[int] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.topic = topic
            self.partition_ids = [] if partition_ids is UNSET else partition_ids
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    previous_producer_id = Tagged["int"](-1)
    next_producer_id = Tagged["int"](-1)
    next_producer_epoch = Tagged["int"](-1)
    client_transaction_version = Tagged["int"](0)

    def __init__(
        self,
        *,
        producer_id: int = 0,
        producer_epoch: int = 0,
        transaction_timeout_ms: int = 0,
        transaction_status: int = 0,
        transaction_partitions: list[TransactionLogValue.PartitionsSchema] | None = UNSET,
        transaction_last_update_timestamp_ms: int = 0,
        transaction_start_timestamp_ms: int = 0,
        previous_producer_id: int = UNSET,
        next_producer_id: int = UNSET,
        next_producer_epoch: int = UNSET,
        client_transaction_version: int = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.transaction_timeout_ms = transaction_timeout_ms
        self.transaction_status = transaction_status
        self.transaction_partitions = (
            [] if transaction_partitions is UNSET else transaction_partitions
        )
        self.transaction_last_update_timestamp_ms = transaction_last_update_timestamp_ms
        self.transaction_start_timestamp_ms = transaction_start_timestamp_ms
        self._tagged = None
        if previous_producer_id is not UNSET:
            self.previous_producer_id = previous_producer_id
        if next_producer_id is not UNSET:
            self.next_producer_id = next_producer_id
        if next_producer_epoch is not UNSET:
            self.next_producer_epoch = next_producer_epoch
        if client_transaction_version is not UNSET:
            self.client_transaction_version = client_transaction_version
        if unknown_tags:
            self.unknown_tags = unknown_tags
