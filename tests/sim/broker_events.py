"""Brokers that come, go and return while their partitions move in slices of one (ADR 52).

The random histories of the controller (`tests/unit/kraft/controller/test_model.py`), where what a
broker's event does to its partitions is done a slice a step, and anything may come in between: its
next heartbeat, its next life, another such event, topics that go, a controller that is lost.

Promised is, after every slice: no broker that is fenced or gone leads anything or is in sync, none
is fenced for an event of its life before, or unfenced while it is not fenced; one that may go leads
nothing; a registration does not replace a later life of its broker, and one whose life before did
not stop cleanly is an eligible leader of nothing. When nothing is left to be done, no partition is
without a leader that could have one, but for those that an assignment has moved out of a directory
that is offline: as in Kafka, the next balancing finds their leader.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from kwire.kraft.controller import sliced_elections
from kwire.kraft.controller.context import ControllerContext
from kwire.kraft.images.cluster import FENCE, UNFENCE
from kwire.kraft.images.topics import NO_LEADER
from kwire.protocol import messages as m
from tests.unit.kraft.controller.test_model import FEATURES, STEPS, History

KINDS = ("_heartbeat", "_register", "_unregister", "_alter_isr", "_create", "_delete", "_lose")
"""Some of what has to come between two slices."""
SLICED = (m.BrokerHeartbeatRequest, m.UnregisterBrokerRequest, m.BrokerRegistrationRequest)
UNANSWERED = 7
"""The error of a registration that is under way: REQUEST_TIMED_OUT."""


class Fault(AssertionError):
    """A promise is broken."""


class SlicedBrokers(History):
    """See the module."""

    def __init__(self, seed: int) -> None:
        self.works: list[tuple[Any, int]] = []  # (slices, the epoch whose event it is or -1)
        self.asked: dict[Any, tuple[m.BrokerRegistrationRequest, Any]] = {}  # and who was there
        self.between: Counter[str] = Counter()
        self.moved: set[tuple[bytes, int]] = set()  # to other directories, without an election
        super().__init__(seed, FEATURES["elr"])

    def run(self) -> None:
        kept = sliced_elections.SLICE_PARTITIONS
        sliced_elections.SLICE_PARTITIONS = 1
        try:
            for _ in range(STEPS):
                if self.works and self.chance.random() < 0.6:
                    self._go_on()
                else:
                    busy = len(self.works)
                    action = self.step()
                    self.between[action[:5] if action == "_lose_uncommitted" else action] += busy
                self._begin(self.controller.begun())
                self.check()
            while self.works:
                self._go_on()
                self.check()
        finally:
            sliced_elections.SLICE_PARTITIONS = kept

    # -- slices

    def call(self, request: Any, version: int | None = None, **context: Any) -> Any:
        """Sliced requests are begun; their first slice is the answer for who reads it."""
        if not isinstance(request, SLICED):
            return super().call(request, version, **context)
        made = ControllerContext(
            api_version=type(request).MAX_VERSION, next_offset=len(self.log), wall_ms=self.now_ms
        )
        work = self.controller.slices(request, made, self.now_ms)
        if work is None:
            answer = super().call(request, version, **context)
            self._answered(request, answer)
            return answer
        answering = self._answering(request, work)
        self.works.append((answering, getattr(request, "broker_epoch", -1)))
        if not isinstance(request, m.BrokerRegistrationRequest):
            return None
        self.asked[answering] = request, self.image.brokers.get(request.broker_id)
        return m.BrokerRegistrationResponse(error_code=UNANSWERED)

    def _answering(self, request: Any, work: Any) -> Any:
        self._answered(request, (yield from work))

    def _answered(self, request: Any, answer: Any) -> None:
        if isinstance(request, m.BrokerRegistrationRequest):
            if not answer.error_code:
                self.epochs[request.broker_id] = answer.broker_epoch
                self.lives[request.broker_id] = int(request.incarnation_id[8:])
            return
        leads = self.controller.index.leads_any(request.broker_id)
        if getattr(answer, "should_shut_down", False) and not answer.error_code and leads:
            raise Fault(f"{request.broker_id} may go, and leads")

    def _begin(self, begun: list[Any]) -> None:
        for work in begun:
            code = getattr(work, "gi_code", None)
            epoch = -1
            if code is not None and code.co_name == "fencing":
                epoch = work.gi_frame.f_locals["epoch"]
            self.works.append((work, epoch))

    def _go_on(self) -> None:
        number = self.chance.randrange(len(self.works))
        work, epoch = self.works[number]
        try:
            records = next(work)
        except StopIteration:
            del self.works[number]
            self.asked.pop(work, None)
            self._begin(self.controller.begun())
            return
        for record, _ in records:
            is_change = isinstance(record, m.BrokerRegistrationChangeRecord)
            is_fencing = is_change and record.fenced == FENCE
            if is_fencing and epoch not in (-1, record.broker_epoch):
                raise Fault(f"{record} is for an event of epoch {epoch}")
        is_registration = work in self.asked and bool(records)
        if is_registration and isinstance(records[-1][0], m.RegisterBrokerRecord):
            self._registers(records, *self.asked[work])
        else:
            self.append(records)

    def _registers(
        self, records: list[Any], request: m.BrokerRegistrationRequest, before: Any
    ) -> None:
        broker_id = request.broker_id
        known = self.image.brokers.get(broker_id)
        is_same = known is not None and known.incarnation_id == request.incarnation_id
        if known is not None and not is_same and (before is None or before.epoch != known.epoch):
            raise Fault(f"{request.incarnation_id!r} replaces a later life of {broker_id}")
        was_clean = known is not None and known.epoch == request.previous_broker_epoch
        self.append(records)
        if is_same or was_clean:
            return
        if self.controller.index.in_elr(broker_id) or self.controller.index.in_isr(broker_id):
            raise Fault(f"{broker_id} did not stop cleanly and is an eligible leader")

    def expire(self, to_ms: int | None = None) -> None:
        self.now_ms = to_ms or self.now_ms
        for _ in range(100):
            deadline_ms = self.controller.deadline_ms()
            if deadline_ms is None or deadline_ms > self.now_ms:
                return
            self.append(self.controller.expire(self.now_ms, self.now_ms, len(self.log)))
            self._begin(self.controller.begun())

    def _lose_uncommitted(self) -> None:
        before = self.controller.state
        super()._lose_uncommitted()
        if self.controller.state is not before:
            self.works, self.asked = [], {}
            self._begin(self.controller.begun())

    # -- promises

    def append(self, records: list[tuple[Any, int]]) -> None:
        for record, _ in records:
            is_change = isinstance(record, m.BrokerRegistrationChangeRecord)
            is_unfencing = is_change and record.fenced == UNFENCE
            if is_unfencing and not self.image.brokers[record.broker_id].fenced:
                raise Fault(f"{record} of a broker that is not fenced")
            if isinstance(record, m.PartitionChangeRecord) and record.directories:
                self.moved.add((record.topic_id, record.partition_id))
        super().append(records)

    def check(self) -> None:
        try:
            super().check()
        except (AssertionError, KeyError) as error:
            raise Fault(str(error)) from error
        if not self.works:
            self._check_settled()

    def _check_settled(self) -> None:
        brokers = self.image.brokers
        for topic in self.image.topics:
            for index, partition in topic.partitions.items():
                if partition.leader != NO_LEADER or (topic.topic_id, index) in self.moved:
                    continue
                for replica in partition.isr or partition.elr:
                    broker = brokers.get(replica)
                    if broker is None or not broker.is_active:
                        continue
                    if broker.has_online_directory(partition.directory(replica)):
                        raise Fault(f"{topic.name}-{index} has no leader: {partition}")
