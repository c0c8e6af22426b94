"""Generated from `schema/api/describe_user_scram_credentials.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags


class DescribeUserScramCredentialsRequest(Request["DescribeUserScramCredentialsResponse"]):
    """DescribeUserScramCredentialsRequest, version 0: a request."""

    __slots__ = ("users",)
    FIELDS = ("users",)
    API_KEY = 50
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 0

    class UserName(Struct):
        __slots__ = ("name",)
        FIELDS = ("name",)

        def __init__(
            self,
            *,
            name: str = "",
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        users: list[DescribeUserScramCredentialsRequest.UserName] | None = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.users = [] if users is UNSET else users
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class DescribeUserScramCredentialsResponse(Message):
    """DescribeUserScramCredentialsResponse, version 0: a response."""

    __slots__ = ("error_code", "error_message", "results", "throttle_time_ms")
    FIELDS = ("throttle_time_ms", "error_code", "error_message", "results")
    API_KEY = 50
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 0

    class DescribeUserScramCredentialsResult(Struct):
        __slots__ = ("credential_infos", "error_code", "error_message", "user")
        FIELDS = ("user", "error_code", "error_message", "credential_infos")

        def __init__(
            self,
            *,
            user: str = "",
            error_code: int = 0,
            error_message: str | None = "",
            credential_infos: list[DescribeUserScramCredentialsResponse.CredentialInfo] = UNSET,
            unknown_tags: Tags = (),
        ) -> None:
            self.user = user
            self.error_code = error_code
            self.error_message = error_message
            self.credential_infos = [] if credential_infos is UNSET else credential_infos
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class CredentialInfo(Struct):
        __slots__ = ("iterations", "mechanism")
        FIELDS = ("mechanism", "iterations")

        def __init__(
            self,
            *,
            mechanism: int = 0,
            iterations: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.mechanism = mechanism
            self.iterations = iterations
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        results: list[
            DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult
        ] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.results = [] if results is UNSET else results
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
