"""Requests that a fault on command meets: executed, or not, and answered as the faults say.

The faults decide by plain values (`kwire/faults`); this has the loop, the handler and the
connection. A faulted request is a Pending of its connection like any other that waits: what came in
front of it is answered first, what comes behind it waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

from kwire.faults.answers import Chosen, error_response, merge, tell_log_starts, without
from kwire.faults.asked import Entry, NameOf, topic_of
from kwire.faults.kinds import Acts
from kwire.faults.machine import Asked, Faults
from kwire.faults.plan import Plan, Refused
from kwire.log.types import FileSlice
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.api_keys import NODE_APIS, VERIFICATION_FROM, ApiKey
from kwire.protocol.errors import ErrorCode, MalformedError
from kwire.protocol.frame import encode_response
from kwire.protocol.records.header import CRC_POSITION
from kwire.protocol.structs import Message, Records
from kwire.server.context import DISCONNECT, NO_REPLY, RequestContext, Response
from kwire.server.dispatch import Route
from kwire.server.leader_hints import LeaderHints, name_leaders
from kwire.server.sliced_response import SlicedResponse

CLOSE = "close"
FINAL_EPOCH = -1


class FaultedRequests:
    """`controller_listeners` are the names of those by which nodes alone ask; `on_spent()` is
    called when no fault will meet a request any more."""

    def __init__(
        self,
        faults: Faults,
        loop: asyncio.AbstractEventLoop,
        controller_listeners: Sequence[str] = (),
        on_spent: Callable[[], None] = lambda: None,
    ) -> None:
        self._faults = faults
        self._on_spent = on_spent
        self._loop = loop
        self._controller_listeners = frozenset(controller_listeners)

    def begin(
        self,
        route: Route,
        context: RequestContext,
        body: memoryview,
        offset: int,
        cut: dict[RequestContext | None, bytes],
    ) -> Pending[Response] | None:
        """What comes of the request; None where no fault meets it. What is to be sent of a reply
        before the connection ends is put into `cut`."""
        if not self._faults.may_meet(context.api_key, context.client_id, context.principal):
            return None
        held = memoryview(bytes(body))  # it may be executed later than the buffer lives
        try:
            request, _ = route.decode(held, offset, context.api_version)
        except MalformedError:
            return None  # it is refused as ever
        if not isinstance(request, Message):
            return None
        asked = Asked(
            context.api_key,
            context.api_version,
            context.client_id,
            context.principal,
            request,
            self._is_of_node(context),
        )
        name_of = _names(context)
        plan = self._faults.plan(asked, name_of)
        if plan is None:
            return None
        if not self._faults.here(Acts.REQUEST):
            self._loop.call_soon(self._on_spent)
        how = _Means(self._loop, route, context, name_of, cut)
        return _FaultedRequest(how, plan, request).start()

    def _is_of_node(self, context: RequestContext) -> bool:
        return (
            context.api_key in NODE_APIS
            or context.listener_name in self._controller_listeners
            or (
                context.api_key == ApiKey.ADD_PARTITIONS_TO_TXN
                and context.api_version >= VERIFICATION_FROM
            )
        )


def _names(context: RequestContext) -> NameOf:
    def name_of(topic_id: bytes) -> str | None:
        topic = context.parts.metadata.image.topics.by_id.get(topic_id)
        return None if topic is None else topic.name

    return name_of


class _Means(NamedTuple):
    """What a faulted request is executed and answered with."""

    loop: asyncio.AbstractEventLoop
    route: Route
    context: RequestContext
    name_of: NameOf
    cut: dict[RequestContext | None, bytes]


class _FaultedRequest:
    """One request from its arrival to its reply."""

    def __init__(self, means: _Means, plan: Plan, request: Message) -> None:
        self._means = means
        self._context = means.context
        self._plan = plan
        self._request = request
        self._outcome: Pending[Response] = Pending(self._cancel)
        self._timer: asyncio.TimerHandle | None = None
        self._executed: Pending[Response] | None = None
        self._refused = [(each, self._error(each)) for each in plan.refused]

    def _error(self, each: Refused) -> Message:
        means = self._means
        version = means.context.api_version
        response = error_response(
            each.place, self._request, version, each.code, each.chosen, means.name_of
        )
        tell_log_starts(response, self._log_start, means.name_of)
        return response

    def _log_start(self, entry: Entry) -> int:
        if entry.topic is None or entry.partition is None:
            return -1
        partition = self._context.parts.replicas.partition(entry.topic, entry.partition)
        return -1 if partition is None or partition.log is None else partition.log.log_start_offset

    def start(self) -> Pending[Response]:
        if self._plan.delay_ms:
            # One that was received whole is executed, whatever becomes of its client.
            self._context.is_promised = self._context.api_key == ApiKey.PRODUCE
        self._later(self._plan.delay_ms, self._execute)
        return self._outcome

    def _later(self, delay_ms: int, then: Callable[[], None]) -> None:
        if not delay_ms:
            then()
            return

        def due() -> None:
            self._timer = None
            then()

        self._timer = self._means.loop.call_later(delay_ms / 1000, due)

    def _cancel(self) -> None:
        """The connection has gone."""
        if self._timer is not None:
            self._timer.cancel()
        if self._executed is not None:
            self._executed.cancel()

    # -- executing

    def _execute(self) -> None:
        plan = self._plan
        if plan.asks_for_names:
            unknown = m.FetchResponse(error_code=int(ErrorCode.FETCH_SESSION_ID_NOT_FOUND))
            self._outcome.complete(unknown)
            return
        if plan.drops is not None:
            self._lose(plan.drops)
            return
        left = self._left()
        if left is None:
            self._respond(self._nothing_left())
            return
        outcome = self._means.route.execute(self._context, left)
        if isinstance(outcome, Pending):
            self._executed = outcome
            outcome.add_done_callback(self._done)
        else:
            self._respond(outcome)

    def _left(self) -> Message | None:
        """What is to be executed of the request; None for nothing."""
        request: Message | None = self._request
        if self._plan.has_names and isinstance(request, m.FetchRequest):
            wait_ms = 0 if self._refused else request.max_wait_ms  # an error is told at once
            request = request.copy(session_epoch=FINAL_EPOCH, max_wait_ms=wait_ms)
        name_of = self._means.name_of
        for each in self._plan.refused:
            if request is not None and not each.after:
                request = without(each.place, request, each.chosen, name_of)
        if request is None and isinstance(self._request, m.MetadataRequest):
            request = self._request.copy(topics=[])  # what it tells of brokers is told
        for place, chosen in self._plan.hidden:
            if request is not None:
                request = without(place, request, chosen, name_of)
        return request

    def _nothing_left(self) -> Response:
        if isinstance(self._request, m.ProduceRequest) and not self._request.acks:
            return DISCONNECT  # all that Kafka tells of a failure where no reply is awaited
        if not self._refused:
            assert isinstance(self._request, m.FetchRequest)
            self._plan.reply_delay_ms += self._request.max_wait_ms
        response: Message = m.response_class(self._context.api_key)()
        if isinstance(response, m.ShareFetchResponse | m.ShareAcknowledgeResponse):
            response.acquisition_lock_timeout_ms = self._lock_duration_ms()
        return response

    def _lock_duration_ms(self) -> int:
        """Every answer about partitions of a share group tells it."""
        assert isinstance(self._request, m.ShareFetchRequest | m.ShareAcknowledgeRequest)
        group_id = self._request.group_id or ""
        return self._context.parts.shares.partitions.settings(group_id).lock_duration_ms

    def _done(self, executed: Pending[Response]) -> None:
        self._executed = None
        error = executed.error()
        if error is not None:
            self._respond(self._means.route.failed(self._context, error))
        else:
            self._respond(executed.result())

    # -- answering

    def _respond(self, response: Response) -> None:
        if isinstance(response, SlicedResponse):
            response = response.decoded()
        if isinstance(response, Message):
            for each, refused in self._refused:
                merge(each.place, response, refused, after=each.after)
            if self._refused:
                self._name_leaders(response)
            for chosen in self._plan.corrupted:
                _corrupt(response, chosen, self._means.name_of)
            if self._plan.throttle_ms and hasattr(response, "throttle_time_ms"):
                response.throttle_time_ms = max(self._plan.throttle_ms, response.throttle_time_ms)
        self._later(self._plan.reply_delay_ms, lambda: self._send(response))

    def _name_leaders(self, response: Message) -> None:
        context = self._context
        hints = LeaderHints(context.parts.metadata.image, context.listener_name)
        name_leaders(response, context.api_version, hints, self._means.name_of)

    def _send(self, response: Response) -> None:
        plan = self._plan
        if response is NO_REPLY:
            self._outcome.complete(response)
        elif plan.drops_reply is not None:
            self._lose(plan.drops_reply)
        elif plan.cut_at is not None and isinstance(response, Message):
            self._means.cut[self._context] = self._beginning(response, plan.cut_at)
            self._outcome.complete(DISCONNECT)
        else:
            self._outcome.complete(response)

    def _lose(self, how: str) -> None:
        if how == CLOSE:
            self._outcome.complete(DISCONNECT)

    def _beginning(self, response: Message, at: int) -> bytes:
        context = self._context
        parts = encode_response(
            context.api_key, context.api_version, context.correlation_id, response
        )
        frame = b"".join(part.read() if type(part) is FileSlice else part for part in parts)
        return frame[: len(frame) // 2 if at < 0 else min(at, len(frame) - 1)]


def _corrupt(response: Message, chosen: Chosen, name_of: NameOf) -> None:
    if not isinstance(response, m.FetchResponse | m.ShareFetchResponse):
        return
    for topic in response.responses:
        name = topic_of(topic, name_of)
        for partition in topic.partitions:
            if partition.records and chosen(Entry(name, partition.partition_index)):
                partition.records = _with_wrong_crc(partition.records)


def _with_wrong_crc(records: Records) -> Records:
    pieces = records if isinstance(records, list) else [records]
    data = bytearray(
        b"".join(
            piece if isinstance(piece, bytes | bytearray | memoryview) else piece.read()
            for piece in pieces
        )
    )
    if len(data) > CRC_POSITION:
        data[CRC_POSITION] ^= 1
    return bytes(data)
