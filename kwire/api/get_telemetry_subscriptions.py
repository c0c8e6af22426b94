"""GetTelemetrySubscriptions, version 0: which metrics a client is to send, and how often.

Which metrics is a matter of the subscriptions that match the client (`telemetry/subscriptions.py`),
whether it asks too early one of its instance (`telemetry/instances.py`). Where nobody reads what is
sent ApiVersions leaves the API out; who asks nevertheless is answered, as in Kafka.
Source: KIP-714; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from kwire.api.shared.telemetry import sender_of
from kwire.pending import Answer
from kwire.protocol import messages as m
from kwire.security.requirements import Authorization
from kwire.server.context import RequestContext

VERSIONS = (0, 0)
AUTHORIZATION: Authorization = ()


def handle(
    context: RequestContext, request: m.GetTelemetrySubscriptionsRequest
) -> Answer[m.GetTelemetrySubscriptionsResponse]:
    """See the module."""
    return context.parts.telemetry.instances.get(request, sender_of(context), context.now_ms)
