"""Generated from `schema/api/add_offsets_to_txn.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import Message, Request, Tags


class AddOffsetsToTxnRequest(Request["AddOffsetsToTxnResponse"]):
    """AddOffsetsToTxnRequest, versions 0-4: a request."""

    __slots__ = ("group_id", "producer_epoch", "producer_id", "transactional_id")
    FIELDS = ("transactional_id", "producer_id", "producer_epoch", "group_id")
    API_KEY = 25
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 4

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        group_id: str = "",
        unknown_tags: Tags = (),
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.group_id = group_id
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class AddOffsetsToTxnResponse(Message):
    """AddOffsetsToTxnResponse, versions 0-4: a response."""

    __slots__ = ("error_code", "throttle_time_ms")
    FIELDS = ("throttle_time_ms", "error_code")
    API_KEY = 25
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 4

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
