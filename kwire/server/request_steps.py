"""What is attached to the arrival and the response step, and which requests may go past them.

Nearly all connections have nothing to be looked at: no rule, nobody who watches, no authorizer, a
client that is authenticated where it has to be. Their flag `plain_allowed` says so, and every
request asks only this flag (where quotas alone stand in the way: `unbound_client.py`). It is
computed by `plain_allowed`, anew whenever one of its inputs changes:

    input                           changes by
    has_authorizer                  RequestSteps.image_published
    has_fault_rules                 RequestSteps.set_fault_rules, set_faults
    is_audited                      RequestSteps.set_audit
    has_quotas                      RequestSteps.set_throttles
    is_watched                      RequestSteps.set_observers
    is_traced                       RequestSteps.set_tap
    is_general                      never: `kwire.plain.requests.enable`
    is_authenticated                BrokerConnection.set_principal
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from kwire.clock import ticks_ns
from kwire.server.arrival import ArrivalHook
from kwire.server.response import ResponseHook
from kwire.server.tap import Tap

if TYPE_CHECKING:
    from kwire.quota.client_quotas import ClientQuotas
    from kwire.server.faulted_requests import FaultedRequests


class PlainInputs(NamedTuple):
    """What holds for all connections of a node."""

    has_authorizer: bool = False
    has_fault_rules: bool = False
    is_audited: bool = False
    has_quotas: bool = False
    is_watched: bool = False
    is_traced: bool = False
    is_general: bool = False


def plain_allowed(inputs: PlainInputs, is_authenticated: bool) -> bool:
    """Whether the requests of a connection may go past both steps."""
    return is_authenticated and not any(inputs)


AuthenticationFailed: TypeAlias = Callable[[str, str, str, str], None]
"""(client's host, name of the listener, SASL mechanism or `SSL`, reason): hears of everybody who
has not proved who it is."""


class RequestSteps:
    """The hooks of a node; nothing is attached at first.

    `has_authorizer()` is asked at the beginning and whenever metadata was published. `ticks_ns`
    is the clock by which the time is measured that requests take of the loop. `quotas` are those
    of clients, None where nobody has one; `faults` are those on command, None where none stand.
    Without `takes_plain_roads` every request passes both steps.
    """

    def __init__(
        self,
        has_authorizer: Callable[[], bool] = lambda: False,
        ticks_ns: Callable[[], int] = ticks_ns,
        takes_plain_roads: bool = True,
    ) -> None:
        self._has_authorizer = has_authorizer
        self.ticks_ns = ticks_ns
        self.inputs = PlainInputs(has_authorizer=has_authorizer(), is_general=not takes_plain_roads)
        self.arrival_hooks: tuple[ArrivalHook, ...] = ()
        self.quotas: ClientQuotas | None = None
        self.faults: FaultedRequests | None = None
        self.response_hooks: tuple[ResponseHook, ...] = ()
        self.tap: Tap | None = None
        self.has_hooks = False
        self.authentication_failed: AuthenticationFailed | None = None
        self._audit: tuple[ResponseHook, ...] = ()
        self._observers: tuple[ResponseHook, ...] = ()
        self._listeners: list[Callable[[], None]] = []

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call `listener()` whenever `inputs` have changed."""
        self._listeners.append(listener)

    def image_published(self) -> None:
        """Metadata has changed, maybe whether there is an authorizer."""
        self._changed(self.inputs._replace(has_authorizer=self._has_authorizer()))

    def set_fault_rules(self, *hooks: ArrivalHook) -> None:
        """The rules by which requests are refused on command, in their order; none: no faults."""
        self.arrival_hooks = hooks
        self._changed(self._with_faults())

    def set_faults(self, faults: FaultedRequests | None) -> None:
        """What is done to requests on command (ADR 40); None: nothing."""
        self.faults = faults
        self._changed(self._with_faults())

    def _with_faults(self) -> PlainInputs:
        has_faults = bool(self.arrival_hooks) or self.faults is not None
        return self.inputs._replace(has_fault_rules=has_faults)

    def set_throttles(self, quotas: ClientQuotas | None) -> None:
        """The quotas by which clients have to wait."""
        are_others = None not in (quotas, self.quotas) and quotas is not self.quotas
        self.quotas = quotas
        self._changed(self.inputs._replace(has_quotas=quotas is not None), are_others)

    def set_audit(self, *hooks: ResponseHook) -> None:
        """Who records what clients do."""
        self._audit = hooks
        self._responses_seen_by(self.inputs._replace(is_audited=bool(hooks)))

    def set_observers(self, *hooks: ResponseHook) -> None:
        """Who counts and measures."""
        self._observers = hooks
        self._responses_seen_by(self.inputs._replace(is_watched=bool(hooks)))

    def set_tap(self, tap: Tap | None) -> None:
        """Who is shown whole requests and responses; None: nobody."""
        self.tap = tap
        self._changed(self.inputs._replace(is_traced=tap is not None))

    def _responses_seen_by(self, inputs: PlainInputs) -> None:
        self.response_hooks = (*self._audit, *self._observers)
        self._changed(inputs)

    def _changed(self, inputs: PlainInputs, must_tell: bool = False) -> None:
        self.has_hooks = inputs.has_fault_rules or bool(self.response_hooks or self.tap)
        if must_tell or inputs != self.inputs:
            self.inputs = inputs
            for listener in self._listeners:
                listener()
