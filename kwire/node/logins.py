"""Where SASL is spoken: at a node's own listeners, and at those of other nodes that it logs in at.

A node without such listeners imports nothing for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from kwire.clock import Clock, Random
from kwire.config.dynamic import DynamicConfig
from kwire.config.listeners import WITH_SASL
from kwire.kraft.images.metadata_image import MetadataImage

if TYPE_CHECKING:
    from kwire.network.login import MakeAuthentication
    from kwire.node.authentication import Authentication
    from kwire.node.token_source import TokenSource
    from kwire.security.sasl.server import MakeSasl


class Logins:
    """See the module. Made first of a node: ConfigError, one line, for settings that cannot be
    used. `open` reads the keys of tokens and gets the node's own ones, `close` ends that."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        dynamic_config: DynamicConfig,
        random: Random,
        clock: Clock,
        image: Callable[[], MetadataImage],
    ) -> None:
        config = self._config = dynamic_config.static
        self._loop = loop
        self._dynamic_config = dynamic_config
        self._random = random
        self._clock = clock
        self._own: Authentication | None = None
        self._made: dict[str, MakeAuthentication | None] = {}  # by the other nodes' listener
        self._tokens: list[TokenSource] = []
        if any(listener.has_sasl for listener in config.listeners()):
            from kwire.node.authentication import Authentication

            self._own = Authentication(loop, dynamic_config, random, image)

    async def open(self) -> None:
        """Read what is needed to tell who is there, and to say who this node is."""
        if self._own is not None:
            await self._own.open()
        for source in self._tokens:
            await source.open()

    def close(self) -> None:
        """Nothing is read any more."""
        if self._own is not None:
            self._own.close()
        for source in self._tokens:
            source.close()

    def of(self, listener: str) -> MakeSasl | None:
        """How clients authenticate on a listener of this node; None where they need not."""
        return None if self._own is None else self._own.at(listener)

    def at(self, listener: str) -> MakeAuthentication | None:
        """How this node logs in at that listener of other nodes; None where it need not."""
        if self._config.protocol_map().get(listener) not in WITH_SASL:
            return None
        if listener not in self._made:
            self._made[listener] = self._make(listener)
        return self._made[listener]

    def _make(self, listener: str) -> MakeAuthentication | None:
        from kwire.node.authentication import login_at
        from kwire.security.token_login import TokenLogin

        made = login_at(self._dynamic_config, listener, self._random, self._clock)
        if isinstance(made, TokenLogin):
            from kwire.node.token_source import TokenSource

            self._tokens.append(TokenSource(self._loop, made, self._clock))
        return made
