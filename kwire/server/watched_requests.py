"""The requests of one connection that pass the arrival and the response step, in between.

A connection whose requests are all plain has none, and asks only whether `open` is empty.

Client quotas are charged here. What a request used is counted when its response is there, as
Apache Kafka 4.4 does; the longest of the waits stands in the response, and the connection runs
nothing meanwhile (KIP-219):

    producer_byte_rate    the size of a Produce
    consumer_byte_rate    the size of the response to a consumer's Fetch, which is asked for before
                          it is sent (`charge_read`): over the quota nothing of it is
    request_percentage    the time that the request kept the loop busy until its response was
                          there. What encoding it takes is counted too, and first asked for with
                          the next request. Not of what nodes ask of each other, nor of acks=0

A response that has a throttle time of its own (the controller's, for mutations) counts as well.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol, TypeGuard

from kwire.network.frames import SIZE_PREFIX_BYTES
from kwire.protocol.api_keys import API_KEYS, ApiKey
from kwire.protocol.structs import Struct
from kwire.server.arrival import Arrival, Refusal, arrive
from kwire.server.context import NO_REPLY, RequestContext
from kwire.server.dispatch import Response
from kwire.server.request_steps import RequestSteps
from kwire.server.response import Answered, error_counts, responded
from kwire.server.slots import Buffers

if TYPE_CHECKING:
    from kwire.quota.client_quotas import ClientQuotas, ClientRates
    from kwire.quota.sensor import Sensor

PRODUCE, FETCH = int(ApiKey.PRODUCE), int(ApiKey.FETCH)
EXEMPT = frozenset(
    info.key
    for info in API_KEYS.values()
    if info.cluster_action and info.key not in (ApiKey.DESCRIBE_QUORUM, ApiKey.UPDATE_FEATURES)
) | {
    ApiKey.FETCH,
    ApiKey.FETCH_SNAPSHOT,
    ApiKey.CONTROLLER_REGISTRATION,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS,
    ApiKey.UPDATE_RAFT_VOTER,
}
"""What nodes ask of each other. A consumer's Fetch is charged by its handler."""
MUTATIONS = frozenset({ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.CREATE_PARTITIONS})
"""What the controller's quota of mutations may make a client wait for."""
VERIFICATION_FROM = 4
"""From this version on brokers alone ask AddPartitionsToTxn."""
PERCENT_PER_NS = 100 / 1e9
NO_ARRIVAL = Arrival(-1, -1, "", None, "", "", 0, 0.0)


class Watched:
    """One request that has arrived. `executed_s` is 0 until its handler has returned.

    Of `rates` it has used the loop for `spent_ns` so far, and since `begun_ns` (0: not now).
    `wait_ms` is what its client has to wait for it, -1 before it is charged. `is_read`: it is a
    consumer's Fetch.
    """

    __slots__ = (
        "arrival",
        "begun_ns",
        "executed_s",
        "is_read",
        "rates",
        "request_bytes",
        "spent_ns",
        "wait_ms",
    )

    def __init__(self, arrival: Arrival, rates: ClientRates | None, request_bytes: int) -> None:
        self.arrival = arrival
        self.executed_s = 0.0
        self.rates = rates
        self.request_bytes = request_bytes
        self.spent_ns = 0
        self.begun_ns = 0
        self.is_read = False
        self.wait_ms = -1


class WatchedRequests:
    """See the module. `open` are those without a response yet; `rates` are what binds the client
    of the newest request."""

    __slots__ = ("_client_id", "_generation", "_loop", "_steps", "open", "rates")

    def __init__(self, steps: RequestSteps, loop: asyncio.AbstractEventLoop) -> None:
        self._steps = steps
        self._loop = loop
        self.open: dict[RequestContext, Watched] = {}
        self.rates: ClientRates | None = None
        self._client_id: str | None = None
        self._generation = -1

    def forget_rates(self) -> None:
        """Who the client is has changed, or what there is of quotas."""
        self.rates = None
        self._generation = -1

    def arrives(
        self, context: RequestContext, request_bytes: int, is_authenticated: bool
    ) -> Refusal | None:
        """The arrival step: None when the request is to be executed."""
        steps = self._steps
        quotas = steps.quotas
        if quotas is not None and (
            context.client_id != self._client_id or quotas.generation != self._generation
        ):
            self._find_rates(quotas, context)
        rates = self.rates
        if is_authenticated and not steps.has_hooks:
            if self._is_charged(context.api_key, rates):
                self.open[context] = watched = Watched(NO_ARRIVAL, rates, request_bytes)
                if rates is not None and rates.request is not None:
                    watched.begun_ns = steps.ticks_ns()
            return None
        arrival = Arrival(
            context.api_key,
            context.api_version,
            context.principal,
            context.client_id,
            context.client_host,
            context.listener_name,
            request_bytes,
            self._loop.time(),
        )
        self.open[context] = watched = Watched(arrival, rates, request_bytes)
        if rates is not None and rates.request is not None:
            watched.begun_ns = steps.ticks_ns()
        return arrive(arrival, is_authenticated, steps.arrival_hooks)

    def _find_rates(self, quotas: ClientQuotas, context: RequestContext) -> None:
        self._client_id = context.client_id
        now_ms = int(self._loop.time() * 1000)
        self.rates = quotas.client(context.principal, context.client_id, now_ms)
        self._generation = quotas.generation

    @staticmethod
    def _is_charged(api_key: int, rates: ClientRates | None) -> bool:
        if rates is None:
            return api_key in MUTATIONS
        if rates.request is not None:
            return True
        if api_key == PRODUCE:
            return rates.producer is not None
        return (api_key == FETCH and rates.consumer is not None) or api_key in MUTATIONS

    def executed(self, context: RequestContext) -> None:
        """The handler has returned, its response is still to come."""
        watched = self.open.get(context)
        if watched is not None:
            if self._steps.has_hooks:
                watched.executed_s = self._loop.time()
            if watched.begun_ns:
                watched.spent_ns += self._steps.ticks_ns() - watched.begun_ns
                watched.begun_ns = 0

    def charge_read(self, context: RequestContext, response_bytes: int) -> int:
        """A consumer's Fetch is about to be answered: for how many ms its client has to wait.

        Above 0 nothing that was read may be sent, and nothing is counted of it.
        """
        watched = self.open.get(context)
        if watched is None or watched.rates is None or watched.wait_ms >= 0:
            return 0
        rates = watched.rates
        now_ms = int(self._loop.time() * 1000)
        time_ms = self._charge_time(watched, now_ms)
        consumer, bytes_ms = rates.consumer, 0
        if consumer is not None:
            bytes_ms = consumer.record_and_wait_ms(response_bytes, now_ms)
            if bytes_ms or time_ms:
                consumer.record(-response_bytes, now_ms)
        watched.is_read = True
        watched.wait_ms = wait_ms = max(bytes_ms, time_ms)
        if wait_ms:
            sensor = consumer if bytes_ms > time_ms else rates.request
            assert sensor is not None
            sensor.throttled(wait_ms)
        return wait_ms

    def charge(self, context: RequestContext, response: Response) -> int:
        """Count what the request used: for how many ms nothing more is to be run. The response is
        told of that."""
        watched = self.open.get(context)
        if watched is None:
            return 0
        wait_ms = watched.wait_ms
        if wait_ms < 0:
            wait_ms = 0
            if watched.rates is not None:
                wait_ms = self._charge(watched, watched.rates, context, response)
            watched.wait_ms = wait_ms
        if tells_throttle_time(response):
            wait_ms = max(wait_ms, response.throttle_time_ms)
            response.throttle_time_ms = wait_ms
        return wait_ms

    def _charge(
        self, watched: Watched, rates: ClientRates, context: RequestContext, response: Response
    ) -> int:
        now_ms = int(self._loop.time() * 1000)
        if context.api_key == PRODUCE:
            wait_ms = 0
            if rates.producer is not None:
                wait_ms = rates.producer.record_and_wait_ms(watched.request_bytes, now_ms)
            if rates.request is not None and response is not NO_REPLY:
                time_ms = self._charge_time(watched, now_ms)
                if time_ms >= wait_ms:
                    if time_ms:
                        rates.request.throttled(time_ms)
                    return time_ms
            if wait_ms and rates.producer is not None:
                rates.producer.throttled(wait_ms)
            return wait_ms
        if rates.request is None or is_exempt(context):
            return 0
        wait_ms = self._charge_time(watched, now_ms)
        if wait_ms:
            rates.request.throttled(wait_ms)
        return wait_ms

    def _charge_time(self, watched: Watched, now_ms: int) -> int:
        request = None if watched.rates is None else watched.rates.request
        if request is None:
            return 0
        spent_ns, watched.spent_ns = watched.spent_ns, 0
        if watched.begun_ns:
            now_ns = self._steps.ticks_ns()
            spent_ns += now_ns - watched.begun_ns
            watched.begun_ns = now_ns
        return request.record_and_wait_ms(spent_ns * PERCENT_PER_NS, now_ms)

    def encoding(self, context: RequestContext) -> None:
        """The response of a request that waited for it is about to be encoded."""
        watched = self.open.get(context)
        if watched is not None and not watched.begun_ns and watched.rates is not None:
            watched.begun_ns = self._steps.ticks_ns() if watched.rates.request is not None else 0

    def responds(self, context: RequestContext, response: Response, parts: Buffers | None) -> None:
        """The response step: everything is done but sending `parts`, None where nothing is sent."""
        watched = self.open.pop(context, None)
        if watched is None:
            return
        rates = watched.rates
        if rates is not None and rates.request is not None and parts is not None:
            self._count_encoding(watched, rates.request, context)
        if not self._steps.response_hooks or watched.arrival is NO_ARRIVAL:
            return
        now_s = self._loop.time()
        answered = Answered(
            error_counts(response) if isinstance(response, Struct) else {},
            0 if parts is None else sum(map(len, parts)) - SIZE_PREFIX_BYTES,
            max(watched.wait_ms, 0),
            watched.executed_s or now_s,
            now_s,
        )
        responded(watched.arrival, answered, self._steps.response_hooks)

    def _count_encoding(self, watched: Watched, request: Sensor, context: RequestContext) -> None:
        if watched.begun_ns and (watched.is_read or not is_exempt(context)):
            spent_ns = self._steps.ticks_ns() - watched.begun_ns
            request.record(spent_ns * PERCENT_PER_NS, int(self._loop.time() * 1000))


class TellsThrottleTime(Protocol):
    """A response that can say how long its client has to wait."""

    throttle_time_ms: int


def tells_throttle_time(response: Response) -> TypeGuard[TellsThrottleTime]:
    """Nearly all responses do."""
    return hasattr(response, "throttle_time_ms")


def is_exempt(context: RequestContext) -> bool:
    """Whether only nodes ask this, of each other."""
    key = context.api_key
    return key in EXEMPT or (
        key == ApiKey.ADD_PARTITIONS_TO_TXN and context.api_version >= VERIFICATION_FROM
    )
