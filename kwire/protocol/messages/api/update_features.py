"""Generated from `schema/api/update_features.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tags


class UpdateFeaturesRequest(Request["UpdateFeaturesResponse"]):
    """UpdateFeaturesRequest, versions 0-2: a request."""

    __slots__ = ("feature_updates", "timeout_ms", "validate_only")
    FIELDS = ("timeout_ms", "feature_updates", "validate_only")
    API_KEY = 57
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 2

    class FeatureUpdateKey(Struct):
        __slots__ = ("allow_downgrade", "feature", "max_version_level", "upgrade_type")
        FIELDS = ("feature", "max_version_level", "allow_downgrade", "upgrade_type")

        def __init__(
            self,
            *,
            feature: str = "",
            max_version_level: int = 0,
            allow_downgrade: bool = False,
            upgrade_type: int = 1,
            unknown_tags: Tags = (),
        ) -> None:
            self.feature = feature
            self.max_version_level = max_version_level
            self.allow_downgrade = allow_downgrade
            self.upgrade_type = upgrade_type
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        feature_updates: list[UpdateFeaturesRequest.FeatureUpdateKey] = UNSET,
        validate_only: bool = False,
        unknown_tags: Tags = (),
    ) -> None:
        self.timeout_ms = timeout_ms
        self.feature_updates = [] if feature_updates is UNSET else feature_updates
        self.validate_only = validate_only
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class UpdateFeaturesResponse(Message):
    """UpdateFeaturesResponse, versions 0-2: a response."""

    __slots__ = ("error_code", "error_message", "results", "throttle_time_ms")
    FIELDS = ("throttle_time_ms", "error_code", "error_message", "results")
    API_KEY = 57
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 2

    class UpdatableFeatureResult(Struct):
        __slots__ = ("error_code", "error_message", "feature")
        FIELDS = ("feature", "error_code", "error_message")

        def __init__(
            self,
            *,
            feature: str = "",
            error_code: int = 0,
            error_message: str | None = "",
            unknown_tags: Tags = (),
        ) -> None:
            self.feature = feature
            self.error_code = error_code
            self.error_message = error_message
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        results: list[UpdateFeaturesResponse.UpdatableFeatureResult] = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.results = [] if results is UNSET else results
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags
