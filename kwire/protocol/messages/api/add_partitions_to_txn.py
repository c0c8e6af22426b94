"""Generated from `schema/api/add_partitions_to_txn.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags


class AddPartitionsToTxnRequest(Request["AddPartitionsToTxnResponse"]):
    """AddPartitionsToTxnRequest, versions 0-5: a request."""

    __slots__ = (
        "transactions",
        "v3_and_below_producer_epoch",
        "v3_and_below_producer_id",
        "v3_and_below_topics",
        "v3_and_below_transactional_id",
    )
    FIELDS = (
        "transactions",
        "v3_and_below_transactional_id",
        "v3_and_below_producer_id",
        "v3_and_below_producer_epoch",
        "v3_and_below_topics",
    )
    API_KEY = 24
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 5

    class AddPartitionsToTxnTransaction(Struct):
        __slots__ = ("producer_epoch", "producer_id", "topics", "transactional_id", "verify_only")
        FIELDS = ("transactional_id", "producer_id", "producer_epoch", "verify_only", "topics")

        def __init__(
            self,
            *,
            transactional_id: str = "",
            producer_id: int = 0,
            producer_epoch: int = 0,
            verify_only: bool = False,
            topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.transactional_id = transactional_id
            self.producer_id = producer_id
            self.producer_epoch = producer_epoch
            self.verify_only = verify_only
            self.topics = [] if topics is UNSET else topics
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class AddPartitionsToTxnTopic(Struct):
        __slots__ = ("name", "partitions")
        FIELDS = ("name", "partitions")

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[int] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        transactions: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction] = UNSET,
        v3_and_below_transactional_id: str = "",
        v3_and_below_producer_id: int = 0,
        v3_and_below_producer_epoch: int = 0,
        v3_and_below_topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.transactions = [] if transactions is UNSET else transactions
        self.v3_and_below_transactional_id = v3_and_below_transactional_id
        self.v3_and_below_producer_id = v3_and_below_producer_id
        self.v3_and_below_producer_epoch = v3_and_below_producer_epoch
        self.v3_and_below_topics = [] if v3_and_below_topics is UNSET else v3_and_below_topics
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class AddPartitionsToTxnResponse(Message):
    """AddPartitionsToTxnResponse, versions 0-5: a response."""

    __slots__ = (
        "error_code",
        "results_by_topic_v3_and_below",
        "results_by_transaction",
        "throttle_time_ms",
    )
    FIELDS = (
        "throttle_time_ms",
        "error_code",
        "results_by_transaction",
        "results_by_topic_v3_and_below",
    )
    API_KEY = 24
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 5

    class AddPartitionsToTxnResult(Struct):
        __slots__ = ("topic_results", "transactional_id")
        FIELDS = ("transactional_id", "topic_results")

        def __init__(
            self,
            *,
            transactional_id: str = "",
            topic_results: list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.transactional_id = transactional_id
            self.topic_results = [] if topic_results is UNSET else topic_results
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class AddPartitionsToTxnTopicResult(Struct):
        __slots__ = ("name", "results_by_partition")
        FIELDS = ("name", "results_by_partition")

        def __init__(
            self,
            *,
            name: str = "",
            results_by_partition: list[
                AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult
            ] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.results_by_partition = (
                [] if results_by_partition is UNSET else results_by_partition
            )
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class AddPartitionsToTxnPartitionResult(Struct):
        __slots__ = ("partition_error_code", "partition_index")
        FIELDS = ("partition_index", "partition_error_code")

        def __init__(
            self,
            *,
            partition_index: int = 0,
            partition_error_code: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.partition_index = partition_index
            self.partition_error_code = partition_error_code
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        results_by_transaction: list[AddPartitionsToTxnResponse.AddPartitionsToTxnResult] = UNSET,
        results_by_topic_v3_and_below: list[
            AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
        ] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.results_by_transaction = (
            [] if results_by_transaction is UNSET else results_by_transaction
        )
        self.results_by_topic_v3_and_below = (
            [] if results_by_topic_v3_and_below is UNSET else results_by_topic_v3_and_below
        )
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
