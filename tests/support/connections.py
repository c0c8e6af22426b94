"""A broker connection without a network: a transport that records, handlers that wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kwire.network.buffers import BufferPool
from kwire.pending import Pending
from kwire.protocol import frame
from kwire.protocol import messages as m
from kwire.protocol.errors import MalformedError
from kwire.server.connection import BrokerConnection
from kwire.server.connection_setup import ConnectionSetup
from kwire.server.context import RequestContext
from kwire.server.dispatch import Route
from kwire.server.request_counts import RequestCounts
from kwire.server.request_steps import RequestSteps
from tests.support.parts import made_parts


class RecordingTransport:
    """Keeps what is written; reading and closing are flags."""

    def __init__(self, peer: tuple[Any, ...] = ("127.0.0.1", 12345)) -> None:
        self.peer = peer
        self.written = bytearray()
        self.reading = True
        self.closed = False
        self.limits: tuple[int, int] = (0, 0)

    def get_extra_info(self, name: str) -> Any:
        return self.peer if name == "peername" else None

    def set_write_buffer_limits(self, high: int, low: int) -> None:
        self.limits = (high, low)

    def writelines(self, parts: Any) -> None:
        assert not self.closed
        for part in parts:
            self.written += part

    def pause_reading(self) -> None:
        assert self.reading
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.reading
        self.reading = True

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    abort = close


class FakeTimer:
    """Runs when the test says so."""

    def __init__(self, when: float, callback: Callable[[], None]) -> None:
        self.when = when
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class FakeLoop:
    """A clock that stands until `now_s` is set; what is to be done soon is done at once."""

    def __init__(self) -> None:
        self.timers: list[FakeTimer] = []
        self.now_s = 0.0

    def time(self) -> float:
        return self.now_s

    def call_soon(self, callback: Callable[[], None]) -> None:
        callback()

    def call_at(self, when: float, callback: Callable[[], None]) -> FakeTimer:
        self.timers.append(FakeTimer(when, callback))
        return self.timers[-1]


class TurningLoop(FakeLoop):
    """What is to be done soon is done in the next turn."""

    def __init__(self) -> None:
        super().__init__()
        self.soon: list[Callable[[], None]] = []

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.soon.append(callback)

    def turn(self) -> None:
        soon, self.soon = self.soon, []
        for callback in soon:
            callback()


class FakeDispatcher:
    """Answers by `answer(context, request)`, keeping the correlation ids of what was started."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.started: list[int] = []
        self.counts = {key: RequestCounts(key) for key in (0, 2, 3, 18)}

    def route(self, api_key: int, api_version: int) -> Route:
        if api_key not in self.counts:
            raise MalformedError(f"unknown API key {api_key}")
        return self.route_local(api_key)

    def known_route(self, api_key: int) -> Route | None:
        return None

    def route_local(self, api_key: int) -> Route:
        waits_for_writes = api_key not in (0, 3, 18)
        route = Route.of_api(api_key, self.execute, (), waits_for_writes=waits_for_writes)
        route.counts = self.counts[api_key]
        return route

    def execute(self, context: RequestContext, request: Any) -> Any:
        self.started.append(context.correlation_id)
        return self.answer(context, request)

    def failed(self, context: RequestContext, error: Exception) -> Any:
        raise error


class FakeListener:
    """The part of a Listener that a connection uses."""

    def __init__(self, answer: Any, steps: RequestSteps) -> None:
        self.loop = FakeLoop()
        self.dispatcher = FakeDispatcher(answer)
        self.events: list[str] = []
        self.setup = ConnectionSetup(
            loop=self.loop,  # type: ignore[arg-type]
            pool=BufferPool(),
            parts=made_parts(),
            listener_name="PLAINTEXT",
            dispatcher=self.dispatcher,  # type: ignore[arg-type]
            steps=steps,
            request_bytes_max=1 << 20,
            opened=self.opened,
            closed=self.closed,
        )

    def opened(self, connection: BrokerConnection) -> None:
        self.events.append("opened")

    def closed(self, connection: BrokerConnection) -> None:
        self.events.append("closed")


class ConnectionUnderTest:
    """A connection with its transport; `receive` feeds bytes as a loop does."""

    def __init__(self, answer: Any, steps: RequestSteps | None = None) -> None:
        self.steps = steps or RequestSteps()
        self.listener = FakeListener(answer, self.steps)
        self.transport = RecordingTransport()
        self.connection = BrokerConnection(self.listener.setup)
        self.steps.on_change(self.connection.recompute_plain)
        self.connection.connection_made(self.transport)  # type: ignore[arg-type]

    @property
    def started(self) -> list[int]:
        return self.listener.dispatcher.started

    def receive(self, data: bytes) -> None:
        """Feed bytes, in as many reads as the connection's buffers make of them."""
        view = memoryview(data)
        while view:
            buffer = memoryview(self.connection.get_buffer(-1))
            size = min(len(buffer), len(view))
            buffer[:size] = view[:size]
            del buffer
            view = view[size:]
            self.connection.buffer_updated(size)

    def answered(self) -> list[int]:
        """Correlation ids of the replies sent so far, in order."""
        ids, position = [], 0
        written = bytes(self.transport.written)
        while position < len(written):
            size = int.from_bytes(written[position : position + 4], "big")
            ids.append(int.from_bytes(written[position + 4 : position + 8], "big"))
            position += 4 + size
        return ids


def metadata_request(correlation_id: int) -> bytes:
    """A small request of an ordinary API."""
    request = m.MetadataRequest(topics=[])
    return b"".join(frame.encode_request(3, 9, correlation_id, "test", request))


def metadata_response() -> Any:
    return m.MetadataResponse(brokers=[], topics=[])


def list_offsets_request(correlation_id: int) -> bytes:
    """A request whose answer depends on the log."""
    request = m.ListOffsetsRequest(replica_id=-1, topics=[])
    return b"".join(frame.encode_request(2, 7, correlation_id, "test", request))


def list_offsets_response() -> Any:
    return m.ListOffsetsResponse(topics=[])


def produce_request(correlation_id: int, acks: int = -1) -> bytes:
    """A Produce without topics."""
    request = m.ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[])
    return b"".join(frame.encode_request(0, 9, correlation_id, "test", request))


def produce_response() -> Any:
    return m.ProduceResponse(responses=[])


class Waiting:
    """Handlers whose replies come when the test says so."""

    def __init__(self) -> None:
        self.pendings: dict[int, Pending[Any]] = {}
        self.cancelled: list[int] = []
        self.immediate: dict[int, Any] = {}
        self.effects_done: dict[int, bool] = {}

    def __call__(self, context: RequestContext, request: Any) -> Any:
        number = context.correlation_id
        if number in self.immediate:
            return self.immediate[number]
        pending: Pending[Any] = Pending(lambda: self.cancelled.append(number))
        self.pendings[number] = pending
        if context.api_key == 0 and self.effects_done.get(number, True):
            context.let_next_start()
        return pending

    def complete(self, number: int, response: Any) -> None:
        self.pendings.pop(number).complete(response)
