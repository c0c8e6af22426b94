"""Where SASL is spoken: at a node's own listeners, and at those of other nodes that it logs in at.

A node without such listeners imports nothing for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kwire.clock import Random
from kwire.config.broker_config import BrokerConfig
from kwire.kraft.images.metadata_image import MetadataImage

if TYPE_CHECKING:
    from kwire.network.login import MakeAuthentication
    from kwire.security.sasl.server import SaslSettings


def sasl_of_listeners(
    config: BrokerConfig, random: Random, image: Callable[[], MetadataImage]
) -> dict[str, SaslSettings]:
    """How clients authenticate, by the name of the listener where they have to; ConfigError."""
    names = [each.name for each in config.listeners() if each.has_sasl]
    if not names:
        return {}
    from kwire.node.authentication import sasl_settings

    return {name: sasl_settings(config, name, random, image) for name in names}


def login_at(config: BrokerConfig, listener: str, random: Random) -> MakeAuthentication | None:
    """How a node logs in at that listener of other nodes; None where it need not."""
    if not config.protocol_map().get(listener, "").startswith("SASL_"):
        return None
    from kwire.node.authentication import login_at as by_sasl

    return by_sasl(config, listener, random)
