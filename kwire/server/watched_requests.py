"""The requests of one connection that pass the arrival and the response step, in between.

A connection whose requests are all plain has none, and asks only whether `open` is empty.

Client quotas are charged here. Where a request is not within them for certain, what it used is
counted when its response is there, as Apache Kafka 4.4 does; the longest of the waits stands in the
response, and the connection runs nothing meanwhile (KIP-219):

    producer_byte_rate    the size of a Produce
    consumer_byte_rate    the size of the response to a consumer's Fetch, which is asked for before
                          it is sent (`charge_read`): over the quota nothing of it is
    request_percentage    the time that the requests of a connection keep the loop busy, from the
                          arrival of one until all that came with it are executed, encoded and
                          written where they are answered at once (of a client that uses little,
                          of a sample), and of all their slices until their answer is encoded.
                          Not of what nodes ask of each other, nor of acks=0

A response that has a throttle time of its own (the controller's, for mutations) counts as well.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, TypeGuard

from kwire.network.frames import SIZE_PREFIX_BYTES
from kwire.pending import Pending
from kwire.protocol.api_keys import MUTATION_APIS, NODE_APIS, VERIFICATION_FROM, ApiKey
from kwire.protocol.structs import Struct
from kwire.server.arrival import Arrival, Refusal, arrive
from kwire.server.context import NO_REPLY, RequestContext, Response
from kwire.server.dispatch import Route
from kwire.server.request_steps import RequestSteps
from kwire.server.response import Answered, error_counts, responded
from kwire.server.slice_time import PERCENT_PER_NS, SliceTime
from kwire.server.sliced_response import SlicedResponse
from kwire.server.slots import Buffers

if TYPE_CHECKING:
    from kwire.quota.client_quotas import ClientRates
    from kwire.quota.sensor import Sensor
    from kwire.slices import Slices

PRODUCE = int(ApiKey.PRODUCE)
EXEMPT = NODE_APIS | {
    ApiKey.FETCH,
    ApiKey.FETCH_SNAPSHOT,
    ApiKey.CONTROLLER_REGISTRATION,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS,
    ApiKey.UPDATE_RAFT_VOTER,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.SASL_HANDSHAKE,
    ApiKey.SASL_AUTHENTICATE,
}
"""What nodes ask of each other, some of it among others, and what tells who somebody is. A
consumer's Fetch says that it is one."""
SAMPLE_MAX = 127
"""Of a client that uses less than half of its time one in so many requests is measured, and counts
for all of them; of one whose requests take long, one in fewer."""
SAMPLE_SHARE = 8
"""All that one stands for takes no more than this part of what is left to the half: nobody waits
for what was not measured."""
NO_ARRIVAL = Arrival(-1, -1, "", None, "", "", 0, 0.0)


class Watched:
    """One request that has arrived. `executed_s` is 0 until its handler has returned.

    Where the quotas of its client are to be asked for, `rates` has them; `wait_ms` is what the
    client has to wait for it, -1 before it is charged. `slices` measures those it is done in.
    """

    __slots__ = ("arrival", "executed_s", "rates", "request_bytes", "slices", "wait_ms")

    def __init__(self, arrival: Arrival, rates: ClientRates | None, request_bytes: int) -> None:
        self.arrival = arrival
        self.executed_s = 0.0
        self.rates = rates
        self.request_bytes = request_bytes
        self.slices: SliceTime | None = None
        self.wait_ms = -1


class WatchedRequests:
    """See the module. `open` are those without a response yet. Since `begun_ns` (0: not now)
    requests keep the loop busy. `cut` is what is sent of a reply before the connection is
    closed."""

    __slots__ = (
        "_is_exempt",
        "_request",
        "_steps",
        "_ticks_ns",
        "_time",
        "_weight",
        "begun_ns",
        "cut",
        "open",
    )

    def __init__(self, steps: RequestSteps, loop: asyncio.AbstractEventLoop) -> None:
        self._steps = steps
        self._time = loop.time
        self._ticks_ns = steps.ticks_ns
        self.open: dict[RequestContext, Watched] = {}
        self.cut: dict[RequestContext | None, bytes] = {}
        self._request: Sensor | None = None
        """Whose time is measured."""
        self.begun_ns = 0
        self._is_exempt = False
        self._weight = 1

    def forget(self) -> None:
        """Who the client is has changed, or what there is of quotas."""
        self._request = None
        self.begun_ns = 0

    # -- the arrival step

    def arrives(
        self, context: RequestContext, body: memoryview, is_authenticated: bool
    ) -> Refusal | None:
        """None when the request is to be executed. Its quotas are asked for before (`counts`)."""
        if self._steps.tap is not None:
            self._steps.tap.arrived(context, body)
        request_bytes = len(body)
        arrival = Arrival(
            context.api_key,
            context.api_version,
            context.principal,
            context.client_id,
            context.client_host,
            context.listener_name,
            request_bytes,
            self._time(),
        )
        watched = self.open.get(context)
        if watched is None:
            self.open[context] = Watched(arrival, None, request_bytes)
        else:
            watched.arrival = arrival
        return arrive(arrival, is_authenticated, self._steps.arrival_hooks)

    def faulted(
        self, route: Route, context: RequestContext, body: memoryview, offset: int
    ) -> Pending[Response] | None:
        """What comes of a request that a fault on command meets; None where none does."""
        faults = self._steps.faults
        return None if faults is None else faults.begin(route, context, body, offset, self.cut)

    def counts(
        self,
        rates: ClientRates | None,
        context: RequestContext,
        api_key: int,
        request_bytes: int,
        now_s: float,
    ) -> None:
        """Count what a request uses, where that is within all quotas for certain; it becomes one
        of `open` where they are to be asked for. `now_s` is the time of its turn of the loop."""
        if rates is None:
            if api_key in MUTATION_APIS:
                self.asks(None, context, request_bytes)
            return
        request, is_open = rates.request, False
        if request is not None:
            if self.begun_ns:
                self.lap(now_s)
            if request.skipped:
                request.skipped -= 1
            else:
                is_open = not self._begin(request, context)
        if api_key == PRODUCE:
            producer = rates.producer
            if producer is not None and not is_open:
                is_open = not producer.count(request_bytes, now_s)
        elif api_key in MUTATION_APIS and not is_open:
            self.asks(None, context, request_bytes)  # whether the controller makes it wait
        if is_open:
            self.asks(rates, context, request_bytes)

    def asks(self, rates: ClientRates | None, context: RequestContext, request_bytes: int) -> None:
        """Ask at the request's response how long its client has to wait."""
        self.open[context] = Watched(NO_ARRIVAL, rates, request_bytes)

    def measured(self, slices: Slices, rates: ClientRates, context: RequestContext) -> Slices:
        """Slices that count for the client of a request, whatever sample is measured else; what it
        has to wait is asked for at the response."""
        request, watched = rates.request, self.open.get(context)
        if request is None or (context.api_key != ApiKey.FETCH and is_exempt(context)):
            return slices
        if watched is None:
            self.open[context] = watched = Watched(NO_ARRIVAL, rates, 0)
        elif watched.rates is None:
            watched.rates = rates
            watched.request_bytes = 0  # what came is counted
        if watched.slices is None:
            watched.slices = SliceTime(request, self._ticks_ns, self._time)
        return slices.measured_by(watched.slices)

    def _begin(self, request: Sensor, context: RequestContext) -> bool:
        """Begin to count the time of a request; whether nobody has to ask for it at its end."""
        is_quiet = request.pending <= request.quiet_room
        self._request = request
        self._weight = SAMPLE_MAX if is_quiet else 1
        api_key = context.api_key
        self._is_exempt = api_key in EXEMPT and is_exempt(context)
        self.begun_ns = self._ticks_ns()
        return is_quiet

    def executed(self, context: RequestContext) -> None:
        """The handler has returned, its response is still to come."""
        watched = self.open.get(context)
        if watched is not None and watched.arrival is not NO_ARRIVAL:
            watched.executed_s = self._time()

    def is_read(self, context: RequestContext) -> bool:
        """The newest request is a consumer's Fetch, so that its time counts: whether its client is
        to be asked to wait for that."""
        self._is_exempt = False
        return context in self.open

    # -- what is used of the loop's time

    def lap(self, now_s: float) -> None:
        """Count the time until now, and ask for nothing: the requests of this turn are executed,
        and answered where that is possible, or the next one is another's turn."""
        request = self._request
        if request is not None:
            spent = self._spent(request)
            request.skipped = self._weight - 1
            if not self._is_exempt and not request.count(spent, now_s):
                request.record(spent, int(now_s * 1000))
        self.begun_ns = 0

    def _spent(self, request: Sensor) -> float:
        """The time until now, in percent of a second, times the requests that it stands for."""
        spent = (self._ticks_ns() - self.begun_ns) * PERCENT_PER_NS
        weight = self._weight
        if weight > 1:
            room = (request.quiet_room - request.pending) / SAMPLE_SHARE
            if spent * weight > room:
                self._weight = weight = max(1, int(room / spent)) if spent else 1
        return spent * weight

    def _charge_time(self, watched: Watched, request: Sensor | None, now_ms: int) -> int:
        """Count the time until now: for how many ms the client has to wait."""
        if request is None:
            return 0
        if watched.slices is not None:
            watched.slices.lap()
        spent = 0.0
        if self.begun_ns:
            spent = self._spent(request)
            self.begun_ns = self._ticks_ns()
        return request.record_and_wait_ms(spent, now_ms)

    # -- the response step

    def charge_read(
        self, rates: ClientRates, context: RequestContext, response_bytes: int, now_s: float
    ) -> int:
        """A consumer's Fetch is about to be answered: for how many ms its client has to wait.

        Above 0 nothing that was read may be sent, and nothing is counted of it.
        """
        watched, consumer = self.open.get(context), rates.consumer
        now_ms, time_ms, bytes_ms = int(now_s * 1000), 0, 0
        if watched is not None:
            time_ms = self._charge_time(watched, rates.request, now_ms)
        if consumer is not None:
            bytes_ms = consumer.record_and_wait_ms(response_bytes, now_ms)
            if bytes_ms or time_ms:
                consumer.record(-response_bytes, now_ms)
        wait_ms = self._throttled(consumer, bytes_ms, rates.request, time_ms)
        if watched is not None:
            watched.wait_ms = wait_ms
        return wait_ms

    def charge(self, context: RequestContext, response: Response) -> int:
        """Count what the request used: for how many ms nothing more is to be run. The response is
        told of that."""
        if response is NO_REPLY:
            self._is_exempt = True
        watched = self.open.get(context)
        if watched is None:
            return 0
        if watched.wait_ms < 0:
            watched.wait_ms = 0
            if watched.rates is not None:
                watched.wait_ms = self._charge(watched, watched.rates, context, response)
        if tells_throttle_time(response):
            watched.wait_ms = max(watched.wait_ms, response.throttle_time_ms)
            response.throttle_time_ms = watched.wait_ms
        return watched.wait_ms

    def _charge(
        self, watched: Watched, rates: ClientRates, context: RequestContext, response: Response
    ) -> int:
        now_ms = int(self._time() * 1000)
        producer, bytes_ms, time_ms = rates.producer, 0, 0
        if context.api_key == PRODUCE and producer is not None:
            bytes_ms = producer.record_and_wait_ms(watched.request_bytes, now_ms)
        if response is not NO_REPLY and not is_exempt(context):
            time_ms = self._charge_time(watched, rates.request, now_ms)
        return self._throttled(producer, bytes_ms, rates.request, time_ms)

    @staticmethod
    def _throttled(
        by_bytes: Sensor | None, bytes_ms: int, by_time: Sensor | None, time_ms: int
    ) -> int:
        """The longer of two waits, which its sensor is told of."""
        sensor = by_bytes if bytes_ms > time_ms else by_time
        wait_ms = max(bytes_ms, time_ms)
        if wait_ms and sensor is not None:
            sensor.throttled(wait_ms)
        return wait_ms

    def responds(self, context: RequestContext, response: Response, parts: Buffers | None) -> None:
        """Everything is done but sending `parts`, None where nothing is sent."""
        watched = self.open.pop(context, None)
        if watched is not None and watched.slices is not None:
            watched.slices.end()
        hooks = self._steps.response_hooks
        if self._steps.tap is not None and watched is not None:
            sent = 0 if parts is None else sum(map(len, parts)) - SIZE_PREFIX_BYTES
            whole = response.decoded() if isinstance(response, SlicedResponse) else response
            self._steps.tap.answered(context, whole, sent)
        if watched is None or not hooks or watched.arrival is NO_ARRIVAL:
            return
        now_s = self._time()
        answered = Answered(
            _errors_of(response),
            0 if parts is None else sum(map(len, parts)) - SIZE_PREFIX_BYTES,
            max(watched.wait_ms, 0),
            watched.executed_s or now_s,
            now_s,
        )
        responded(watched.arrival, answered, hooks)


def _errors_of(response: Response) -> Mapping[int, int]:
    if isinstance(response, SlicedResponse):
        return response.errors + Counter(error_counts(response.message))
    return error_counts(response) if isinstance(response, Struct) else {}


class TellsThrottleTime(Protocol):
    """A response that can say how long its client has to wait."""

    throttle_time_ms: int


def tells_throttle_time(response: Response) -> TypeGuard[TellsThrottleTime]:
    """Nearly all responses do."""
    return hasattr(response, "throttle_time_ms")


def is_exempt(context: RequestContext) -> bool:
    """Whether a request is held to no quota of time."""
    if context.api_key == ApiKey.ADD_PARTITIONS_TO_TXN:
        return context.api_version >= VERIFICATION_FROM
    return context.api_key in EXEMPT
