"""The controller: the state machine that owns a cluster's metadata.

`handle` turns a request into records and the answer that may be given once they are committed;
`replay` is the only thing that changes replicated state. No I/O, no clock, no chance but the
injected one. The driver (kwire/kraft/raft_driver.py) appends the records, calls `replay` at once
(DESIGN.md, decision 9), holds the answer until they are committed, and calls `expire` when a
deadline of `timers` has come. What belongs to one area is in the module of its name.

Life of an active controller: replay the log -> `activate` -> `handle`/`expire`/`replay` ... ->
`deactivate`; after a failed append or a lost epoch `discard`, then replay again.
"""

from __future__ import annotations

from collections.abc import Iterable

from kwire.clock import Random
from kwire.kraft.controller import bootstrap, elections, sliced_elections
from kwire.kraft.controller.context import ControllerConfig, ControllerContext, not_controller
from kwire.kraft.controller.partition_index import PartitionIndex
from kwire.kraft.controller.results import Records, Result, SlicedWork
from kwire.kraft.controller.routes import AREAS, route_of
from kwire.kraft.controller.state import MAX_RECORDS_PER_USER_OPERATION, ControllerState
from kwire.kraft.images.metadata_image import MetadataImage
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.metadata_records import MetadataRecord
from kwire.protocol.structs import Request, Response
from kwire.security.acl import CLUSTER_NAME, ResourceType

# Records after which a broker's session may be another one.
_SESSION_RECORDS = (
    m.BrokerRegistrationChangeRecord,
    m.FenceBrokerRecord,
    m.UnfenceBrokerRecord,
    m.UnregisterBrokerRecord,
)


class Controller:
    """One node's controller, active or following."""

    def __init__(self, config: ControllerConfig, random: Random) -> None:
        self.config = config
        self._random = random
        self.state = ControllerState(config, random)
        self.is_active = False
        self.epoch = -1
        self._deadlines: dict[str, int] = {}

    @property
    def image(self) -> MetadataImage:
        """The working state: appended records, committed or not."""
        return self.state.image

    @property
    def index(self) -> PartitionIndex:
        return self.state.index

    # --- replicated state ------------------------------------------------------------------

    def silences_ms(self, now_ms: int) -> list[tuple[int, int]]:
        """(broker id, how long ago it was heard of), for metrics."""
        return self.state.heartbeats.silences_ms(now_ms)

    def replay(self, record: MetadataRecord, offset: int, epoch: int | None = None) -> None:
        """Apply one record of the log. Raises ImageError when it cannot follow."""
        state = self.state
        held = state.image.in_transaction
        state.image.replay(record, offset, epoch, state.index)
        if isinstance(record, m.RegisterBrokerRecord):
            if not held:
                self._registered(record, offset)
        elif self.is_active and isinstance(record, _SESSION_RECORDS):
            self._session_changed(record)

    def _registered(self, record: m.RegisterBrokerRecord, offset: int) -> None:
        self.state.index.registration_offsets[record.broker_id] = offset
        if self.is_active:
            self.state.heartbeats.remove(record.broker_id)
            self.state.heartbeats.register(record.broker_id, record.fenced)

    def _session_changed(
        self,
        record: m.BrokerRegistrationChangeRecord
        | m.FenceBrokerRecord
        | m.UnfenceBrokerRecord
        | m.UnregisterBrokerRecord,
    ) -> None:
        heartbeats = self.state.heartbeats
        if isinstance(record, m.UnregisterBrokerRecord):
            heartbeats.remove(record.broker_id)
            heartbeats.end_session(record.broker_id)
            return
        if isinstance(record, m.BrokerRegistrationChangeRecord):
            broker_id = record.broker_id
        else:
            broker_id = record.id
        broker = self.image.brokers[broker_id]
        heartbeats.register(broker_id, broker.fenced)

    def load(self, records: Iterable[MetadataRecord], offset: int, epoch: int = 0) -> None:
        """Become the content of a snapshot that ends with `offset` (inclusive)."""
        self.discard()
        for record in records:
            self.replay(record, offset)
        self.image.offset, self.image.epoch = offset, epoch

    def discard(self) -> None:
        """Forget everything: the log decides anew. The caller replays it."""
        self.deactivate()
        self.state = ControllerState(self.config, self._random)

    # --- being active ----------------------------------------------------------------------

    def activate(
        self,
        now_ms: int,
        next_offset: int,
        epoch: int,
        bootstrap_records: Records | None = None,
        is_empty: bool | None = None,
        leader_heard: tuple[int, int] | None = None,
    ) -> Records:
        """Begin to serve; returns the records to append first.

        Call it once the whole log is replayed. `bootstrap_records` is what the cluster was
        formatted with (without it: a new cluster's defaults); it is used only while the log holds
        no metadata record (`is_empty`, by default that nothing was replayed). `leader_heard` is
        (node id, when) of the last sign of life of the leader before: a broker in the same process
        as that controller was not heard of later either.
        """
        self.is_active = True
        self.epoch = epoch
        self.state.heartbeats.reset(self.image.brokers, now_ms, leader_heard)
        config = self.config
        self._deadlines = {"no_op": now_ms + config.max_idle_interval_ms}
        if config.max_idle_interval_ms <= 0:
            del self._deadlines["no_op"]
        if config.leader_imbalance_check_interval_ms is not None:
            self._deadlines["balance"] = now_ms + config.leader_imbalance_check_interval_ms
        self._deadlines["unclean"] = now_ms + config.unclean_election_interval_ms
        if config.token_secret is not None:
            self._deadlines["tokens"] = now_ms + config.token_expiry_check_interval_ms
        if any(broker.is_active for broker in self.image.brokers.values()):
            # The controller before may have been lost in the midst of a fencing or unfencing.
            leaderless = self.index.without_leader()
            self.state.begun.append(sliced_elections.electing(self.state, leaderless))
        empty = self.image.offset < 0 if is_empty is None else is_empty
        return bootstrap.activation_records(self.state, bootstrap_records, empty)

    def deactivate(self) -> None:
        """Stop serving: another controller was elected or this one resigned."""
        self.is_active = False
        self._deadlines = {}
        self.state.begun = []

    def handle(
        self, request: Request[Response], context: ControllerContext, now_ms: int
    ) -> Result[Response]:
        """(records to append, answer once they are committed).

        Errors are answers, with Kafka's codes in Kafka's places; an inactive controller answers
        NOT_CONTROLLER. Raises KeyError for a request that no controller answers.
        """
        if context.kraft_version is not None:
            self.state.kraft_version = context.kraft_version
        if context.voter_ids is not None:
            self.state.voter_ids = context.voter_ids
        if request.API_KEY not in AREAS:
            raise KeyError(request.NAME)
        try:
            if not self.is_active:
                raise not_controller(context.active_controller)
            route = route_of(request.API_KEY)
            if route.operation is not None and not context.authorize(
                route.operation, ResourceType.CLUSTER, CLUSTER_NAME
            ):
                raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
            if route.timeout_ms is not None and route.timeout_ms(request) <= 0:
                raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
            result: Result[Response] = route.handle(self.state, request, context, now_ms)
            if len(result[0]) > MAX_RECORDS_PER_USER_OPERATION and route.is_bounded:
                raise KafkaError(
                    ErrorCode.POLICY_VIOLATION,
                    "Unable to perform excessively large batch operation.",
                )
        except KafkaError as error:
            from kwire.kraft.controller.errors import error_response

            return [], error_response(request, error, context.api_version)
        if result[0]:
            self.wrote(now_ms)
        return result

    def slices(
        self, request: Request[Response], context: ControllerContext, now_ms: int = 0
    ) -> SlicedWork[Response] | None:
        """The work of a request that is too large for one turn of the loop; None for all others,
        and for those that `handle` refuses.

        Call `wrote` when the records of a slice are replayed; after `deactivate` do not go on."""
        route = route_of(request.API_KEY) if self.is_active and request.API_KEY in AREAS else None
        if route is None or route.in_slices is None:
            return None
        if route.timeout_ms is not None and route.timeout_ms(request) <= 0:
            return None
        made: SlicedWork[Response] | None = route.in_slices(self.state, request, context, now_ms)
        if made is None:
            return None
        if route.operation is not None:
            # Only what is done in slices is asked about here: an audit log tells of a request once.
            asked = (route.operation, ResourceType.CLUSTER, CLUSTER_NAME)
            if not context.may(*asked) or not context.authorize(*asked):
                return None
        return _answered(made, request, context.api_version)

    # --- time ------------------------------------------------------------------------------

    def timers(self) -> list[tuple[str, int]]:
        """(name, deadline in the driver's `now_ms`) of all that `expire` would do."""
        if not self.is_active:
            return []
        timers = list(self._deadlines.items())
        session = self.state.heartbeats.next_deadline_ms()
        if session is not None:
            timers.append(("session", session))
        return timers

    def deadline_ms(self) -> int | None:
        """The first of the `timers`, None without any."""
        if not self.is_active:
            return None
        session_ms = self.state.heartbeats.next_deadline_ms()
        if not self._deadlines:
            return session_ms
        deadline_ms = min(self._deadlines.values())
        return deadline_ms if session_ms is None else min(deadline_ms, session_ms)

    def expire(self, now_ms: int, wall_ms: int, next_offset: int | None = None) -> Records:
        """Records for what is due: one stale broker, elections, expired tokens, a sign of life.

        Call again at once while `timers` names a deadline that has passed: stale brokers are
        fenced one by one, each after the last one's records were replayed.
        """
        if not self.is_active:
            return []
        config = self.config
        records: Records = []
        stale = self.state.heartbeats.stale_broker(now_ms)
        if stale is not None:
            records = self._fence_stale(*stale)
        elif self._due("balance", now_ms, config.leader_imbalance_check_interval_ms or 0):
            records = elections.balance_leaders(self.state)
            self._again_if_full("balance", records, now_ms)
        elif self._due("unclean", now_ms, config.unclean_election_interval_ms):
            records = elections.elect_unclean_leaders(self.state)
            self._again_if_full("unclean", records, now_ms)
        elif self._due("tokens", now_ms, config.token_expiry_check_interval_ms):
            from kwire.kraft.controller.requests.tokens import sweep

            records = sweep(self.state, wall_ms)
        elif self._due("no_op", now_ms, config.max_idle_interval_ms):
            records = [bootstrap.no_op_record()]
        if records:
            self.wrote(now_ms)
        return records

    def broker_refused(self, broker_id: int, epoch: int, since_ms: int, now_ms: int) -> Records:
        """Records that fence a broker whose process is gone, without waiting for its session.

        Its heartbeats' connection has closed at `since_ms`, or this controller became active then,
        and the broker's listener refuses connections since. Nothing for a broker that was heard of
        later, that is fenced, or that has registered anew (another epoch); nothing for the broker
        of this very node.
        """
        broker = self.image.brokers.get(broker_id)
        if not self.is_active or broker is None or broker_id == self.config.node_id:
            return []
        if broker.epoch != epoch or broker.fenced:
            return []
        if not self.state.heartbeats.is_silent_since(broker_id, epoch, since_ms):
            return []
        records = self._fence_stale(broker_id, epoch)
        self.wrote(now_ms)
        return records

    def _fence_stale(self, broker_id: int, epoch: int) -> Records:
        self.state.heartbeats.fence(broker_id)
        broker = self.image.brokers.get(broker_id)
        if broker is None or broker.epoch != epoch or broker.fenced:
            return []
        if not sliced_elections.is_long(self.index.isr_count(broker_id)):
            return elections.fence(self.state, broker_id)
        self.state.heartbeats.begin_fencing(broker_id)
        self.state.begun.append(sliced_elections.fencing(self.state, broker_id, epoch))
        return []

    def begun(self) -> list[SlicedWork[None]]:
        """What `activate`, `expire`, `broker_refused` or an answered request leaves to be done in
        slices, told once."""
        begun, self.state.begun = self.state.begun, []
        return begun

    def _due(self, name: str, now_ms: int, interval_ms: int) -> bool:
        deadline = self._deadlines.get(name)
        if deadline is None or deadline > now_ms:
            return False
        self._deadlines[name] = now_ms + interval_ms
        return True

    def _again_if_full(self, name: str, records: Records, now_ms: int) -> None:
        """A round that used all of its elections goes on at once, after its records."""
        if len(records) >= elections.MAX_ELECTIONS_PER_ROUND:
            self._deadlines[name] = now_ms

    def wrote(self, now_ms: int) -> None:
        """Any record is a sign of life."""
        if "no_op" in self._deadlines:
            self._deadlines["no_op"] = now_ms + self.config.max_idle_interval_ms


def _answered(
    slices: SlicedWork[Response], request: Request[Response], api_version: int
) -> SlicedWork[Response]:
    """An error of all of the request is its answer."""
    try:
        return (yield from slices)
    except KafkaError as error:
        from kwire.kraft.controller.errors import error_response

        refused: Response = error_response(request, error, api_version)
        return refused
