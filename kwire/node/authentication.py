"""Who is who: what the listeners of a node authenticate clients with (their settings, and the
credentials in the published metadata), and what the node logs in with at others."""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import partial

from kwire.clock import Random
from kwire.config.broker_config import BrokerConfig
from kwire.config.errors import ConfigError
from kwire.kraft.controller.requests.tokens import token_hmac
from kwire.kraft.images.metadata_image import MetadataImage
from kwire.security.sasl.client import SaslClient, failed
from kwire.security.sasl.client_settings import MakeLogin, check_mechanism, login
from kwire.security.sasl.mechanisms import PLAIN, MakeMechanism, user
from kwire.security.sasl.plain import Passwords, PlainServer
from kwire.security.sasl.scram import (
    ITERATIONS_MIN,
    TYPES,
    Derived,
    Known,
    ScramParts,
    ScramServer,
    derived,
)
from kwire.security.sasl.server import SaslSettings
from kwire.security.sasl.settings import jaas_name, listener_sasl, server_module

INTER_BROKER_MECHANISM = "sasl.mechanism.inter.broker.protocol"
CONTROLLER_MECHANISM = "sasl.mechanism.controller.protocol"
SECRET_BYTES = 32
KEYS_KEPT = 1000


def sasl_settings(
    config: BrokerConfig, listener: str, random: Random, image: Callable[[], MetadataImage]
) -> SaslSettings:
    """The mechanisms of a listener; ConfigError, one line, for settings that cannot be used."""
    found = listener_sasl(config, listener)
    passwords = Passwords(found.passwords)
    secret = random.random_bytes(SECRET_BYTES)
    token_secret = config["delegation.token.secret.key"]
    mechanisms: dict[str, MakeMechanism] = {}
    for name in found.mechanisms:
        if name == PLAIN:
            mechanisms[name] = partial(PlainServer, passwords)
        else:
            users = partial(_scram_user, image, name)
            tokens = DelegationTokens(name, token_secret, image, secret)
            parts = ScramParts(name, users, tokens, random, secret)
            mechanisms[name] = partial(ScramServer, parts)
    return SaslSettings(
        mechanisms, found.session_ms, found.receive_bytes_max, found.failure_delay_ms
    )


def _scram_user(
    image: Callable[[], MetadataImage], mechanism: str, name: str, wall_ms: int
) -> Known | None:
    credential = image().security.scram.get((TYPES[mechanism], name))
    return None if credential is None else Known(user(name), credential)


class DelegationTokens:
    """Finds delegation tokens for SCRAM: the id is the user, the HMAC in base64 is the password
    (KIP-48).

    The keys of a token cost as much work as a login; those of the last `KEYS_KEPT` are kept.
    """

    def __init__(
        self, mechanism: str, secret: str | None, image: Callable[[], MetadataImage], salt: bytes
    ) -> None:
        self._mechanism = mechanism
        self._secret = secret
        self._image = image
        self._salt = salt
        self._keys: dict[str, Derived] = {}

    def __call__(self, token_id: str, wall_ms: int) -> Known | None:
        """What is known of a token; None where there is none, or it has expired."""
        token = self._image().security.delegation_tokens.get(token_id)
        if token is None or self._secret is None:
            self._keys.pop(token_id, None)
            return None
        ends_ms = min(token.max_ms, token.expiration_ms)
        if ends_ms <= wall_ms:
            return None
        return Known(token.owner, self._derived(token_id, self._secret), ends_ms)

    def _derived(self, token_id: str, secret: str) -> Derived:
        keys = self._keys.pop(token_id, None)
        if keys is None:
            password = base64.b64encode(token_hmac(secret, token_id))
            keys = derived(self._mechanism, password, self._salt, ITERATIONS_MIN)
            if len(self._keys) >= KEYS_KEPT:
                del self._keys[next(iter(self._keys))]
        self._keys[token_id] = keys
        return keys


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
