"""The APIs that a broker hands to the active controller as they are, at every version.

CreateTopics, DeleteTopics, CreatePartitions, AlterConfigs, IncrementalAlterConfigs and the other
APIs marked `forwardable` in `protocol/api_keys.py`: the controller checks, authorises in the
client's name, and answers once the change is committed. Source: KIP-590.
"""

from __future__ import annotations

from typing import Any

from kwire.broker.context import RequestContext


def handle(context: RequestContext, request: Any) -> Any:
    """Let the controller execute it."""
    return context.node.forward(request, context, version=context.api_version)
