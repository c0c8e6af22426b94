"""ApiVersions, versions 0-5: which APIs, versions and features this listener has.

The behaviour is in `kwire.protocol.api_versions`, one for brokers and controllers; here it meets
the node: its ids, its features, and the connection, which remembers the client's software.
Source: KIP-35, KIP-511, KIP-584, KIP-1242.
"""

from __future__ import annotations

from kwire.kraft.features import SUPPORTED_FEATURES
from kwire.pending import Answer
from kwire.protocol import api_versions
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.security.requirements import Authorization
from kwire.server.context import RequestContext

VERSIONS = (0, 5)
WAITS_FOR_WRITES = False
AUTHORIZATION: Authorization = ()


def handle(context: RequestContext, request: m.ApiVersionsRequest) -> Answer[m.ApiVersionsResponse]:
    """See the module."""
    version, parts = context.api_version, context.parts
    metadata = parts.metadata
    listener = metadata.listener_type(context.listener_name)
    code = api_versions.fault(request, version, listener, metadata.cluster_id, parts.broker_id)
    if code != ErrorCode.NONE:
        return api_versions.refusal(code)
    if version >= api_versions.SOFTWARE_FROM and context.connection is not None:
        context.connection.client_software_name = request.client_software_name
        context.connection.client_software_version = request.client_software_version
    return api_versions.answer(
        version,
        metadata.advertised_apis(context.listener_name),
        SUPPORTED_FEATURES,
        metadata.finalized_features(),
        metadata.image.offset,
    )
