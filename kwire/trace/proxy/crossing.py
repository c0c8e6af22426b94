"""One client's connection through the proxy: what it asks goes to a broker, what that answers comes
back, with addresses that lead here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kwire.client.address import shown
from kwire.client.errors import ClientError
from kwire.client.settings import ConnectionSettings
from kwire.network.buffers import BufferPool
from kwire.network.frames import FrameConnection
from kwire.protocol.api_keys import API_KEYS, ApiKey
from kwire.protocol.frame import encode_response, with_version
from kwire.trace.dialogues import Answered, Dialogue
from kwire.trace.proxy.addresses import Mapped, leads_back
from kwire.trace.proxy.ports import Target
from kwire.trace.proxy.target_side import TargetSide
from kwire.trace.recorder import Recorder

REQUEST_BYTES_MAX = 100 << 20
WRITTEN_BYTES_HIGH, WRITTEN_BYTES_LOW = 4 << 20, 1 << 20
NEVER_VERSION = 0x7FFF
"""A version that no broker has: it answers ApiVersions at version 0 and says which it has."""


class Crossing(FrameConnection):
    """The client's side; `_far` is the broker's, None while that is not there."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        pool: BufferPool,
        settings: ConnectionSettings,
        target: Target,
        recorder: Recorder,
        mapped: Callable[[str, int], int],
        advertised_host: str,
        ended: Callable[[Crossing], None],
    ) -> None:
        super().__init__(pool, REQUEST_BYTES_MAX, 0)
        self._loop = loop
        self._settings = settings
        self._leads_to = target
        self._recorder = recorder
        self._mapped = mapped
        self._advertised_host = advertised_host
        self._ended = ended
        self._far: TargetSide | None = None
        self._early: list[bytes] = []
        self._dialogue = Dialogue(0, recorder.kept_bytes)
        self._is_closed = False
        self._is_half_closed = False
        self._pauses: set[str] = set()
        self._opening: asyncio.Task[None] | None = None

    # -- the client's side

    def opened(self) -> None:
        self.transport.set_write_buffer_limits(WRITTEN_BYTES_HIGH, WRITTEN_BYTES_LOW)
        # One that has gone by now has no address any more.
        peer = self.transport.get_extra_info("peername") or ("?", 0)
        host, port = self._leads_to.addresses[0]
        number = self._recorder.opened(shown(str(peer[0]), int(peer[1])), shown(host, port))
        self._dialogue = Dialogue(number, self._recorder.kept_bytes)
        self._loop.call_soon(self._pause, "opening", True)  # a loop may begin to read behind this
        self._opening = self._loop.create_task(self._open())

    async def _open(self) -> None:
        failure = ""
        for host, port in self._leads_to.addresses:
            try:
                self._far = await self._connected(host, port)
                break
            except (OSError, TimeoutError, ClientError) as error:
                reason = error.strerror if isinstance(error, OSError) else None
                failure = f"{shown(host, port)}: {reason or error or 'no connection in time'}"
        if self._far is None:
            self._end(failure)
            return
        early, self._early = self._early, []
        for frame in early:
            self._forward(frame)
        self._pause("opening", False)
        if self._is_closed:
            self._far.transport.close()

    async def _connected(self, host: str, port: int) -> TargetSide:
        settings = self._settings
        far = TargetSide(self._pool, settings, self._answered, self._end, self._far_blocked)
        context = None if settings.tls is None else settings.tls()
        name = host if context is not None and settings.check_host_name else None
        if context is not None and name is None:
            name = ""
        async with asyncio.timeout(settings.connect_timeout_s):
            await self._loop.create_connection(
                lambda: far, host, port, ssl=context, server_hostname=name
            )
        far.transport.set_write_buffer_limits(WRITTEN_BYTES_HIGH, WRITTEN_BYTES_LOW)
        try:
            await far.log_in(self._loop)
        except BaseException:
            far.transport.abort()
            raise
        return far

    def frame_received(self, frame: memoryview) -> None:
        asked = self._dialogue.asks(frame, self._recorder.now_ms())
        self._recorder.happened(asked.event)
        data = bytes(frame)
        if asked.api_key == ApiKey.API_VERSIONS and asked.message is None:
            known = API_KEYS[ApiKey.API_VERSIONS]
            if asked.version > known.max:
                data = with_version(data, NEVER_VERSION)
        if self._far is None:
            self._early.append(data)
        else:
            self._forward(data)

    def _forward(self, frame: bytes) -> None:
        assert self._far is not None
        self._far.write_frames((len(frame).to_bytes(4, "big"), frame))

    def size_refused(self, size: int) -> None:
        self._end(f"the client sends no Kafka request, but one of {size} bytes; is it TLS?")

    def half_closed(self) -> bool:
        self._is_half_closed = bool(self._dialogue.unanswered)
        return self._is_half_closed

    def closed(self) -> None:
        self._end("")

    def pause_writing(self) -> None:
        if self._far is not None:
            self._far.transport.pause_reading()

    def resume_writing(self) -> None:
        if self._far is not None and not self._far.transport.is_closing():
            self._far.transport.resume_reading()

    def memory_awaited(self, waits: bool) -> None:
        self._pause("memory", waits)

    def _far_blocked(self, is_full: bool) -> None:
        self._pause("broker", is_full)

    def _pause(self, reason: str, is_paused: bool) -> None:
        had = bool(self._pauses)
        (self._pauses.add if is_paused else self._pauses.discard)(reason)
        if bool(self._pauses) == had or self.transport.is_closing():
            return
        if self._pauses:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    # -- the broker's side

    def _answered(self, frame: memoryview) -> None:
        answered = self._dialogue.answers(frame, self._recorder.now_ms())
        self._recorder.happened(answered.event)
        if not self._is_closed:
            try:
                self.write_frames(self._leading_back(answered, frame))
            except OSError as error:
                self._end(f"a broker cannot be served: {error.strerror or error}")
        if self._is_half_closed and not self._dialogue.unanswered:
            self._end("")

    def _leading_back(self, answered: Answered, frame: memoryview) -> list[bytes]:
        message, asked = answered.message, answered.asked
        if message is not None and asked is not None and leads_back(message, self._here()):
            parts = encode_response(
                asked.api_key, answered.version, answered.correlation_id, message
            )
            return [bytes(part) for part in parts]
        return [len(frame).to_bytes(4, "big"), bytes(frame)]

    def _here(self) -> Mapped:
        own = self._advertised_host or str(self.transport.get_extra_info("sockname")[0])
        return lambda host, port: (own, self._mapped(host, port))

    # -- the end

    def end(self, why: str) -> None:
        """The proxy ends."""
        self._end(why)

    def _end(self, why: str) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._recorder.closed(self._dialogue.connection, self._dialogue.unanswered, why)
        self.stop_cutting()
        self.transport.close()
        if self._far is not None:
            self._far.transport.close()
        elif self._opening is not None and not self._early:
            self._opening.cancel()
        self._ended(self)
