"""Who is who: what the listeners of a node authenticate clients with (their settings, and the
credentials in the published metadata), and what the node logs in with at others."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Callable, Mapping
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from kwire.clock import Clock, Random
from kwire.config.broker_config import BrokerConfig
from kwire.config.definitions import BROKER
from kwire.config.dynamic import DynamicConfig
from kwire.config.errors import ConfigError
from kwire.config.listeners import WITH_SASL
from kwire.config.values import Value
from kwire.kraft.controller.requests.tokens import token_hmac
from kwire.kraft.images.metadata_image import MetadataImage
from kwire.security.sasl.client import SaslClient, failed
from kwire.security.sasl.client_settings import MakeLogin, check_mechanism, login
from kwire.security.sasl.jaas import LoginModule
from kwire.security.sasl.jwt import validate_signed, validate_unsecured
from kwire.security.sasl.mechanisms import OAUTHBEARER, PLAIN, MakeMechanism, user
from kwire.security.sasl.oauth_settings import OAuthSettings, oauth_settings
from kwire.security.sasl.oauthbearer import (
    Accepted,
    InvalidTokenError,
    OAuthBearerServer,
    Validate,
)
from kwire.security.sasl.plain import Passwords, PlainServer
from kwire.security.sasl.scram import (
    ITERATIONS_MIN,
    TYPES,
    Cost,
    Derived,
    Known,
    ScramParts,
    ScramServer,
    derived,
    made_up,
    salt_of,
)
from kwire.security.sasl.server import AuthenticationCounts, MakeSasl, SaslSettings
from kwire.security.sasl.settings import jaas_name, listener_sasl, server_module
from kwire.security.sasl.token_settings import (
    RefreshSettings,
    SettingOf,
    gets_tokens,
    token_settings,
)
from kwire.security.token_login import TokenLogin

if TYPE_CHECKING:
    from kwire.node.jwks import JwksSource

logger = logging.getLogger(__name__)

INTER_BROKER_MECHANISM = "sasl.mechanism.inter.broker.protocol"
CONTROLLER_MECHANISM = "sasl.mechanism.controller.protocol"
SECRET_BYTES = 32
KEYS_KEPT = 1000
SASL = "sasl."


class Authentication:
    """How clients authenticate at the listeners of a node that have SASL.

    Made before anything else of a start: ConfigError, one line, for settings that cannot be used.
    Settings that change count for who authenticates afterwards, also anew (KIP-226). `open` reads
    the keys of tokens, `close` ends that.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        dynamic_config: DynamicConfig,
        random: Random,
        image: Callable[[], MetadataImage],
    ) -> None:
        self._loop = loop
        self._config = dynamic_config.static
        self._dynamic_config = dynamic_config
        self._random = random
        self._image = image
        self.counts = AuthenticationCounts()
        self._secret = random.random_bytes(SECRET_BYTES)
        self._sources: dict[OAuthSettings, JwksSource] = {}
        self._names = [each.name for each in self._config.listeners() if each.has_sasl]
        self._settings = {name: self._made(self._config, name) for name in self._names}
        dynamic_config.checks.append(self._check)
        dynamic_config.add_listener(self._changed)

    async def open(self) -> None:
        """Read the keys of tokens, where they are signed."""
        for source in list(self._sources.values()):
            await source.open()

    def close(self) -> None:
        """Nothing is read any more."""
        for source in self._sources.values():
            source.close()

    def at(self, listener: str) -> MakeSasl | None:
        """How clients authenticate at a listener; None where they need not."""
        return (lambda: self._settings[listener]) if listener in self._names else None

    def _check(self, candidate: BrokerConfig) -> None:
        for name in self._names:
            if OAUTHBEARER in listener_sasl(candidate, name).mechanisms:
                oauth_settings(candidate, name)

    def _changed(self, changed: Mapping[str, Value]) -> None:
        if any(SASL in name for name in changed):
            config = self._dynamic_config.current()
            try:
                self._settings = {name: self._made(config, name) for name in self._names}
            except ConfigError as error:
                logger.error("changed settings of SASL are not taken over: %s", error)

    def _made(self, config: BrokerConfig, listener: str) -> SaslSettings:
        found = listener_sasl(config, listener)
        passwords = Passwords(found.passwords)
        mechanisms: dict[str, MakeMechanism] = {}
        for name in found.mechanisms:
            if name == PLAIN:
                mechanisms[name] = partial(PlainServer, passwords)
            elif name == OAUTHBEARER:
                mechanisms[name] = partial(OAuthBearerServer, self._validator(config, listener))
            else:
                mechanisms[name] = partial(ScramServer, self._scram(name, self._secret))
        return SaslSettings(
            mechanisms,
            found.session_ms,
            found.receive_bytes_max,
            found.failure_delay_ms,
            self.counts,
        )

    def _scram(self, name: str, secret: bytes) -> ScramParts:
        users = partial(_scram_user, self._image, name)
        token_secret = self._config["delegation.token.secret.key"]
        tokens = DelegationTokens(name, token_secret, self._image, secret)
        unknown = partial(_like_users, self._image, name, secret)
        return ScramParts(name, users, tokens, self._random, secret, unknown)

    def _validator(self, config: BrokerConfig, listener: str) -> Validate:
        """What decides about the tokens of a listener."""
        found = oauth_settings(config, listener)
        if found.jwks_url is None:
            logger.warning(
                "listener %s takes unsecured tokens: anybody can be anybody there", listener
            )
            return _logged(partial(validate_unsecured, rules=found.rules), listener)
        verify = self._source(found, listener).verify
        return _logged(partial(validate_signed, rules=found.rules, verify=verify), listener)

    def _source(self, found: OAuthSettings, listener: str) -> JwksSource:
        source = self._sources.get(found)
        if source is not None:
            return source
        try:
            from kwire.node.jwks import JwksSource
        except ImportError:
            raise ConfigError(
                f"listener {listener}: OAUTHBEARER needs the library cryptography: "
                "pip install 'kwire[oauth]'"
            ) from None
        source = self._sources[found] = JwksSource(self._loop, found)
        return source


def _logged(validate: Validate, listener: str) -> Validate:
    """Says in the log why a token is not accepted; the client is not told."""

    def logged(token: str, wall_ms: int) -> Accepted:
        try:
            return validate(token, wall_ms)
        except InvalidTokenError as error:
            logger.info("a token on listener %s is not accepted: %s", listener, error)
            raise

    return logged


def _like_users(
    image: Callable[[], MetadataImage], mechanism: str, secret: bytes, name: str
) -> Cost:
    """What is told of an unknown user: as of one of the users there are, always the same one for a
    name. Else the number of iterations would tell who is a user."""
    users = image().security.scram
    if not users:
        return Cost()
    number = int.from_bytes(made_up(mechanism, secret, b"like", name), "big") % len(users)
    credential = next(islice(users.values(), number, None))
    return Cost(max(ITERATIONS_MIN, credential.iterations), len(credential.salt))


def _scram_user(
    image: Callable[[], MetadataImage], mechanism: str, name: str, wall_ms: int
) -> Known | None:
    credential = image().security.scram.get((TYPES[mechanism], name))
    return None if credential is None else Known(user(name), credential)


class DelegationTokens:
    """Finds delegation tokens for SCRAM: the id is the user, the HMAC in base64 is the password
    (KIP-48).

    The keys of a token cost as much work as a login; those of the last `KEYS_KEPT` are kept. Salts
    are told to anybody: `salt_secret`, of which they are made, is in none.
    """

    def __init__(
        self,
        mechanism: str,
        secret: str | None,
        image: Callable[[], MetadataImage],
        salt_secret: bytes,
    ) -> None:
        self._mechanism = mechanism
        self._secret = secret
        self._image = image
        self._salt_secret = salt_secret
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
            salt = salt_of(self._mechanism, self._salt_secret, token_id)
            keys = derived(self._mechanism, password, salt, ITERATIONS_MIN)
            if len(self._keys) >= KEYS_KEPT:
                del self._keys[next(iter(self._keys))]
        self._keys[token_id] = keys
        return keys


def login_at(
    dynamic_config: DynamicConfig, listener: str, random: Random, clock: Clock
) -> MakeLogin | None:
    """How this node logs in at other nodes' listeners of that name; None where there is no SASL.

    As Kafka has it, the login module is the one that the listener has for the mechanism. A
    `TokenLogin` has to be kept in tokens. ConfigError for what cannot be used.
    """
    config = dynamic_config.static
    if config.protocol_map().get(listener) not in WITH_SASL:
        return None
    is_controller = listener in config.controller_listener_names()
    setting = CONTROLLER_MECHANISM if is_controller else INTER_BROKER_MECHANISM
    mechanism = str(config[setting])
    check_mechanism(setting, mechanism)
    name = jaas_name(listener, mechanism)
    module = server_module(config, listener, mechanism)
    if module is None:
        raise ConfigError(f"{name} is not set: there is nothing to log in with")
    if mechanism == OAUTHBEARER:
        tokens = _token_login(dynamic_config, listener, module, random, clock)
        if tokens is not None:
            return tokens

    def make() -> SaslClient:
        try:
            return login(name, mechanism, module, random, clock.wall_ms)()
        except ConfigError as error:
            raise failed(str(error)) from None

    return make


def _token_login(
    dynamic_config: DynamicConfig,
    listener: str,
    module: LoginModule,
    random: Random,
    clock: Clock,
) -> TokenLogin | None:
    """The login by tokens of an issuer; None where tokens are made here."""

    def at(config: BrokerConfig) -> SettingOf:
        return lambda name: (
            config.of_listener(listener, name, OAUTHBEARER) if name in BROKER else None
        )

    config = dynamic_config.static
    try:
        if not gets_tokens(at(config)):
            return None
        settings = token_settings(at(config), module.options, config.java_properties)
        return TokenLogin(
            settings,
            lambda: RefreshSettings.read(at(dynamic_config.current())),
            random,
            clock.wall_ms,
        )
    except ConfigError as error:
        raise ConfigError(f"listener {listener}: {error}") from None
