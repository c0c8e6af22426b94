"""The proxy: a port for the bootstrap address and one for each broker that replies tell of."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

from kwire.client.settings import ConnectionSettings
from kwire.network.buffers import BufferPool
from kwire.network.tls_connection import TlsConnection
from kwire.trace.proxy.crossing import Crossing
from kwire.trace.proxy.ports import Ports, Target
from kwire.trace.recorder import Recorder

if TYPE_CHECKING:
    import ssl


class Proxy:
    """Serves at `listen` (host, port; 0 picks one) what is at `target`. `advertised_host` is told
    to clients; empty: the address by which they came. With `tls` clients speak TLS."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        listen: tuple[str, int],
        target: list[tuple[str, int]],
        settings: ConnectionSettings,
        recorder: Recorder,
        advertised_host: str = "",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._loop = loop
        self._target = Target(tuple(target))
        self._settings = settings
        self._recorder = recorder
        self._advertised_host = advertised_host
        self._tls = tls
        self._pool = BufferPool()
        self._ports = Ports(*listen, self._listen)
        self._servers: list[asyncio.Task[asyncio.Server]] = []
        self._crossings: dict[Crossing, None] = {}

    async def start(self) -> tuple[str, int]:
        """Begin to serve: where. OSError."""
        address = self._ports.open_first(self._target)
        await asyncio.gather(*self._servers)
        return address

    def _listen(self, opened: socket.socket, target: Target) -> None:
        serving = self._loop.create_server(lambda: self._accepted(target), sock=opened)
        self._servers.append(self._loop.create_task(serving))

    def _accepted(self, target: Target) -> asyncio.BaseProtocol:
        crossing = Crossing(
            self._loop,
            self._pool,
            self._settings,
            target,
            self._recorder,
            self._ports.of,
            self._advertised_host,
            lambda gone: self._crossings.pop(gone, None),
        )
        self._crossings[crossing] = None
        if self._tls is None:
            return crossing
        return TlsConnection(self._loop, crossing, self._tls, server_side=True)

    async def stop(self) -> None:
        """End all connections and ports."""
        for serving in self._servers:
            (await serving).close()
        for crossing in list(self._crossings):
            crossing.end("the proxy ends")
        await asyncio.sleep(0)
