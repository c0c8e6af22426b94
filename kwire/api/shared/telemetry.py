"""Who sends a request of client telemetry."""

from __future__ import annotations

from kwire.server.context import RequestContext
from kwire.telemetry.instances import Sender


def sender_of(context: RequestContext) -> Sender:
    """The client that a request came from."""
    connection = context.connection
    if connection is None:
        return Sender(None, context.client_id, "unknown", "unknown", "127.0.0.1", 0)
    return Sender(
        connection,
        context.client_id,
        connection.client_software_name,
        connection.client_software_version,
        connection.client_host.removeprefix("/"),
        connection.client_port,
    )
