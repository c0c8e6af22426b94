"""Generated from `schema/api/write_txn_markers.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags


class WriteTxnMarkersRequest(Request["WriteTxnMarkersResponse"]):
    """WriteTxnMarkersRequest, versions 1-2: a request."""

    __slots__ = ("markers",)
    FIELDS = ("markers",)
    API_KEY = 27
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 1, 2

    class WritableTxnMarker(Struct):
        __slots__ = (
            "coordinator_epoch",
            "producer_epoch",
            "producer_id",
            "topics",
            "transaction_result",
            "transaction_version",
        )
        FIELDS = (
            "producer_id",
            "producer_epoch",
            "transaction_result",
            "topics",
            "coordinator_epoch",
            "transaction_version",
        )

        def __init__(
            self,
            *,
            producer_id: int = 0,
            producer_epoch: int = 0,
            transaction_result: bool = False,
            topics: list[WriteTxnMarkersRequest.WritableTxnMarkerTopic] = UNSET,
            coordinator_epoch: int = 0,
            transaction_version: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.producer_id = producer_id
            self.producer_epoch = producer_epoch
            self.transaction_result = transaction_result
            self.topics = [] if topics is UNSET else topics
            self.coordinator_epoch = coordinator_epoch
            self.transaction_version = transaction_version
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class WritableTxnMarkerTopic(Struct):
        __slots__ = ("name", "partition_indexes")
        FIELDS = ("name", "partition_indexes")

        def __init__(
            self,
            *,
            name: str = "",
            partition_indexes: list[int] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.partition_indexes = [] if partition_indexes is UNSET else partition_indexes
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        markers: list[WriteTxnMarkersRequest.WritableTxnMarker] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.markers = [] if markers is UNSET else markers
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class WriteTxnMarkersResponse(Message):
    """WriteTxnMarkersResponse, versions 1-2: a response."""

    __slots__ = ("markers",)
    FIELDS = ("markers",)
    API_KEY = 27
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 1, 2

    class WritableTxnMarkerResult(Struct):
        __slots__ = ("producer_id", "topics")
        FIELDS = ("producer_id", "topics")

        def __init__(
            self,
            *,
            producer_id: int = 0,
            topics: list[WriteTxnMarkersResponse.WritableTxnMarkerTopicResult] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.producer_id = producer_id
            self.topics = [] if topics is UNSET else topics
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class WritableTxnMarkerTopicResult(Struct):
        __slots__ = ("name", "partitions")
        FIELDS = ("name", "partitions")

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is UNSET else partitions
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class WritableTxnMarkerPartitionResult(Struct):
        __slots__ = ("error_code", "partition_index")
        FIELDS = ("partition_index", "error_code")

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.partition_index = partition_index
            self.error_code = error_code
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        markers: list[WriteTxnMarkersResponse.WritableTxnMarkerResult] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.markers = [] if markers is UNSET else markers
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
