"""What the settings of a client say about SASL: Kafka's `security.protocol`, `sasl.mechanism` and
`sasl.jaas.config`, of a client's properties or of a broker that is a client of others.

    PLAIN         username, password
    SCRAM-...     username, password; tokenauth=true: the id and the HMAC of a delegation token
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kwire.clock import Random
from kwire.config.errors import ConfigError
from kwire.security.sasl.client import PlainClient, SaslClient, ScramClient
from kwire.security.sasl.jaas import LoginModule
from kwire.security.sasl.mechanisms import BUILT, PLAIN
from kwire.security.sasl.settings import JAAS, one_module

PROTOCOL = "security.protocol"
MECHANISM = "sasl.mechanism"
GSSAPI = "GSSAPI"

MakeLogin = Callable[[], SaslClient]
"""One login for every connection."""


def client_login(properties: Mapping[str, str], random: Random) -> MakeLogin | None:
    """How the client of these properties logs in; None where its protocol has no SASL.

    ConfigError, one line, for what cannot be used.
    """
    protocol = properties.get(PROTOCOL, "PLAINTEXT").strip().upper()
    if not protocol.startswith("SASL_"):
        return None
    mechanism = properties.get(MECHANISM, GSSAPI).strip()
    check_mechanism(MECHANISM, mechanism)
    text = properties.get(JAAS)
    if text is None:
        raise ConfigError(f"{JAAS} is not set; {PROTOCOL}={protocol} needs it")
    return login(JAAS, mechanism, one_module(JAAS, text, mechanism), random)


def check_mechanism(setting: str, mechanism: str) -> None:
    """ConfigError for a mechanism that is not built."""
    if mechanism not in BUILT:
        raise ConfigError(
            f"{setting}={mechanism} is refused: {mechanism} is not built; accepted: one of "
            + ", ".join(BUILT)
        )


def login(setting: str, mechanism: str, module: LoginModule, random: Random) -> MakeLogin:
    """What a login module's options log in with; ConfigError where something is missing."""
    options = module.options
    missing = [name for name in ("username", "password") if not options.get(name)]
    if missing:
        raise ConfigError(f"{setting}: {module.name} has no {' and no '.join(missing)}")
    user, password = options["username"], options["password"]
    by_token = options.get("tokenauth", "").lower() == "true"

    def make() -> SaslClient:
        if mechanism == PLAIN:
            return SaslClient(PlainClient(user, password))
        return SaslClient(ScramClient(mechanism, user, password, random, by_token))

    return make
