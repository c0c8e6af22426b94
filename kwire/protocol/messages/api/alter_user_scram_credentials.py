"""Generated from `schema/api/alter_user_scram_credentials.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags


class AlterUserScramCredentialsRequest(Request["AlterUserScramCredentialsResponse"]):
    """AlterUserScramCredentialsRequest, version 0: a request."""

    __slots__ = ("deletions", "upsertions")
    FIELDS = ("deletions", "upsertions")
    API_KEY = 51
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 0

    class ScramCredentialDeletion(Struct):
        __slots__ = ("mechanism", "name")
        FIELDS = ("name", "mechanism")

        def __init__(
            self,
            *,
            name: str = "",
            mechanism: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.mechanism = mechanism
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class ScramCredentialUpsertion(Struct):
        __slots__ = ("iterations", "mechanism", "name", "salt", "salted_password")
        FIELDS = ("name", "mechanism", "iterations", "salt", "salted_password")

        def __init__(
            self,
            *,
            name: str = "",
            mechanism: int = 0,
            iterations: int = 0,
            salt: bytes = b"",
            salted_password: bytes = b"",
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.mechanism = mechanism
            self.iterations = iterations
            self.salt = salt
            self.salted_password = salted_password
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        deletions: list[AlterUserScramCredentialsRequest.ScramCredentialDeletion] = UNSET,
        upsertions: list[AlterUserScramCredentialsRequest.ScramCredentialUpsertion] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.deletions = [] if deletions is UNSET else deletions
        self.upsertions = [] if upsertions is UNSET else upsertions
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class AlterUserScramCredentialsResponse(Message):
    """AlterUserScramCredentialsResponse, version 0: a response."""

    __slots__ = ("results", "throttle_time_ms")
    FIELDS = ("throttle_time_ms", "results")
    API_KEY = 51
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 0

    class AlterUserScramCredentialsResult(Struct):
        __slots__ = ("error_code", "error_message", "user")
        FIELDS = ("user", "error_code", "error_message")

        def __init__(
            self,
            *,
            user: str = "",
            error_code: int = 0,
            error_message: str | None = "",
            unknown_tags: Tags = (),
        ) -> None:
            self.user = user
            self.error_code = error_code
            self.error_message = error_message
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is UNSET else results
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
