"""How a client of these properties (`--command-config`) connects: TLS, a login, both or neither."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kwire.clock import Random
from kwire.config.errors import ConfigError
from kwire.config.listeners import PROTOCOLS

if TYPE_CHECKING:
    import ssl

    from kwire.security.sasl.client_settings import MakeLogin

PROTOCOL = "security.protocol"


class ClientSecurity(NamedTuple):
    """`login()` gives one connection's login, `tls` is the context of all; None where there is
    none."""

    login: MakeLogin | None = None
    tls: ssl.SSLContext | None = None


def client_security(
    properties: Mapping[str, str], random: Random, wall_ms: Callable[[], int]
) -> ClientSecurity:
    """See the module; ConfigError, one line, for what cannot be used."""
    protocol = properties.get(PROTOCOL, "PLAINTEXT").strip().upper()
    if protocol not in PROTOCOLS:
        raise ConfigError(f"{PROTOCOL}={protocol} is refused; accepted: {', '.join(PROTOCOLS)}")
    if protocol == "PLAINTEXT":
        return ClientSecurity()
    from kwire.security.sasl.client_settings import client_login
    from kwire.security.tls.client import client_tls

    return ClientSecurity(client_login(properties, random, wall_ms), client_tls(properties))
