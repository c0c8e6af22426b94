"""Generated from `schema/api/end_txn.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import Message, Request, Tags


class EndTxnRequest(Request["EndTxnResponse"]):
    """EndTxnRequest, versions 0-5: a request."""

    __slots__ = ("committed", "producer_epoch", "producer_id", "transactional_id")
    FIELDS = ("transactional_id", "producer_id", "producer_epoch", "committed")
    API_KEY = 26
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 5

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        committed: bool = False,
        unknown_tags: Tags = (),
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.committed = committed
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class EndTxnResponse(Message):
    """EndTxnResponse, versions 0-5: a response."""

    __slots__ = ("error_code", "producer_epoch", "producer_id", "throttle_time_ms")
    FIELDS = ("throttle_time_ms", "error_code", "producer_id", "producer_epoch")
    API_KEY = 26
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 5

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id: int = -1,
        producer_epoch: int = -1,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
