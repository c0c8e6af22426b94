"""PushTelemetry, version 0: the metrics of a client, in OpenTelemetry's form.

They are unpacked to see whether they can be, within telemetry.max.bytes (else INVALID_RECORD), and
kept for the HTTP process; what is in them only that one reads. Source: KIP-714; measured on Apache
Kafka 4.4.
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
    context: RequestContext, request: m.PushTelemetryRequest
) -> Answer[m.PushTelemetryResponse]:
    """See the module."""
    context.parts.telemetry.instances.push(request, sender_of(context), context.now_ms)
    return m.PushTelemetryResponse()
