"""How a client connects, out of Kafka's properties: `security.protocol`, `ssl.*`, `sasl.*`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kwire.client.errors import ClientError
from kwire.client.settings import CLIENT_ID, ConnectionSettings
from kwire.clock import Random
from kwire.config.errors import ConfigError
from kwire.security.client_settings import client_security

BOOTSTRAP = "bootstrap.servers"
IDENTIFICATION = "ssl.endpoint.identification.algorithm"


def settings_of(
    properties: Mapping[str, str],
    random: Random,
    wall_ms: Callable[[], int],
    bootstrap: str | None = None,
) -> ConnectionSettings:
    """The settings of these properties; ClientError, one line, where they do not make any.

    `bootstrap` goes before `bootstrap.servers`. Files of keys are read now.
    """
    servers = bootstrap or properties.get(BOOTSTRAP, "")
    settings = ConnectionSettings(servers, client_id=properties.get("client.id") or CLIENT_ID)
    try:
        security = client_security(properties, random, wall_ms)
    except ConfigError as error:
        raise ClientError(str(error)) from None
    if security.tls is not None:
        context = security.tls
        settings = settings._replace(
            tls=lambda: context, check_host_name=bool(properties.get(IDENTIFICATION, "https"))
        )
    return settings._replace(login=security.login, tokens=security.tokens)
