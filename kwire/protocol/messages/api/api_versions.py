"""Generated from `schema/api/api_versions.txt` (`make messages`): not to be edited."""

from __future__ import annotations

from kwire.protocol.structs import UNSET, Message, Request, Struct, Tagged, Tags


class ApiVersionsRequest(Request["ApiVersionsResponse"]):
    """ApiVersionsRequest, versions 0-5: a request."""

    __slots__ = ("client_software_name", "client_software_version", "cluster_id", "node_id")
    FIELDS = ("client_software_name", "client_software_version", "cluster_id", "node_id")
    API_KEY = 18
    KIND = "request"
    MIN_VERSION, MAX_VERSION = 0, 5

    def __init__(
        self,
        *,
        client_software_name: str = "",
        client_software_version: str = "",
        cluster_id: str | None = None,
        node_id: int = -1,
        unknown_tags: Tags = (),
    ) -> None:
        self.client_software_name = client_software_name
        self.client_software_version = client_software_version
        self.cluster_id = cluster_id
        self.node_id = node_id
        self._tagged = None
        if unknown_tags:
            self.unknown_tags = unknown_tags


class ApiVersionsResponse(Message):
    """ApiVersionsResponse, versions 0-5: a response."""

    __slots__ = ("api_keys", "error_code", "throttle_time_ms")
    FIELDS = (
        "error_code",
        "api_keys",
        "throttle_time_ms",
        "supported_features",
        "finalized_features_epoch",
        "finalized_features",
        "zk_migration_ready",
    )
    API_KEY = 18
    KIND = "response"
    MIN_VERSION, MAX_VERSION = 0, 5

    class ApiVersion(Struct):
        __slots__ = ("api_key", "max_version", "min_version")
        FIELDS = ("api_key", "min_version", "max_version")

        def __init__(
            self,
            *,
            api_key: int = 0,
            min_version: int = 0,
            max_version: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.api_key = api_key
            self.min_version = min_version
            self.max_version = max_version
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class SupportedFeatureKey(Struct):
        __slots__ = ("max_version", "min_version", "name")
        FIELDS = ("name", "min_version", "max_version")

        def __init__(
            self,
            *,
            name: str = "",
            min_version: int = 0,
            max_version: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.min_version = min_version
            self.max_version = max_version
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    class FinalizedFeatureKey(Struct):
        __slots__ = ("max_version_level", "min_version_level", "name")
        FIELDS = ("name", "max_version_level", "min_version_level")

        def __init__(
            self,
            *,
            name: str = "",
            max_version_level: int = 0,
            min_version_level: int = 0,
            unknown_tags: Tags = (),
        ) -> None:
            self.name = name
            self.max_version_level = max_version_level
            self.min_version_level = min_version_level
            self._tagged = None
            if unknown_tags:
                self.unknown_tags = unknown_tags

    supported_features = Tagged["list[ApiVersionsResponse.SupportedFeatureKey]"](maker=list)
    finalized_features_epoch = Tagged["int"](-1)
    finalized_features = Tagged["list[ApiVersionsResponse.FinalizedFeatureKey]"](maker=list)
    zk_migration_ready = Tagged["bool"](False)

    def __init__(
        self,
        *,
        error_code: int = 0,
        api_keys: list[ApiVersionsResponse.ApiVersion] = UNSET,
        throttle_time_ms: int = 0,
        supported_features: list[ApiVersionsResponse.SupportedFeatureKey] = UNSET,
        finalized_features_epoch: int = UNSET,
        finalized_features: list[ApiVersionsResponse.FinalizedFeatureKey] = UNSET,
        zk_migration_ready: bool = UNSET,
        unknown_tags: Tags = (),
    ) -> None:
        self.error_code = error_code
        self.api_keys = [] if api_keys is UNSET else api_keys
        self.throttle_time_ms = throttle_time_ms
        self._tagged = None
        if supported_features is not UNSET:
            self.supported_features = supported_features
        if finalized_features_epoch is not UNSET:
            self.finalized_features_epoch = finalized_features_epoch
        if finalized_features is not UNSET:
            self.finalized_features = finalized_features
        if zk_migration_ready is not UNSET:
            self.zk_migration_ready = zk_migration_ready
        if unknown_tags:
            self.unknown_tags = unknown_tags
