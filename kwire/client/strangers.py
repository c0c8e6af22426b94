"""Who is at an address that is no Kafka broker's, by how they answer."""

from __future__ import annotations

IS_HTTP = "is an HTTP server, no Kafka broker; which port is the broker's?"


def other_protocol(head: bytes) -> str:
    """What answers with these four bytes, in the place of a response's size."""
    if head.upper() in (b"HTTP", b"<!DO", b"<HTM"):
        return IS_HTTP
    if head[0] in (0x14, 0x15, 0x16) and head[1] == 3:
        return "speaks TLS: say how in a file of client properties (--command-config)"
    return f"is no Kafka broker: it answers with {head!r}"
