"""How a client connects, out of Kafka's properties: `security.protocol`, `ssl.*`, `sasl.*`."""

from __future__ import annotations

from collections.abc import Mapping

from kwire.client.errors import ClientError
from kwire.client.settings import CLIENT_ID, ConnectionSettings
from kwire.clock import Random
from kwire.config.errors import ConfigError

BOOTSTRAP = "bootstrap.servers"
PROTOCOL = "security.protocol"
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
IDENTIFICATION = "ssl.endpoint.identification.algorithm"


def settings_of(
    properties: Mapping[str, str], random: Random, bootstrap: str | None = None
) -> ConnectionSettings:
    """The settings of these properties; ClientError, one line, where they do not make any.

    `bootstrap` goes before `bootstrap.servers`. Files of keys are read now.
    """
    servers = bootstrap or properties.get(BOOTSTRAP, "")
    settings = ConnectionSettings(servers, client_id=properties.get("client.id") or CLIENT_ID)
    protocol = properties.get(PROTOCOL, "PLAINTEXT").strip().upper()
    if protocol not in PROTOCOLS:
        raise ClientError(f"{PROTOCOL}={protocol}: expected one of {', '.join(PROTOCOLS)}")
    try:
        if protocol.endswith("SSL"):
            from kwire.security.tls.client import client_tls

            context = client_tls(properties)
            assert context is not None
            settings = settings._replace(
                tls=lambda: context, check_host_name=bool(properties.get(IDENTIFICATION, "https"))
            )
        if protocol.startswith("SASL_"):
            from kwire.security.sasl.client_settings import client_login

            settings = settings._replace(login=client_login(properties, random))
    except ConfigError as error:
        raise ClientError(str(error)) from None
    return settings
