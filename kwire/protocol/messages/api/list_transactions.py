"""Generated from `schema/api/list_transactions.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags


class ListTransactionsRequest(Request["ListTransactionsResponse"]):
    """ListTransactionsRequest, versions 0-2: a request."""

    __slots__ = (
        "duration_filter",
        "producer_id_filters",
        "state_filters",
        "transactional_id_pattern",
    )
    FIELDS = ("state_filters", "producer_id_filters", "duration_filter", "transactional_id_pattern")
    API_KEY = 66
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 2

    def __init__(
        self,
        *,
        state_filters: list[str] = UNSET,
        producer_id_filters: list[int] = UNSET,
        duration_filter: int = -1,
        transactional_id_pattern: str | None = None,
        unknown_tags: Tags = (),
    ) -> None:
        self.state_filters = [] if state_filters is UNSET else state_filters
        self.producer_id_filters = [] if producer_id_filters is UNSET else producer_id_filters
        self.duration_filter = duration_filter
        self.transactional_id_pattern = transactional_id_pattern
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ListTransactionsResponse(Message):
    """ListTransactionsResponse, versions 0-2: a response."""

    __slots__ = ("error_code", "throttle_time_ms", "transaction_states", "unknown_state_filters")
    FIELDS = ("throttle_time_ms", "error_code", "unknown_state_filters", "transaction_states")
    API_KEY = 66
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 2

    class TransactionState(Struct):
        __slots__ = ("producer_id", "transaction_state", "transactional_id")
        FIELDS = ("transactional_id", "producer_id", "transaction_state")

        def __init__(
            self,
            *,
            transactional_id: str = "",
            producer_id: int = 0,
            transaction_state: str = "",
            unknown_tags: Tags = (),
        ) -> None:
            self.transactional_id = transactional_id
            self.producer_id = producer_id
            self.transaction_state = transaction_state
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        unknown_state_filters: list[str] = UNSET,
        transaction_states: list[ListTransactionsResponse.TransactionState] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.unknown_state_filters = [] if unknown_state_filters is UNSET else unknown_state_filters
        self.transaction_states = [] if transaction_states is UNSET else transaction_states
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
