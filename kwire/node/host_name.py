"""The name under which others reach this host."""

from __future__ import annotations

import socket


def reachable_name() -> str:
    """What clients are told for a listener on every interface: this host's name where it resolves
    (in a container, on a server), else localhost (a laptop without a name in any DNS)."""
    name = socket.gethostname()
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return "localhost"
    return name
