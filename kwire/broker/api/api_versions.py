"""ApiVersions, versions 0-5: which APIs, versions and features this listener has.

Measured on Apache Kafka 4.4: Produce is listed from version 0 although 3 is the lowest that works;
versions 0-3 leave out supported features whose lowest level is 0; features at level 0 are not
among the finalized ones. A version that is too high is answered in version 0 with
UNSUPPORTED_VERSION and one entry, ApiVersions' own range. A client software name or version that
is not well formed, or in version 5 only one of cluster id and node id, is INVALID_REQUEST; both
given and one of them wrong is REBOOTSTRAP_REQUIRED (KIP-1242). Source: KIP-35, KIP-511, KIP-584.
"""

from __future__ import annotations

from typing import Any

from kwire.broker.context import RequestContext
from kwire.kraft.features import SUPPORTED_FEATURES
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode

VERSIONS = (0, 5)
SOFTWARE_FROM = 3
ALL_FEATURES_FROM = 4
CLUSTER_FROM = 5
_EDGES = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_INNER = _EDGES | frozenset("-.")


def handle(context: RequestContext, request: Any) -> Any:
    """See the module."""
    version = context.api_version
    if version >= SOFTWARE_FROM:
        name, software_version = request.client_software_name, request.client_software_version
        if not (is_well_formed(name) and is_well_formed(software_version)):
            return _error(ErrorCode.INVALID_REQUEST)
        if context.connection is not None:
            context.connection.client_software_name = name
            context.connection.client_software_version = software_version
    if version >= CLUSTER_FROM:
        given = (request.cluster_id is not None, request.node_id != -1)
        if given[0] != given[1]:
            return _error(ErrorCode.INVALID_REQUEST)
        if all(given) and (request.cluster_id, request.node_id) != (
            context.node.cluster_id,
            context.node.broker_id,
        ):
            return _error(ErrorCode.REBOOTSTRAP_REQUIRED)
    return _answer(context)


def is_well_formed(text: str) -> bool:
    """Kafka's rule for software names and versions: letters and digits, inside also . and -."""
    return bool(text) and text[0] in _EDGES and text[-1] in _EDGES and _INNER.issuperset(text)


def unsupported_version() -> Any:
    """The answer, in version 0, to a version that is too high."""
    response = m.ApiVersionsResponse()
    response.error_code = int(ErrorCode.UNSUPPORTED_VERSION)
    response.api_keys = [
        m.ApiVersionsResponse.ApiVersion(
            api_key=18, min_version=VERSIONS[0], max_version=VERSIONS[1]
        )
    ]
    return response


def _error(code: ErrorCode) -> Any:
    response = m.ApiVersionsResponse()
    response.error_code = int(code)
    return response


def _answer(context: RequestContext) -> Any:
    response = m.ApiVersionsResponse()
    entry = m.ApiVersionsResponse.ApiVersion
    response.api_keys = [
        entry(api_key=key, min_version=low, max_version=high)
        for key, low, high in context.node.advertised_apis(context.listener_name)
    ]
    if context.api_version < SOFTWARE_FROM:
        return response
    supported = m.ApiVersionsResponse.SupportedFeatureKey
    response.supported_features = [
        supported(name=name, min_version=low, max_version=high)
        for name, (low, high) in SUPPORTED_FEATURES.items()
        if low > 0 or context.api_version >= ALL_FEATURES_FROM
    ]
    image = context.node.image
    finalized = m.ApiVersionsResponse.FinalizedFeatureKey
    response.finalized_features = [
        finalized(name=name, max_version_level=level, min_version_level=level)
        for name, level in context.node.finalized_features().items()
        if level > 0
    ]
    response.finalized_features_epoch = image.offset
    return response
