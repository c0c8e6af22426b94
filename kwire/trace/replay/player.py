"""Sends the requests of a trace in their order and compares the replies.

The lines of a trace are in the order in which things happened. A request is sent when its line is
reached; at the line of a reply this waits for the reply of now. So a request goes out after all
that was answered before it, and together with what was on its way beside it. Pauses are not
repeated.

Connections lead to the broker that stands for the recorded one, as far as that is known, and else
to the bootstrap address. Left out: logins, what brokers ask each other, what is not there whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from kwire.client.address import parse_addresses, shown
from kwire.client.connection import Connection, open_connection
from kwire.client.errors import ClientError
from kwire.client.settings import ConnectionSettings
from kwire.network.buffers import BufferPool
from kwire.protocol import messages as m
from kwire.protocol.api_keys import API_KEYS, NODE_APIS, ApiKey
from kwire.protocol.errors import EncodeError
from kwire.protocol.structs import Message, Request
from kwire.trace.error_counts import error_names
from kwire.trace.events import CLOSE, LOST, OPEN, REQUEST, RESPONSE, TRACE, Event
from kwire.trace.files import TraceError, TraceReader
from kwire.trace.json_values import JsonObject, number_of, objects_of, text_of
from kwire.trace.rendering import Unsendable, as_json, from_json
from kwire.trace.replay.differences import NOT_YET, aligned, differences
from kwire.trace.replay.identities import NODE, Identities

AGAIN_S = 0.05
SHOWN_OF_A_REPLY = 10
READY_S = 20.0
"""For so long a cluster may say that something is on its way."""
LOGINS = (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)


class Played(NamedTuple):
    """What has become of a trace; `reasons` why requests were left out, and how many."""

    sent: int
    compared: int
    different: int
    left_out: int
    reasons: dict[str, int]


class _Line:
    """One connection of the trace."""

    def __init__(self, broker: str) -> None:
        self.broker = broker
        self.opening: asyncio.Task[Connection] | None = None
        self.waiting: dict[int, asyncio.Task[Message]] = {}


class Player:
    """See the module. `tell(text)` says what differs."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        settings: ConnectionSettings,
        tell: Callable[[str], None],
    ) -> None:
        self._loop = loop
        self._settings = settings
        self._bootstrap = parse_addresses(settings.bootstrap)
        self._tell = tell
        self._pool = BufferPool()
        self._known = Identities()
        self._lines: dict[int, _Line] = {}
        self._requests: dict[asyncio.Task[Message], Request[Message]] = {}
        self._recorded_nodes: dict[str, int] = {}
        self._nodes: dict[int, tuple[str, int]] = {}
        self._kept_bytes = 0
        self._sent = self._compared = self._different = 0
        self._reasons: dict[str, int] = {}

    async def play(self, reader: TraceReader) -> Played:
        """Until the end of the trace. TraceError for one that cannot be played, ClientError where
        nobody is at the target."""
        try:
            for event in reader:
                if event.kind == TRACE:
                    self._check(reader, event)
                elif event.kind == OPEN:
                    self._lines[event.connection] = _Line(event.broker)
                elif event.kind == REQUEST:
                    await self._request(event)
                elif event.kind == RESPONSE:
                    await self._response(event)
                elif event.kind == CLOSE:
                    await self._close(event.connection)
                elif event.kind == LOST:
                    self._leave_out(event.note)
        finally:
            for number in list(self._lines):
                await self._close(number)
        left_out = sum(self._reasons.values())
        return Played(self._sent, self._compared, self._different, left_out, self._reasons)

    def _check(self, reader: TraceReader, event: Event) -> None:
        body = event.body or {}
        filters = body.get("filters")
        names = filters if isinstance(filters, dict) else {}
        others = [name for name in names if name != "client_id"]
        if others:
            raise TraceError(
                f"{reader.path}: holds a part of the traffic only ({', '.join(others)}); record "
                "without filters, or by client id alone, to replay"
            )
        self._kept_bytes = number_of(body, "kept_bytes")

    def _leave_out(self, why: str) -> None:
        self._reasons[why] = self._reasons.get(why, 0) + 1

    # -- requests

    async def _request(self, event: Event) -> None:
        line = self._lines.get(event.connection)
        if line is None:  # the trace began later than the connection
            line = self._lines[event.connection] = _Line("")
        try:
            request = self._built(event)
        except Unsendable as error:
            self._leave_out(f"{event.api or 'unknown'}: {error}")
            return
        if line.opening is None:
            line.opening = self._loop.create_task(self._open(line, event))
            try:
                await line.opening
            except ClientError:
                if self._sent == 0:
                    raise
        self._sent += 1
        if isinstance(request, m.ProduceRequest) and request.acks == 0:
            await self._send_only(line, request, event)
            return
        task = self._loop.create_task(self._ask(line, request, event))
        self._requests[task] = request
        line.waiting[event.correlation_id] = task
        await asyncio.sleep(0)  # it is written before the next one

    def _built(self, event: Event) -> Request[Message]:
        info = API_KEYS.get(event.api_key)
        if event.body is None or info is None:
            raise Unsendable("passed through as bytes")
        if info.key in LOGINS:
            raise Unsendable("a login")
        if info.key in NODE_APIS:
            raise Unsendable("asked by a broker")
        body = self._known.mapped(event.body)
        assert isinstance(body, dict)
        kind: type[Request[Message]] = m.request_class(event.api_key)
        if not kind.MIN_VERSION <= event.version <= kind.MAX_VERSION:
            raise Unsendable(f"version {event.version} is not known")
        request = from_json(kind, event.version, body)
        if isinstance(request, m.FetchRequest):
            if max(request.replica_id, request.replica_state.replica_id) >= 0:
                raise Unsendable("asked by a broker")
            for topic in request.topics or ():
                for partition in topic.partitions or ():
                    partition.current_leader_epoch = -1  # those of here are others
        assert isinstance(request, kind)
        return request

    async def _open(self, line: _Line, event: Event) -> Connection:
        client_id = (event.client_id or "").encode(errors="replace").decode()
        settings = self._settings._replace(client_id=client_id)
        recorded = self._recorded_nodes.get(line.broker)
        node = None if recorded is None else self._known.translated(NODE, recorded)
        place = self._nodes.get(node) if isinstance(node, int) else None
        places = [place] if place is not None else self._bootstrap
        for host, port in places[:-1]:
            try:
                return await open_connection(self._loop, self._pool, settings, host, port)
            except ClientError:
                pass  # the last one tells
        return await open_connection(self._loop, self._pool, settings, *places[-1])

    async def _ask(self, line: _Line, request: Request[Message], event: Event) -> Message:
        assert line.opening is not None
        connection = await line.opening
        self._check_version(connection, type(request), event)
        try:
            return await connection.call(request, event.version)
        except EncodeError as error:
            raise ClientError(f"cannot be sent: {error}") from None

    async def _send_only(self, line: _Line, request: Request[Message], event: Event) -> None:
        assert line.opening is not None
        try:
            connection = await line.opening
            self._check_version(connection, type(request), event)
            await connection.send_only(request, event.version)
        except ClientError as error:
            self._differs(event, [f"cannot be sent: {error}"])

    def _check_version(
        self, connection: Connection, kind: type[Request[Message]], event: Event
    ) -> None:
        offered = connection.offers(kind)
        if offered is None or not offered[0] <= event.version <= offered[1]:
            has = "it does not" if offered is None else f"it offers {offered[0]} to {offered[1]}"
            raise ClientError(f"version {event.version} is not offered: {has}")

    # -- replies

    async def _response(self, event: Event) -> None:
        line = self._lines.get(event.connection)
        task = None if line is None else line.waiting.pop(event.correlation_id, None)
        if line is None or task is None or event.body is None:
            return  # its request was left out
        try:
            response = await task
            response = await self._once_ready(line, event, task, response)
        except ClientError as error:
            self._requests.pop(task, None)
            self._compared += 1
            self._differs(event, [f"recorded a reply, got none: {error}"])
            return
        answered = as_json(response, event.version, self._kept_bytes)
        self._compare(event, event.body, answered, error_names(response))

    async def _once_ready(
        self, line: _Line, event: Event, task: asyncio.Task[Message], response: Message
    ) -> Message:
        """Ask again, as a client does, while it says that it is not ready and had been then."""
        deadline_s = self._loop.time() + READY_S
        request = self._requests.pop(task, None)
        while request is not None and self._loop.time() < deadline_s:
            errors = set(error_names(response))
            if not errors & NOT_YET or errors & NOT_YET & event.errors.keys():
                break
            await asyncio.sleep(AGAIN_S)
            response = await self._ask(line, request, event)
        return response

    def _compare(
        self, event: Event, recorded: JsonObject, answered: JsonObject, errors: dict[str, int]
    ) -> None:
        self._compared += 1
        mine, theirs = aligned(recorded, answered, self._known)
        self._known.learn(mine, theirs)
        self._learn_nodes(recorded, answered)
        if NOT_YET & event.errors.keys() and not errors:
            return  # it was not ready then, and is by now
        mine, theirs = aligned(recorded, answered, self._known)  # with what was learned here
        translated = self._known.mapped(mine)
        assert isinstance(translated, dict)
        assert isinstance(theirs, dict)
        found = list(differences(event.api, translated, theirs))
        if found:
            shown = [str(difference) for difference in found[:SHOWN_OF_A_REPLY]]
            if len(found) > SHOWN_OF_A_REPLY:
                shown.append(f"{len(found) - SHOWN_OF_A_REPLY} more")
            self._differs(event, shown)

    def _differs(self, event: Event, what: list[str]) -> None:
        self._different += 1
        who = event.client_id or "no client id"
        self._tell(
            f"{event.ms / 1000:.3f} s {event.api} v{event.version} of {who}, connection "
            f"{event.connection}, id {event.correlation_id}"
        )
        for text in what:
            self._tell(f"    {text}")

    def _learn_nodes(self, recorded: JsonObject, answered: JsonObject) -> None:
        for row in objects_of(recorded, "brokers"):
            address = shown(text_of(row, "host"), number_of(row, "port"))
            self._recorded_nodes[address] = number_of(row, "node_id", number_of(row, "broker_id"))
        for row in objects_of(answered, "brokers"):
            node = number_of(row, "node_id", number_of(row, "broker_id"))
            self._nodes[node] = text_of(row, "host"), number_of(row, "port")

    # -- the end of a connection

    async def _close(self, number: int) -> None:
        line = self._lines.pop(number, None)
        if line is None:
            return
        for task in line.waiting.values():
            self._requests.pop(task, None)
            task.cancel()
        # The trace has no reply to these: whatever comes of them is as good.
        await asyncio.gather(*line.waiting.values(), return_exceptions=True)
        if line.opening is None:
            return
        try:
            connection = await line.opening
        except ClientError:
            return
        connection.transport.close()  # what was written is still sent
