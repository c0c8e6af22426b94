"""Who is who: what the listeners of a node authenticate clients with (their settings, and the
credentials in the published metadata), and what the node logs in with at others."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kwire.clock import Random
from kwire.config.broker_config import BrokerConfig
from kwire.config.errors import ConfigError
from kwire.kraft.images.metadata_image import MetadataImage
from kwire.security.sasl.client import SaslClient, failed
from kwire.security.sasl.client_settings import MakeLogin, check_mechanism, login
from kwire.security.sasl.mechanisms import PLAIN, MakeMechanism
from kwire.security.sasl.plain import Passwords, PlainServer
from kwire.security.sasl.scram import TYPES, Known, ScramParts, ScramServer
from kwire.security.sasl.server import SaslSettings
from kwire.security.sasl.settings import jaas_name, listener_sasl, server_module

INTER_BROKER_MECHANISM = "sasl.mechanism.inter.broker.protocol"
CONTROLLER_MECHANISM = "sasl.mechanism.controller.protocol"
SECRET_BYTES = 32


def sasl_settings(
    config: BrokerConfig, listener: str, random: Random, image: Callable[[], MetadataImage]
) -> SaslSettings:
    """The mechanisms of a listener; ConfigError, one line, for settings that cannot be used."""
    found = listener_sasl(config, listener)
    passwords = Passwords(found.passwords)
    secret = random.random_bytes(SECRET_BYTES)
    mechanisms: dict[str, MakeMechanism] = {}
    for name in found.mechanisms:
        if name == PLAIN:
            mechanisms[name] = partial(PlainServer, passwords)
        else:
            parts = ScramParts(name, partial(_scram_user, image, name), _no_token, random, secret)
            mechanisms[name] = partial(ScramServer, parts)
    return SaslSettings(
        mechanisms, found.session_ms, found.receive_bytes_max, found.failure_delay_ms
    )


def _scram_user(
    image: Callable[[], MetadataImage], mechanism: str, name: str, wall_ms: int
) -> Known | None:
    credential = image().security.scram.get((TYPES[mechanism], name))
    return None if credential is None else Known(name, credential)


def _no_token(token_id: str, wall_ms: int) -> Known | None:
    return None


def login_at(config: BrokerConfig, listener: str, random: Random) -> MakeLogin | None:
    """How this node logs in at other nodes' listeners of that name; None where there is no SASL.

    As Kafka has it, the login module is the one that the listener has for the mechanism.
    ConfigError for a mechanism that cannot be used.
    """
    if not config.protocol_map().get(listener, "").startswith("SASL_"):
        return None
    is_controller = listener in config.controller_listener_names()
    setting = CONTROLLER_MECHANISM if is_controller else INTER_BROKER_MECHANISM
    mechanism = str(config[setting])
    check_mechanism(setting, mechanism)
    name = jaas_name(listener, mechanism)
    module = server_module(config, listener, mechanism)

    def make() -> SaslClient:
        if module is None:
            raise failed(f"{name} is not set: there is nothing to log in with")
        try:
            return login(name, mechanism, module, random)()
        except ConfigError as error:
            raise failed(str(error)) from None

    return make
