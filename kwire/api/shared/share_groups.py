"""Whether the cluster has share groups: its feature `share.version` (KIP-932)."""

from __future__ import annotations

from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.server.context import RequestContext

FEATURE = "share.version"


def check_share_groups(context: RequestContext) -> None:
    """Raise UNSUPPORTED_VERSION where the feature is at level 0."""
    if context.parts.metadata.finalized_features().get(FEATURE, 0) < 1:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
