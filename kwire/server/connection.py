"""One client connection: requests in order, replies in order (DESIGN.md, decision 10).

A request starts when every request before it has its reply. One that does not look at what writes
do (a Produce above all) starts already when those before it only wait for theirs. Requests that
arrive meanwhile are queued; at the bound of queued requests, queued bytes or unsent reply bytes the
connection stops reading. When it closes, everything that is pending of it is cancelled; a Produce
that was completely received is still executed (KAFKA-3703), in its order.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from kwire.log.types import FileSlice
from kwire.network.frames import FrameConnection
from kwire.pending import Pending
from kwire.protocol.errors import EncodeError, MalformedError
from kwire.protocol.frame import encode_response, parse_request_header
from kwire.server.context import DISCONNECT, NO_REPLY, RequestContext

if TYPE_CHECKING:
    from kwire.server.listener import Listener

logger = logging.getLogger(__name__)

QUEUED_REQUESTS_MAX = 64
QUEUED_BYTES_MAX = 1024 * 1024
UNANSWERED_REQUESTS_MAX = 1024
OUTPUT_BYTES_MAX = 64 * 1024
REPLY_BYTES_HIGH = 1024 * 1024
REPLY_BYTES_LOW = 256 * 1024
CLOSE_S = 10.0
UNREPLIED_WRITES_KEPT = 32
PRODUCE_KEY = 0

Parts = Sequence[Any]  # buffers and, until a reply is sent, FileSlices


def hands_to_kernel(transport: Any) -> bool:
    """Whether a transport never looks into what it sends: uvloop's, without TLS."""
    is_uvloop = type(transport).__module__.startswith("uvloop")
    return is_uvloop and transport.get_extra_info("sslcontext") is None


class _Slot:
    """The place of one request in the order of replies."""

    __slots__ = ("context", "disconnect", "done", "parts", "pending", "request_class")

    def __init__(self, context: RequestContext | None) -> None:
        self.context = context
        self.pending: Pending[Any] | None = None
        self.parts: Parts | None = None
        self.done = False
        self.disconnect: str | None = None


# In the place of a blocking request: the next one waits for every write before it.
_WRITES = _Slot(None)


class BrokerConnection(FrameConnection):
    """The server side of one client's connection."""

    def __init__(self, listener: Listener) -> None:
        node = listener.node
        super().__init__(node.buffer_pool, listener.request_bytes_max)
        self.listener = listener
        self.node = node
        self._parts = node.parts
        self._route = listener.dispatcher.route
        self.client_host = ""
        self.client_port = 0
        self.listener_name = listener.name
        self.principal = "User:ANONYMOUS"
        self.token_authenticated = False
        self.security_protocol = "PLAINTEXT"
        self.client_software_name = "unknown"
        self.client_software_version = "unknown"
        self.last_active_s = self.opened_s = 0.0
        self.session: Any = None  # what authentication keeps of this connection
        self._slots: deque[_Slot] = deque()
        self._queue: deque[bytes] = deque()
        self._queued_bytes = 0
        self._blocking: _Slot | None = None
        self.unreplied_writes: list[Pending[None]] = []
        """Of requests without a reply, as long as they are under way and somewhat longer."""
        self._awaited_writes = 0
        self._output: list[Any] = []
        self._output_bytes = 0
        self.sends_files = False
        self._in_batch = False
        self._writing_paused = False
        self._reading_paused = False
        self._memory_awaited = False
        self._refusal: str | None = None
        self._closed = False
        self._ended = False  # the client sends nothing any more
        self._on_close: list[Any] = []

    # -- the connection's life

    def opened(self) -> None:
        address = self.transport.get_extra_info("peername")
        if isinstance(address, tuple) and len(address) >= 2:
            self.client_host, self.client_port = f"/{address[0]}", address[1]
        self.transport.set_write_buffer_limits(high=REPLY_BYTES_HIGH, low=REPLY_BYTES_LOW)
        self.sends_files = hands_to_kernel(self.transport)
        self.last_active_s = self.opened_s = self.node.loop.time()
        self.listener.opened(self)

    @property
    def is_waiting(self) -> bool:
        """Whether a request of this connection has not got its reply yet, and a client that has
        not ended its side waits for that."""
        return bool(self._slots or self._queue) and not self._ended

    def add_close_callback(self, callback: Any) -> None:
        """Run `callback()` once when the connection closes."""
        self._on_close.append(callback)

    def half_closed(self) -> bool:
        """Whole requests that came before the other side's end are answered, then ours ends."""
        if self._closed or self.transport.get_extra_info("sslcontext") is not None:
            self._run_received_produces()
            return False
        self._ended = True
        return bool(self._slots or self._queue)

    def _end_if_answered(self) -> None:
        if not self._slots and not self._queue and not self._closed:
            self.close("the client has ended it, everything is answered", logging.DEBUG)

    def closed(self) -> None:
        if self._closed:
            return
        self._run_received_produces()
        self._closed = True
        slots, self._slots = self._slots, deque()
        promised = self._blocking if self._is_promised() else None
        if promised is None:
            self._queue.clear()
            self._blocking = None  # it refers to this connection
        self._output.clear()
        for slot in slots:
            if slot.pending is not None and slot is not promised:
                slot.pending.cancel()
        callbacks, self._on_close = self._on_close, []
        for callback in callbacks:
            callback()
        self.listener.closed(self)

    def close(self, reason: str, level: int = logging.INFO) -> None:
        """Close from our side, with one line in the log; unsent replies are still sent."""
        if not self._closed and not self.transport.is_closing():
            where = self.client_host, self.client_port
            logger.log(level, "closing the connection from %s:%d: %s", *where, reason)
            self.stop_cutting()
            self._send_output()
            self.transport.close()
            if self._writing_paused:
                # The client does not read: it gets a while, then what is unsent is dropped.
                self.node.loop.call_later(CLOSE_S, self.transport.abort)

    def _run_received_produces(self) -> None:
        """The other side is gone: execute the Produce requests it had sent, drop the others.

        Those behind one whose batches are still being checked follow when it has been appended.
        """
        if self._closed or not self._queue or self._is_promised():
            return
        blocking, self._blocking = self._blocking, None
        if blocking is not None and blocking.pending is not None:
            blocking.pending.cancel()
        queue, self._queue = self._queue, deque()
        for body in queue:
            if int.from_bytes(body[:2], "big", signed=True) == PRODUCE_KEY:
                self._execute(memoryview(body))

    def _is_promised(self) -> bool:
        blocking = self._blocking
        return (
            blocking is not None and blocking.context is not None and blocking.context.is_promised
        )

    def _run_late_produces(self) -> None:
        """The connection is gone, and the request that was checked meanwhile is appended."""
        while self._queue and self._blocking is None:
            body = self._queue.popleft()
            if int.from_bytes(body[:2], "big", signed=True) == PRODUCE_KEY:
                self._execute(memoryview(body))
        slots, self._slots = self._slots, deque()
        for slot in slots:
            if slot.pending is not None and slot is not self._blocking:
                slot.pending.cancel()

    # -- receiving

    def frame_received(self, frame: memoryview) -> None:
        self._in_batch = True
        if self._blocking is None and not self._queue and not self._writing_paused:
            self._execute(frame)
            return
        self._queue.append(bytes(frame))
        self._queued_bytes += len(frame)
        self._adjust_reading()

    def batch_received(self) -> None:
        self._in_batch = False
        self.last_active_s = self.node.loop.time()
        if self._output:
            self._send_output()
        if len(self.unreplied_writes) > UNREPLIED_WRITES_KEPT:
            self.unreplied_writes = [w for w in self.unreplied_writes if not w.done]

    def frame_refused(self, reason: str) -> None:
        self._refusal = reason
        if not self._queue and self._blocking is None:
            self._refuse(reason)
        self._adjust_reading()

    def _refuse(self, reason: str) -> None:
        """Close after the replies of everything before."""
        self.stop_cutting()
        slot = _Slot(None)
        slot.done = True
        slot.disconnect = reason
        self._slots.append(slot)
        self._queue.clear()
        self._flush_slots()

    # -- executing

    def _execute(self, body: memoryview) -> None:
        try:
            api_key, version, correlation_id, client_id, offset = parse_request_header(body)
            route = self._route(api_key, version)
        except MalformedError as error:
            self._refuse(str(error))
            return
        if route.waits_for_writes and self._is_held_back(body):
            return
        context = RequestContext(self._parts, self, api_key, version, correlation_id, client_id)
        try:
            decode = route.decoders.get(version)
            if decode is not None:
                request, _ = decode(body, offset)
            else:
                request, _ = route.decode(body, offset, version)
        except MalformedError as error:
            self._refuse(f"{route.name} version {version} cannot be parsed: {error}")
            return
        outcome = route.execute(context, request)
        if isinstance(outcome, Pending):
            self._wait_for(context, outcome)
        elif outcome is not NO_REPLY:
            if not self._slots and outcome is not DISCONNECT:
                parts = self._encoded(context, outcome)
                if parts is not None:
                    self._emit(parts)
                    return
            slot = _Slot(context)
            self._slots.append(slot)
            self._answer(slot, outcome)

    def _encoded(self, context: RequestContext, outcome: Any) -> Parts | None:
        """The framed response; None, with a line in the log, for one that cannot be sent."""
        try:
            return encode_response(
                context.api_key, context.api_version, context.correlation_id, outcome
            )
        except EncodeError as error:
            logger.error("a response cannot be sent: %s", error)
            return None

    def _wait_for(self, context: RequestContext, pending: Pending[Any]) -> None:
        slot = _Slot(context)
        slot.pending = pending
        self._slots.append(slot)
        if not context.effects_done or len(self._slots) >= UNANSWERED_REQUESTS_MAX:
            self._blocking = slot
        pending.add_done_callback(partial(self._pending_done, slot))

    def _pending_done(self, slot: _Slot, pending: Pending[Any]) -> None:
        if self._closed:
            return
        assert slot.context is not None
        error = pending.error()
        if error is None:
            outcome = pending.result()
        else:
            outcome = self.listener.dispatcher.failed(slot.context, error)
        slot.pending = None
        self._answer(slot, outcome)
        if self._blocking is slot:
            self._blocking = None
            if self._queue or self._refusal is not None or self._reading_paused:
                self._run_queue()
        elif self._blocking is _WRITES:
            self._writes_seen()
        if self._ended:
            self._end_if_answered()

    def _is_held_back(self, body: memoryview) -> bool:
        """Whether this request starts later: when all that was written before it can be seen."""
        if not self._slots and not self.unreplied_writes:
            return False
        writes, self.unreplied_writes = self.unreplied_writes, []
        under_way = [written for written in writes if not written.done]
        if not self._slots and not under_way:
            return False
        self._blocking = _WRITES
        self._queue.appendleft(bytes(body))
        self._queued_bytes += len(body)
        self._awaited_writes = len(under_way)
        for written in under_way:
            written.add_done_callback(self._write_ended)
        self._adjust_reading()
        return True

    def _write_ended(self, written: Pending[None]) -> None:
        self._awaited_writes -= 1
        if self._blocking is _WRITES:
            self._writes_seen()

    def _writes_seen(self) -> None:
        """Maybe that was the last that the next request waits for."""
        if not self._slots and not self._awaited_writes:
            self._blocking = None
            self._run_queue()

    def effects_done(self, context: RequestContext) -> None:
        """See RequestContext.let_next_start."""
        blocking = self._blocking
        if blocking is not None and blocking.context is context:
            self._blocking = None
            if self._closed:
                self._run_late_produces()
            else:
                self._run_queue()

    def _run_queue(self) -> None:
        queue = self._queue
        while queue and self._blocking is None and not self._writing_paused and not self._closed:
            body = queue.popleft()
            self._queued_bytes -= len(body)
            self._execute(memoryview(body))
        if not queue and self._blocking is None and self._refusal is not None:
            reason, self._refusal = self._refusal, None
            self._refuse(reason)
        self._adjust_reading()
        if self._ended:
            self._end_if_answered()

    # -- answering

    def _answer(self, slot: _Slot, outcome: Any) -> None:
        context = slot.context
        assert context is not None
        slot.done = True
        if outcome is not NO_REPLY:
            slot.parts = None if outcome is DISCONNECT else self._encoded(context, outcome)
            if slot.parts is not None and len(self._slots) == 1:
                self._slots.clear()
                self._emit(slot.parts)
                return
            slot.parts = self._held(slot.parts)
            if slot.parts is None:
                slot.disconnect = f"a request of API {context.api_key} failed without an answer"
                self.stop_cutting()
                self._queue.clear()
        self._flush_slots()

    def _held(self, parts: Parts | None) -> Parts | None:
        """A reply that others are in front of; None when it cannot be read from its file."""
        if parts is None or len(parts) == 1:
            return parts
        try:
            return [part.read() if type(part) is FileSlice else part for part in parts]
        except OSError as error:
            logger.error("a response cannot be sent: %s", error)
            return None

    def _flush_slots(self) -> None:
        slots = self._slots
        while slots and slots[0].done:
            slot = slots.popleft()
            if slot.disconnect is not None:
                for later in slots:
                    if later.pending is not None:
                        later.pending.cancel()
                slots.clear()
                self.close(slot.disconnect)
                return
            if slot.parts is not None:
                self._emit(slot.parts)

    def _emit(self, parts: Parts) -> None:
        """Send a reply; small ones of one read leave together."""
        if len(parts) > 1 and self.sends_files:
            try:
                parts = [part.view() if type(part) is FileSlice else part for part in parts]
            except OSError as error:
                self.close(f"a response cannot be sent: {error}")
                return
        first = not self._in_batch and not self._output
        if first and not self._slots:
            self.write_frames(parts)
            return
        self._output.extend(parts)
        self._output_bytes += sum(map(len, parts))
        if self._output_bytes >= OUTPUT_BYTES_MAX:
            self._send_output()
        elif first:
            # The client has more on their way: what one commit answers leaves together.
            self.node.loop.call_soon(self._send_output)

    def _send_output(self) -> None:
        output, self._output = self._output, []
        self._output_bytes = 0
        if output:
            self.write_frames(output)

    # -- back-pressure

    def pause_writing(self) -> None:
        self._writing_paused = True
        self._adjust_reading()

    def resume_writing(self) -> None:
        self._writing_paused = False
        if self._blocking is None:
            self._run_queue()
        self._adjust_reading()

    def memory_awaited(self, waits: bool) -> None:
        self._memory_awaited = waits
        self._adjust_reading()

    def _adjust_reading(self) -> None:
        """Read while there is room for what would be read."""
        full = (
            self._writing_paused
            or self._memory_awaited
            or len(self._queue) >= QUEUED_REQUESTS_MAX
            or self._queued_bytes >= QUEUED_BYTES_MAX
        )
        if full != self._reading_paused and not self._closed and not self.transport.is_closing():
            self._reading_paused = full
            if full:
                self.transport.pause_reading()
            else:
                self.transport.resume_reading()
