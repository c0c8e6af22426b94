"""What ApiVersions answers, on a broker's and on a controller's listener.

Measured on Apache Kafka 4.4:

- Keys come in ascending order, with the stable versions. Produce is listed from version 0 although
  3 is the lowest that works (old librdkafka decides by it whether it may compress). Telemetry is
  listed only while somebody takes it.
- A version that is too high is answered in version 0 with UNSUPPORTED_VERSION and one entry, the
  range of ApiVersions itself.
- A software name or version that is not well formed (3 and later), or only one of cluster id and
  node id (5): INVALID_REQUEST and no entries. Both given and one of them wrong:
  REBOOTSTRAP_REQUIRED and no entries, by a broker; a controller does not compare them.
- Versions 0-3 leave out the supported features whose lowest level is 0. A feature at level 0 is
  never among the finalized ones.

Source: KIP-35, KIP-511, KIP-584, KIP-1242.
"""

from __future__ import annotations

from collections.abc import Mapping

from kwire.protocol import messages as m
from kwire.protocol.api_keys import API_KEYS, UNBUILT, ApiKey, Listener
from kwire.protocol.errors import ErrorCode

__all__ = ["advertised", "answer", "fault", "is_well_formed", "refusal", "unsupported_version"]

SOFTWARE_FROM = 3
FEATURES_FROM = 3
ALL_FEATURES_FROM = 4
CLUSTER_FROM = 5
PRODUCE_MIN_ADVERTISED = 0
TELEMETRY = frozenset({ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY})
_EDGES = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_INNER = _EDGES | frozenset("-.")


def advertised(
    listener: Listener, *, telemetry: bool = False, unbuilt: frozenset[int] = UNBUILT
) -> list[tuple[int, int, int]]:
    """(API key, lowest, highest version) of what a listener lists, ascending."""
    return [
        (int(key), PRODUCE_MIN_ADVERTISED if key == ApiKey.PRODUCE else info.min, info.max)
        for key, info in API_KEYS.items()
        if listener in info.listeners and key not in unbuilt and (telemetry or key not in TELEMETRY)
    ]


def is_well_formed(text: str) -> bool:
    """Kafka's rule for software names and versions: letters and digits, inside also . and -."""
    return bool(text) and text[0] in _EDGES and text[-1] in _EDGES and _INNER.issuperset(text)


def refusal(code: int) -> m.ApiVersionsResponse:
    """An answer with nothing but an error."""
    return m.ApiVersionsResponse(error_code=int(code))


def unsupported_version() -> m.ApiVersionsResponse:
    """The answer, to be encoded in version 0, to a version that is too high."""
    info = API_KEYS[ApiKey.API_VERSIONS]
    own = m.ApiVersionsResponse.ApiVersion(
        api_key=int(info.key), min_version=info.min, max_version=info.max
    )
    return m.ApiVersionsResponse(error_code=int(ErrorCode.UNSUPPORTED_VERSION), api_keys=[own])


def fault(
    request: m.ApiVersionsRequest, version: int, listener: Listener, cluster_id: str, node_id: int
) -> ErrorCode:
    """The error that a request earns, NONE for a good one; the ids are those of this node."""
    if version >= SOFTWARE_FROM and not (
        is_well_formed(request.client_software_name)
        and is_well_formed(request.client_software_version)
    ):
        return ErrorCode.INVALID_REQUEST
    if version < CLUSTER_FROM:
        return ErrorCode.NONE
    given = (request.cluster_id is not None, request.node_id != -1)
    if given[0] != given[1]:
        return ErrorCode.INVALID_REQUEST
    mine = (request.cluster_id, request.node_id) == (cluster_id, node_id)
    if all(given) and not mine and listener == "broker":
        return ErrorCode.REBOOTSTRAP_REQUIRED
    return ErrorCode.NONE


def answer(
    version: int,
    apis: list[tuple[int, int, int]],
    supported: Mapping[str, tuple[int, int]],
    finalized: Mapping[str, int],
    finalized_epoch: int,
) -> m.ApiVersionsResponse:
    """The answer to a good request.

    `apis` as `advertised` gives them, `supported` the levels (lowest, highest) by feature,
    `finalized` the level by feature, `finalized_epoch` the metadata offset that they are of.
    """
    cls = m.ApiVersionsResponse
    response = cls(
        api_keys=[
            cls.ApiVersion(api_key=key, min_version=low, max_version=high)
            for key, low, high in apis
        ]
    )
    if version < FEATURES_FROM:
        return response
    response.supported_features = [
        cls.SupportedFeatureKey(name=name, min_version=low, max_version=high)
        for name, (low, high) in supported.items()
        if low > 0 or version >= ALL_FEATURES_FROM
    ]
    response.finalized_features = [
        cls.FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
        for name, level in finalized.items()
        if level > 0
    ]
    response.finalized_features_epoch = finalized_epoch
    return response
