"""A listening socket of the HTTP process whose connections have TLS."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping

from kwire.config.errors import ConfigError
from kwire.http.server import listen
from kwire.http.tls import setting_of
from kwire.security.tls.endpoint import TlsEndpoint

logger = logging.getLogger(__name__)

FILE_CHECK_S = 1.0


class TlsListener:
    """See the module. New key files and other settings are taken over while it listens: the next
    connection gets them, those that exist keep what they were made with."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        fd: int,
        name: str,
        protocol: Callable[[], asyncio.Protocol],
        handshake_s: float,
    ) -> None:
        self._loop = loop
        self._fd = fd
        self.name = name
        self._protocol = protocol
        self._handshake_s = handshake_s
        self._endpoint: TlsEndpoint | None = None
        self._server: asyncio.Server | None = None
        self._watching: asyncio.Task[None] | None = None
        self._changing = asyncio.Lock()

    async def open(self, settings: Mapping[str, str]) -> None:
        """Accept from now on. ConfigError."""
        self._endpoint = endpoint = TlsEndpoint(setting_of(settings), dials=False)
        await self._listen(endpoint)
        self._watching = self._loop.create_task(self._watch())

    async def change(self, settings: Mapping[str, str]) -> None:
        """Accept with other settings; those before stay where they cannot be used."""
        async with self._changing:
            try:
                endpoint = TlsEndpoint(setting_of(settings), dials=False)
            except ConfigError as error:
                self._log_unusable(error)
            else:
                self._endpoint = endpoint
                await self._listen(endpoint)

    def _log_unusable(self, error: ConfigError) -> None:
        logger.error(
            "the TLS settings of listener %s cannot be used, those before stay: %s",
            self.name,
            error,
        )

    async def _listen(self, endpoint: TlsEndpoint) -> None:
        """What connects meanwhile waits in the socket's backlog."""
        if self._server is not None:
            self._server.close()
        self._server = await listen(
            self._loop,
            os.dup(self._fd),
            self._protocol,
            endpoint.server_context(),
            self._handshake_s,
        )

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(FILE_CHECK_S)
            async with self._changing:
                endpoint = self._endpoint
                if endpoint is None or not endpoint.files_changed():
                    continue
                try:
                    endpoint.reload()
                except ConfigError as error:
                    self._log_unusable(error)
                else:
                    await self._listen(endpoint)
