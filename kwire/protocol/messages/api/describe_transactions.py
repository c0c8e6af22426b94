"""Generated from `schema/api/describe_transactions.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags


class DescribeTransactionsRequest(Request["DescribeTransactionsResponse"]):
    """DescribeTransactionsRequest, version 0: a request."""

    __slots__ = ("transactional_ids",)
    FIELDS = ("transactional_ids",)
    API_KEY = 65
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 0

    def __init__(
        self,
        *,
        transactional_ids: list[str] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.transactional_ids = [] if transactional_ids is UNSET else transactional_ids
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class DescribeTransactionsResponse(Message):
    """DescribeTransactionsResponse, version 0: a response."""

    __slots__ = ("throttle_time_ms", "transaction_states")
    FIELDS = ("throttle_time_ms", "transaction_states")
    API_KEY = 65
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 0

    class TransactionState(Struct):
        __slots__ = (
            "error_code",
            "producer_epoch",
            "producer_id",
            "topics",
            "transaction_start_time_ms",
            "transaction_state",
            "transaction_timeout_ms",
            "transactional_id",
        )
        FIELDS = (
            "error_code",
            "transactional_id",
            "transaction_state",
            "transaction_timeout_ms",
            "transaction_start_time_ms",
            "producer_id",
            "producer_epoch",
            "topics",
        )

        def __init__(
            self,
            *,
            error_code: int = 0,
            transactional_id: str = "",
            transaction_state: str = "",
            transaction_timeout_ms: int = 0,
            transaction_start_time_ms: int = 0,
            producer_id: int = 0,
            producer_epoch: int = 0,
            topics: list[DescribeTransactionsResponse.TopicData] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.error_code = error_code
            self.transactional_id = transactional_id
            self.transaction_state = transaction_state
            self.transaction_timeout_ms = transaction_timeout_ms
            self.transaction_start_time_ms = transaction_start_time_ms
            self.producer_id = producer_id
            self.producer_epoch = producer_epoch
            self.topics = [] if topics is UNSET else topics
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class TopicData(Struct):
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
        throttle_time_ms: int = 0,
        transaction_states: list[DescribeTransactionsResponse.TransactionState] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.transaction_states = [] if transaction_states is UNSET else transaction_states
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
