"""One client connection: requests in order, replies in order (DESIGN.md, decision 10).

A request starts when every request before it has its reply. One that does not look at what writes
do (a Produce above all) starts already when those before it only wait for theirs. Requests that
arrive meanwhile are queued; at the bound of queued requests, queued bytes or unsent reply bytes the
connection stops reading (`paused_connection.py`). When it closes, everything that is pending of it
is cancelled; a Produce that was completely received is still executed (KAFKA-3703), in its order.

Every request passes the arrival step and the response step (`arrival.py`, `response.py`), unless
`plain_allowed` says that nobody wants to see it there (`request_steps.py`).
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from kwire.pending import Pending
from kwire.protocol.errors import EncodeError, MalformedError
from kwire.protocol.frame import encode_answer, parse_request_header
from kwire.protocol.structs import Parts
from kwire.security.acls.hosts import address_text
from kwire.server.bound_connection import BoundConnection
from kwire.server.connection_setup import ConnectionSetup, hands_to_kernel
from kwire.server.context import DISCONNECT, NO_REPLY, RequestContext, Response
from kwire.server.dispatch import Route
from kwire.server.plain_requests import PlainRequests
from kwire.server.slots import BETWEEN, HELD, MUTED, WRITES, NoRequest, Slot
from kwire.server.unbound_client import PRODUCE_KEY

if TYPE_CHECKING:
    from kwire.server.request_counts import RequestCounts, Timed
    from kwire.slices import Slices

logger = logging.getLogger(__name__)

UNANSWERED_REQUESTS_MAX = 1024
REPLY_BYTES_HIGH = 1024 * 1024
REPLY_BYTES_LOW = 256 * 1024
UNREPLIED_WRITES_KEPT = 32


class BrokerConnection(BoundConnection):
    """The server side of one client's connection."""

    __slots__ = (
        "_awaited_writes",
        "_ended",
        "_on_close",
        "_parts",
        "_refusal",
        "_route",
        "_setup",
        "bytes_stored",
        "client_software_name",
        "client_software_version",
        "is_follower",
        "last_active_s",
        "listener_name",
        "opened_s",
        "security_protocol",
        "token_authenticated",
        "unreplied_writes",
    )

    def __init__(self, setup: ConnectionSetup[BrokerConnection]) -> None:
        plain = PlainRequests(setup.parts, setup.dispatcher.known_route)
        super().__init__(
            setup.pool, setup.request_bytes_max, setup.loop, setup.turns, setup.steps, plain
        )
        self._setup = setup
        self._parts = setup.parts
        self._route = setup.dispatcher.route
        self.listener_name = setup.listener_name
        self.token_authenticated = False
        self.security_protocol = setup.security_protocol
        self.is_follower = False
        """Whether the last Fetch was one of a follower: those are counted apart."""
        self.bytes_stored = 0  # of record batches that its client has written
        self.client_software_name = "unknown"
        self.client_software_version = "unknown"
        self.last_active_s = self.opened_s = 0.0
        self.unreplied_writes: list[Pending[None]] = []
        """Of requests without a reply, as long as they are under way and somewhat longer."""
        self._awaited_writes = 0
        self._refusal: str | None = None
        self._ended = False  # the client sends nothing any more, but still reads
        self._on_close: list[Callable[[], None]] = []

    # -- the connection's life

    def opened(self) -> None:
        address = self.transport.get_extra_info("peername")
        if isinstance(address, tuple) and len(address) >= 2:
            self.client_host, self.client_port = f"/{address_text(address[0])}", address[1]
        self.transport.set_write_buffer_limits(high=REPLY_BYTES_HIGH, low=REPLY_BYTES_LOW)
        self.sends_files = hands_to_kernel(self.transport)
        self.last_active_s = self.opened_s = self._loop.time()
        self.recompute_plain()  # of what has changed since it was made; then the listener does
        self._setup.opened(self)

    @property
    def is_waiting(self) -> bool:
        """Whether a request of this connection has not got its reply yet, and a client that has
        not ended its side waits for that."""
        return bool(self._slots or self._queue) and not self._ended

    def add_close_callback(self, callback: Callable[[], None]) -> None:
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
        if self._ended and not (self._slots or self._queue or self._closed):
            self.close("the client has ended it, everything is answered", logging.DEBUG)

    def closed(self) -> None:
        if self._closed:
            return
        self._run_received_produces()
        self._closed = True
        self._keep_nothing()
        slots, self._slots = self._slots, deque()
        promised = self._blocking if self._is_promised() else None
        if promised is None:
            self._queue.clear()
            self._blocking = None  # it refers to this connection
        self._output.clear()
        self._watched.open.clear()
        for slot in slots:
            if slot.pending is not None and slot is not promised:
                slot.pending.cancel()
        callbacks, self._on_close = self._on_close, []
        for callback in callbacks:
            callback()
        self._setup.closed(self)

    def _run_received_produces(self) -> None:
        """The other side is gone: execute the Produce requests it had sent, drop the others.

        Those behind one whose batches are still being checked follow when it has been appended.
        Those of a client over its quota run at once and count as ever: nobody is left who could
        wait, and what is kept for later would be no client's connection any more.
        """
        self._is_gone = True
        if self._throttle_timer is not None:
            self._throttle_timer.cancel()
            self._throttle_timer = None
        if self._closed or not self._queue or self._is_promised() or self._blocking is HELD:
            return
        blocking, self._blocking = self._blocking, None
        if blocking is not None and blocking.pending is not None:
            blocking.pending.cancel()
        self.turn_s = self._loop.time()
        while self._queue and self._blocking not in BETWEEN and not self._is_promised():
            body = self._queue.popleft()
            if int.from_bytes(body[:2], "big", signed=True) == PRODUCE_KEY:
                self._execute(memoryview(body))

    def _is_promised(self) -> bool:
        context = None if self._blocking is None else self._blocking.context
        return context is not None and context.is_promised

    def _run_late_produces(self) -> None:
        """The connection is gone, and the request that was checked meanwhile is appended."""
        self.turn_s = self._loop.time()
        while self._queue and self._blocking is None:
            body = self._queue.popleft()
            if int.from_bytes(body[:2], "big", signed=True) == PRODUCE_KEY:
                self._execute(memoryview(body))
        slots, self._slots = self._slots, deque()
        for slot in slots:
            if slot.pending is not None and slot is not self._blocking:
                slot.pending.cancel()
        self._watched.open.clear()  # they refer to this connection

    # -- receiving

    def frame_received(self, frame: memoryview) -> None:
        if not self._in_batch:
            self._in_batch = True
            self.turn_s = self.last_active_s = self._loop.time()
        if self._blocking is None and not self._queue and not self._writing_paused:
            if (roads := self._roads) is not None:
                answer = roads.answer(self, frame, len(self._slots))
                if answer is not None:
                    if answer:
                        self._emit([answer])
                    return
            self._execute(frame)
            return
        self._queue.append(bytes(frame))
        self._queued_bytes += len(frame)
        self._adjust_reading()

    def batch_received(self) -> None:
        if self._in_batch:
            self._in_batch = False
        else:
            self.last_active_s = self._loop.time()  # it was a part of a request
        if self._output:
            self._send_output()
        if self.is_measured:
            self._measured()
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
        slot = NoRequest()
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
        if route.takes_turns and self._is_for_later(body):
            return
        counts, timed, turn_s = route.counts, None, self.turn_s
        if turn_s >= counts.due_s:
            timed = counts.begun(turn_s, len(body))
        context = RequestContext(self._parts, self, api_key, version, correlation_id, client_id)
        if not self.plain_allowed:
            if client_id == self._client_id or (
                self._known_clients is not None and self._meets(self._known_clients, client_id)
            ):
                by_time = self._by_time
                if by_time is None or by_time.skipped:
                    if by_time is not None:
                        by_time.skipped -= 1
                    if route.is_charged:
                        if api_key != PRODUCE_KEY:
                            self._watched.asks(None, context, len(body))
                        elif (producer := self._producer) is not None:
                            pending = producer.pending + len(body)
                            if pending <= producer.room and turn_s < producer.quiet_until_s:
                                producer.pending = pending  # as `Sensor.count`
                                producer.counted_s = turn_s
                            else:
                                self._watched.asks(self.rates, context, len(body))
                else:
                    self._measure(self.rates, context, len(body))
            elif not (self._passes_arrival or self._arrives(route, context, body, offset, timed)):
                return
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
        if self.is_follower:
            counts = counts.of_followers
        if isinstance(outcome, Pending):
            self._wait_for(Slot(context, counts), context, timed, outcome)
        elif outcome is not NO_REPLY:
            if not self._slots and outcome is not DISCONNECT:
                parts = self._encoded(context, outcome, counts)
                if parts is not None:
                    if timed is not None:
                        counts.ended(timed)
                    self._emit(parts)
                    return
                outcome = DISCONNECT
            self._answer_in_turn(Slot(context, counts), timed, outcome)
        else:
            self._unanswered(context, counts, timed)

    def _unanswered(
        self, context: RequestContext, counts: RequestCounts, timed: Timed | None
    ) -> None:
        """A request has no reply."""
        if not self.plain_allowed or self._watched.open:
            self._charge(context, NO_REPLY)
            self._watched.responds(context, NO_REPLY, None)
        counts.count_any(context.api_version, NO_REPLY)
        if timed is not None:
            counts.ended(timed)

    def _arrives(
        self, route: Route, context: RequestContext, body: memoryview, at: int, timed: Timed | None
    ) -> bool:
        """The arrival step: whether the request is to be executed; the others are answered."""
        if self.is_authenticated and self._steps.quotas is not None:
            rates = self._rates_of(context.client_id)
            self._bound_by(rates)
            self._measure(rates, context, len(body))
        refusal = self._watched.arrives(context, body, self.is_authenticated)
        if refusal is None:
            faulted = self._watched.faulted(route, context, body, at)
            if faulted is None:
                return True
            self._wait_for(Slot(context, route.counts), context, timed, faulted)
            return False
        try:
            outcome = route.refusal(context, body, at, refusal)
        except MalformedError as error:
            self._refuse(f"a refused request cannot be parsed: {error}")
            return False
        self._answer_in_turn(Slot(context, route.counts), timed, outcome)
        return False

    def _charge(self, context: RequestContext, outcome: Response) -> None:
        wait_ms = self._watched.charge(context, outcome)
        if wait_ms > 0:
            self._make_wait(context, wait_ms)

    def charge_read(self, context: RequestContext, response_bytes: int) -> int:
        rates = self.rates
        if rates is None:
            return 0
        now_s = self.turn_s if self._in_batch else self._loop.time()
        wait_ms = self._watched.charge_read(rates, context, response_bytes, now_s)
        if wait_ms > 0 and context not in self._watched.open:  # those wait from their response on
            self._make_wait(context, wait_ms)
        return wait_ms

    def slices_of(self, context: RequestContext) -> Slices:
        """See `RequestContext.slices`."""
        slices = self._parts.slices
        if self._steps.quotas is None:
            return slices
        rates = self._rates_of(context.client_id)
        return slices if rates is None else self._watched.measured(slices, rates, context)

    def _make_wait(self, context: RequestContext, wait_ms: int) -> None:
        self._setup.dispatcher.route_local(context.api_key).counts.throttled(wait_ms)
        self._throttle(wait_ms)

    def _encoded(
        self, context: RequestContext, outcome: Response, counts: RequestCounts
    ) -> Parts | None:
        """The framed response, which is counted; None, with a line in the log, for one that cannot
        be sent."""
        is_watched = self._watched.open
        if is_watched:
            self._charge(context, outcome)
        try:
            parts = encode_answer(
                context.api_key, context.api_version, context.correlation_id, outcome, counts
            )
        except EncodeError as error:
            logger.error("a response cannot be sent: %s", error)
            if is_watched:
                self._watched.responds(context, outcome, None)
            return None
        if is_watched:
            self._watched.responds(context, outcome, parts)
        return parts

    def _wait_for(
        self, slot: Slot, context: RequestContext, timed: Timed | None, pending: Pending[Response]
    ) -> None:
        if self._watched.open:
            self._watched.executed(context)
        slot.pending = pending
        self._slots.append(slot)
        if not context.effects_done or len(self._slots) >= UNANSWERED_REQUESTS_MAX:
            self._blocking = slot
        if timed is not None:
            timed.executed()
        pending.add_done_callback(partial(self._pending_done, slot, timed))

    def _pending_done(self, slot: Slot, timed: Timed | None, pending: Pending[Response]) -> None:
        if self._closed:
            return
        assert slot.context is not None
        if (error := pending.error()) is None:
            outcome = pending.result()
        else:
            outcome = self._setup.dispatcher.failed(slot.context, error)
        slot.pending = None
        self._answer(slot, timed, outcome)
        if self._blocking is slot:
            self._blocking = None
            if self._queue or self._refusal is not None or self._reading_paused:
                self._run_queue()
        self._replied()

    def _replied(self) -> None:
        if self._blocking is WRITES:
            self._writes_seen()
        self._end_if_answered()

    def _is_held_back(self, body: memoryview) -> bool:
        """Whether this request starts later: when all that was written before it can be seen."""
        if not self._slots and not self.unreplied_writes:
            return False
        writes, self.unreplied_writes = self.unreplied_writes, []
        under_way = [written for written in writes if not written.done]
        if not self._slots and not under_way:
            return False
        self._blocking = WRITES
        self._queue.appendleft(bytes(body))
        self._queued_bytes += len(body)
        self._awaited_writes = len(under_way)
        for written in under_way:
            written.add_done_callback(self._write_ended)
        self._adjust_reading()
        return True

    def _write_ended(self, written: Pending[None]) -> None:
        self._awaited_writes -= 1
        if self._blocking is WRITES:
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
        self.turn_s = self._loop.time()
        if self._throttle_timer is not None and self._blocking is None:
            self._blocking = MUTED
        while queue and self._blocking is None and not self._writing_paused and not self._closed:
            body = queue.popleft()
            self._queued_bytes -= len(body)
            self._execute(memoryview(body))
        if self.is_measured and not self._in_batch:
            self._measured()
        if not queue and self._blocking is None and self._refusal is not None:
            reason, self._refusal = self._refusal, None
            self._refuse(reason)
        self._adjust_reading()
        self._end_if_answered()

    # -- answering

    def _answer_in_turn(self, slot: Slot, timed: Timed | None, outcome: Response) -> None:
        """Answer behind the requests in front."""
        if timed is not None:
            timed.executed()
        self._slots.append(slot)
        self._answer(slot, timed, outcome)

    def _answer(self, slot: Slot, timed: Timed | None, outcome: Response) -> None:
        context, counts = slot.context, slot.counts
        assert context is not None
        slot.done = True
        parts = None
        if outcome is NO_REPLY or outcome is DISCONNECT:
            if self._watched.open:
                self._charge(context, outcome)
                self._watched.responds(context, outcome, None)
            counts.count_any(context.api_version, outcome)
        elif (parts := self._encoded(context, outcome, counts)) is None:
            counts.count_any(context.api_version, DISCONNECT)
        if timed is not None:
            counts.ended(timed)
        if outcome is not NO_REPLY:
            if parts is not None and len(self._slots) == 1:
                self._slots.clear()
                self._emit(parts)
                return
            if (unread := slot.hold(parts)) is not None:
                logger.error("a response cannot be sent: %s", unread)
            if slot.parts is None:
                slot.disconnect = f"a request of API {context.api_key} failed without an answer"
                self.stop_cutting()
                self._queue.clear()
        self._flush_slots()

    def _flush_slots(self) -> None:
        slots = self._slots
        while slots and slots[0].done:
            slot = slots.popleft()
            if slot.disconnect is not None:
                if (cut := self._watched.cut.pop(slot.context, None)) is not None:
                    self._emit([cut])
                for later in slots:
                    if later.pending is not None:
                        later.pending.cancel()
                slots.clear()
                self.close(slot.disconnect)
                return
            if slot.parts is not None:
                self._emit(slot.parts)
