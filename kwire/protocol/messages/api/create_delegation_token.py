"""Generated from `schema/api/create_delegation_token.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags


class CreateDelegationTokenRequest(Request["CreateDelegationTokenResponse"]):
    """CreateDelegationTokenRequest, versions 1-3: a request."""

    __slots__ = ("max_lifetime_ms", "owner_principal_name", "owner_principal_type", "renewers")
    FIELDS = ("owner_principal_type", "owner_principal_name", "renewers", "max_lifetime_ms")
    API_KEY = 38
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 1, 3

    class CreatableRenewers(Struct):
        __slots__ = ("principal_name", "principal_type")
        FIELDS = ("principal_type", "principal_name")

        def __init__(
            self,
            *,
            principal_type: str = "",
            principal_name: str = "",
            unknown_tags: Tags = (),
        ) -> None:
            self.principal_type = principal_type
            self.principal_name = principal_name
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        owner_principal_type: str | None = "",
        owner_principal_name: str | None = "",
        renewers: list[CreateDelegationTokenRequest.CreatableRenewers] = UNSET,
        max_lifetime_ms: int = 0,
        unknown_tags: Tags = (),
    ) -> None:
        self.owner_principal_type = owner_principal_type
        self.owner_principal_name = owner_principal_name
        self.renewers = [] if renewers is UNSET else renewers
        self.max_lifetime_ms = max_lifetime_ms
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class CreateDelegationTokenResponse(Message):
    """CreateDelegationTokenResponse, versions 1-3: a response."""

    __slots__ = (
        "error_code",
        "expiry_timestamp_ms",
        "hmac",
        "issue_timestamp_ms",
        "max_timestamp_ms",
        "principal_name",
        "principal_type",
        "throttle_time_ms",
        "token_id",
        "token_requester_principal_name",
        "token_requester_principal_type",
    )
    FIELDS = (
        "error_code",
        "principal_type",
        "principal_name",
        "token_requester_principal_type",
        "token_requester_principal_name",
        "issue_timestamp_ms",
        "expiry_timestamp_ms",
        "max_timestamp_ms",
        "token_id",
        "hmac",
        "throttle_time_ms",
    )
    API_KEY = 38
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 1, 3

    def __init__(
        self,
        *,
        error_code: int = 0,
        principal_type: str = "",
        principal_name: str = "",
        token_requester_principal_type: str = "",
        token_requester_principal_name: str = "",
        issue_timestamp_ms: int = 0,
        expiry_timestamp_ms: int = 0,
        max_timestamp_ms: int = 0,
        token_id: str = "",
        hmac: bytes = b"",
        throttle_time_ms: int = 0,
        unknown_tags: Tags = (),
    ) -> None:
        self.error_code = error_code
        self.principal_type = principal_type
        self.principal_name = principal_name
        self.token_requester_principal_type = token_requester_principal_type
        self.token_requester_principal_name = token_requester_principal_name
        self.issue_timestamp_ms = issue_timestamp_ms
        self.expiry_timestamp_ms = expiry_timestamp_ms
        self.max_timestamp_ms = max_timestamp_ms
        self.token_id = token_id
        self.hmac = hmac
        self.throttle_time_ms = throttle_time_ms
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
