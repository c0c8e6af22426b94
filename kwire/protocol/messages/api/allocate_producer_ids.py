"""Generated from `schema/api/allocate_producer_ids.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import Message, Request, Tags


class AllocateProducerIdsRequest(Request["AllocateProducerIdsResponse"]):
    """AllocateProducerIdsRequest, version 0: a request."""

    __slots__ = ("broker_epoch", "broker_id")
    FIELDS = ("broker_id", "broker_epoch")
    API_KEY = 67
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 0

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


class AllocateProducerIdsResponse(Message):
    """AllocateProducerIdsResponse, version 0: a response."""

    __slots__ = ("error_code", "producer_id_len", "producer_id_start", "throttle_time_ms")
    FIELDS = ("throttle_time_ms", "error_code", "producer_id_start", "producer_id_len")
    API_KEY = 67
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id_start: int = 0,
        producer_id_len: int = 0,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.producer_id_start = producer_id_start
        self.producer_id_len = producer_id_len
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
