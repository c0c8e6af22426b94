"""What the listeners of a node authenticate clients with: their settings, and the credentials in
the published metadata."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kwire.clock import Random
from kwire.config.broker_config import BrokerConfig
from kwire.kraft.images.metadata_image import MetadataImage
from kwire.security.sasl.mechanisms import PLAIN, MakeMechanism
from kwire.security.sasl.plain import Passwords, PlainServer
from kwire.security.sasl.scram import TYPES, Known, ScramParts, ScramServer
from kwire.security.sasl.server import SaslSettings
from kwire.security.sasl.settings import listener_sasl

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
