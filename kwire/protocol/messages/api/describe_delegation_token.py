"""Generated from `schema/api/describe_delegation_token.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags


class DescribeDelegationTokenRequest(Request["DescribeDelegationTokenResponse"]):
    """DescribeDelegationTokenRequest, versions 1-3: a request."""

    __slots__ = ("owners",)
    FIELDS = ("owners",)
    API_KEY = 41
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 1, 3

    class DescribeDelegationTokenOwner(Struct):
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
        owners: list[DescribeDelegationTokenRequest.DescribeDelegationTokenOwner] | None = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.owners = [] if owners is UNSET else owners
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class DescribeDelegationTokenResponse(Message):
    """DescribeDelegationTokenResponse, versions 1-3: a response."""

    __slots__ = ("error_code", "throttle_time_ms", "tokens")
    FIELDS = ("error_code", "tokens", "throttle_time_ms")
    API_KEY = 41
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 1, 3

    class DescribedDelegationToken(Struct):
        __slots__ = (
            "expiry_timestamp",
            "hmac",
            "issue_timestamp",
            "max_timestamp",
            "principal_name",
            "principal_type",
            "renewers",
            "token_id",
            "token_requester_principal_name",
            "token_requester_principal_type",
        )
        FIELDS = (
            "principal_type",
            "principal_name",
            "token_requester_principal_type",
            "token_requester_principal_name",
            "issue_timestamp",
            "expiry_timestamp",
            "max_timestamp",
            "token_id",
            "hmac",
            "renewers",
        )

        def __init__(
            self,
            *,
            principal_type: str = "",
            principal_name: str = "",
            token_requester_principal_type: str = "",
            token_requester_principal_name: str = "",
            issue_timestamp: int = 0,
            expiry_timestamp: int = 0,
            max_timestamp: int = 0,
            token_id: str = "",
            hmac: bytes = b"",
            renewers: list[DescribeDelegationTokenResponse.DescribedDelegationTokenRenewer] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.principal_type = principal_type
            self.principal_name = principal_name
            self.token_requester_principal_type = token_requester_principal_type
            self.token_requester_principal_name = token_requester_principal_name
            self.issue_timestamp = issue_timestamp
            self.expiry_timestamp = expiry_timestamp
            self.max_timestamp = max_timestamp
            self.token_id = token_id
            self.hmac = hmac
            self.renewers = [] if renewers is UNSET else renewers
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class DescribedDelegationTokenRenewer(Struct):
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
        error_code: int = 0,
        tokens: list[DescribeDelegationTokenResponse.DescribedDelegationToken] = UNSET,
        throttle_time_ms: int = 0,
        unknown_tags: Tags = (),
    ) -> None:
        self.error_code = error_code
        self.tokens = [] if tokens is UNSET else tokens
        self.throttle_time_ms = throttle_time_ms
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
