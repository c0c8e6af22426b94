"""Generated from `schema/api/init_producer_id.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import Message, Request, Tags


class InitProducerIdRequest(Request["InitProducerIdResponse"]):
    """InitProducerIdRequest, versions 0-6: a request."""

    __slots__ = (
        "enable_2pc",
        "keep_prepared_txn",
        "producer_epoch",
        "producer_id",
        "transaction_timeout_ms",
        "transactional_id",
    )
    FIELDS = (
        "transactional_id",
        "transaction_timeout_ms",
        "producer_id",
        "producer_epoch",
        "enable_2pc",
        "keep_prepared_txn",
    )
    API_KEY = 22
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 6

    def __init__(
        self,
        *,
        transactional_id: str | None = "",
        transaction_timeout_ms: int = 0,
        producer_id: int = -1,
        producer_epoch: int = -1,
        enable_2pc: bool = False,
        keep_prepared_txn: bool = False,
        unknown_tags: Tags = (),
    ) -> None:
        self.transactional_id = transactional_id
        self.transaction_timeout_ms = transaction_timeout_ms
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.enable_2pc = enable_2pc
        self.keep_prepared_txn = keep_prepared_txn
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class InitProducerIdResponse(Message):
    """InitProducerIdResponse, versions 0-6: a response."""

    __slots__ = (
        "error_code",
        "ongoing_txn_producer_epoch",
        "ongoing_txn_producer_id",
        "producer_epoch",
        "producer_id",
        "throttle_time_ms",
    )
    FIELDS = (
        "throttle_time_ms",
        "error_code",
        "producer_id",
        "producer_epoch",
        "ongoing_txn_producer_id",
        "ongoing_txn_producer_epoch",
    )
    API_KEY = 22
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 6

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id: int = -1,
        producer_epoch: int = 0,
        ongoing_txn_producer_id: int = -1,
        ongoing_txn_producer_epoch: int = -1,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.ongoing_txn_producer_id = ongoing_txn_producer_id
        self.ongoing_txn_producer_epoch = ongoing_txn_producer_epoch
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
