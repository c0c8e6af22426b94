"""Whose quotas bind the requests of a connection, and which requests may go past the steps.

A connection's requests are nearly all of one client: who that is, and what binds it, is kept until
another one asks or quotas change. What every request passes is in `connection.py`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from kwire.network.buffers import BufferPool
from kwire.security.authorizer import ANONYMOUS
from kwire.server.context import RequestContext
from kwire.server.plain_requests import PlainRequests
from kwire.server.replying_connection import ReplyingConnection
from kwire.server.request_steps import RequestSteps, plain_allowed
from kwire.server.unbound_client import UnboundClients
from kwire.server.watched_requests import WatchedRequests
from kwire.turn_budget import TurnBudget

if TYPE_CHECKING:
    from kwire.quota.client_quotas import ClientRates, KnownClients
    from kwire.quota.sensor import Sensor

NOBODY = "\udfff"
"""No client id: there is no such UTF-8."""


class BoundConnection(ReplyingConnection):
    """See the module. `rates` are what binds the client of the newest request, `consumer` the one
    of its reads; `plain_allowed` says whether requests may go past both steps, `holds_reads`
    whether a read has to look at `is_measured` and `consumer`."""

    __slots__ = (
        "_by_time",
        "_client_id",
        "_known_clients",
        "_passes_arrival",
        "_plain",
        "_producer",
        "_roads",
        "_steps",
        "_unbound",
        "_watched",
        "consumer",
        "holds_reads",
        "is_authenticated",
        "is_measured",
        "is_read",
        "plain_allowed",
        "principal",
        "rates",
        "turn_s",
    )

    def __init__(
        self,
        pool: BufferPool,
        frame_bytes_max: int,
        loop: asyncio.AbstractEventLoop,
        turns: TurnBudget,
        steps: RequestSteps,
        plain: PlainRequests,
    ) -> None:
        super().__init__(pool, frame_bytes_max, loop, turns)
        self._steps = steps
        self._plain = plain
        self.principal = ANONYMOUS
        self.is_authenticated = True
        self.turn_s = 0.0
        self.plain_allowed = plain_allowed(steps.inputs, True)
        """Whether requests may go past the arrival and the response step."""
        self.rates: ClientRates | None = None
        """What binds the client of the newest request, and each of them by itself."""
        self._producer: Sensor | None = None
        self.consumer: Sensor | None = None
        self._by_time: Sensor | None = None
        self._client_id: str | None = NOBODY
        """Whose rates those are, as long as they hold for certain."""
        self._known_clients: KnownClients | None = None
        """All of them, where nothing but quotas is attached to the arrival step."""
        self._unbound: UnboundClients | None = None
        self._roads: PlainRequests | UnboundClients | None = None
        """Plain roads: all of them, those of clients that quotas do not hold back where nothing
        else is in the way, or none."""
        self._passes_arrival = True
        """Whether nothing is attached to the arrival step but quotas."""
        self._watched = WatchedRequests(steps, loop)
        self.is_read = self._watched.is_read
        self.is_measured = self.holds_reads = False

    # -- who may go past the steps

    def set_principal(self, principal: str, is_authenticated: bool) -> None:
        """What authentication has found out, or that it is still to come."""
        self.principal = principal
        self.is_authenticated = is_authenticated
        self.recompute_plain()

    def recompute_plain(self) -> None:
        """An input of `plain_allowed` has changed, or who the client is."""
        self._watched.forget()
        self._forget_clients()
        steps = self._steps
        self._passes_arrival = self.is_authenticated and not steps.has_hooks
        if steps.quotas is not None and self._passes_arrival:
            self._known_clients = known = steps.quotas.known_clients(self.principal)
            if plain_allowed(steps.inputs._replace(has_quotas=False), True):
                self._roads = self._unbound = UnboundClients(self._plain, known)
        self.plain_allowed = plain_allowed(steps.inputs, self.is_authenticated)
        if self.plain_allowed:
            self._roads = self._plain

    def _forget_clients(self) -> None:
        """Nobody is asked for before it is known who that is, or ever."""
        self._keep_nothing()
        self._known_clients = self._unbound = self._roads = None
        self._bound_by(None)

    def _keep_nothing(self) -> None:
        """Nobody has to tell this connection that quotas have changed."""
        self._client_id = NOBODY
        if (known := self._known_clients) is not None:
            known.keepers.pop(self, None)
            if self._unbound is not None:
                self._unbound.forget_client()
                known.keepers.pop(self._unbound, None)

    def _measure(self, rates: ClientRates | None, context: RequestContext, size_bytes: int) -> None:
        self.is_measured = self.holds_reads = True
        self._watched.counts(rates, context, context.api_key, size_bytes, self.turn_s)

    def _measured(self) -> None:
        """The requests of this turn are executed."""
        self.is_measured = False
        self.holds_reads = self.consumer is not None
        if self._watched.begun_ns:
            self._watched.lap(self.turn_s)

    def _rates_of(self, client_id: str | None) -> ClientRates | None:
        quotas = self._steps.quotas
        if quotas is None:
            return None  # they went behind the end of this connection, whose requests go on
        return quotas.client(self.principal, client_id, int(self.turn_s * 1000))

    def _meets(self, known: KnownClients, client_id: str | None) -> bool:
        """The next request is of another client than the one before: find what binds it."""
        try:
            rates = known[client_id]
        except KeyError:
            rates = self._rates_of(client_id)
        self._bound_by(rates)
        if not self._closed:
            self._client_id = client_id
            known.keepers[self] = None
        return True

    def forget_client(self) -> None:
        """See KeepsRates."""
        self._client_id = NOBODY

    def _bound_by(self, rates: ClientRates | None) -> None:
        """The next request is of a client with these rates."""
        if rates is not self.rates:
            if self._watched.begun_ns:
                self._watched.lap(self.turn_s)
            self.rates = rates
            self._producer = self.consumer = self._by_time = None
            if rates is not None:
                self._producer, self.consumer = rates.producer, rates.consumer
                self._by_time = rates.request
            self.holds_reads = self.is_measured or self.consumer is not None
