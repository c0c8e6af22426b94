"""The faults that stand, and which of them meet a request: a state machine without time.

A fault counts the requests that its selectors pick; whether it meets one of them is decided by its
counts and its own seeded draws, so that the same requests give the same faults.
"""

from __future__ import annotations

from typing import NamedTuple

from kwire.clock import SeededRandom
from kwire.faults.answers import Chosen, has_entries
from kwire.faults.asked import (
    Entry,
    NameOf,
    entries_of,
    follower_of,
    groups_of,
    transactional_ids_of,
)
from kwire.faults.errors import FaultError
from kwire.faults.kinds import Acts, Given
from kwire.faults.places import API_BY_NAME, apis_with, places_of
from kwire.faults.plan import Plan, Refused
from kwire.faults.rules import Rule
from kwire.protocol import messages as m
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.errors import ErrorCode
from kwire.protocol.structs import Message

FAULTS_MAX = 1000
DRAWS = 1 << 53
"""A draw below this is compared with the probability."""
OWN_CLIENT = "kwire-testing"
"""The client id of `kwire.testing`'s own questions: only a fault that names it meets them."""
FIRST_EPOCHS = (0, -1)
"""Session epochs of a Fetch that names all its partitions."""

LOADING = "coordinator-loading"
MOVED = {
    "leader-moved": ErrorCode.NOT_LEADER_OR_FOLLOWER,
    LOADING: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    "coordinator-moved": ErrorCode.NOT_COORDINATOR,
}
"""The codes of faults that meet every API that may carry them."""
COORDINATORS = frozenset((LOADING, "coordinator-moved"))
NEVER_LOADING = frozenset((ApiKey.FIND_COORDINATOR,))
"""They ask no coordinator."""
NEVER_MOVED = NEVER_LOADING | {ApiKey.LIST_GROUPS, ApiKey.LIST_TRANSACTIONS}
"""Lists are what is here; nobody says that a part of them is elsewhere."""
TOLD_TO_TRANSACTIONS_FROM = 2
"""Below this version a TxnOffsetCommit has COORDINATOR_NOT_AVAILABLE from one that loads."""
BY_LEADERS = frozenset(
    (
        *(ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.DELETE_RECORDS),
        *(ApiKey.OFFSET_FOR_LEADER_EPOCH, ApiKey.DESCRIBE_PRODUCERS),
        *(ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE),
    )
)
REFUSING = frozenset(("error", *MOVED))


class Asked(NamedTuple):
    """A request. `is_of_node`: one that nodes ask each other."""

    api_key: int
    api_version: int
    client_id: str | None
    principal: str
    request: Message
    is_of_node: bool = False


class Fault:
    """One that stands: `hits` counts what it has met."""

    def __init__(self, number: int, rule: Rule) -> None:
        self.number = number
        self.rule = rule
        self.picked = 0
        self.hits = 0
        self._random = SeededRandom(rule.seed)

    @property
    def is_spent(self) -> bool:
        """Whether it has met as many as it was to."""
        return self.rule.times is not None and self.hits >= self.rule.times

    def strikes(self) -> bool:
        """One more request is picked: whether it is met."""
        if self.is_spent:
            return False
        self.picked += 1
        if self.picked <= self.rule.skip:
            return False
        probability = self.rule.probability
        if probability < 1 and self._random.below(DRAWS) >= probability * DRAWS:
            return False
        self.hits += 1
        return True

    def described(self) -> dict[str, Given]:
        """What it is, and what it has met."""
        return {"id": self.number, **self.rule.described(), "hits": self.hits}


class Faults:
    """Those of one node. A fault that names another broker is kept and meets nothing here."""

    def __init__(self, broker_id: int) -> None:
        self._broker_id = broker_id
        self._standing: dict[int, Fault] = {}
        self._number = 0

    # -- the list

    def add(self, rule: Rule) -> Fault:
        """One more; FaultError beyond FAULTS_MAX."""
        if len(self._standing) >= FAULTS_MAX:
            raise FaultError(f"{FAULTS_MAX} faults stand, more are not accepted: remove some")
        self._number += 1
        fault = self._standing[self._number] = Fault(self._number, rule)
        return fault

    def remove(self, number: int) -> Fault:
        """FaultError when there is none of this number."""
        fault = self._standing.pop(number, None)
        if fault is None:
            known = ", ".join(map(str, self._standing)) or "none, no fault stands"
            raise FaultError(f"there is no fault {number}; accepted: {known}")
        return fault

    def clear(self) -> None:
        self._standing.clear()

    def standing(self) -> list[Fault]:
        """In the order in which they were added, spent ones among them."""
        return list(self._standing.values())

    def here(self, acts: Acts) -> list[Rule]:
        """Those of this broker that act there and are not spent."""
        return [
            fault.rule
            for fault in self._standing.values()
            if fault.rule.kind.acts is acts
            and fault.rule.broker in (None, self._broker_id)
            and not fault.is_spent
        ]

    # -- requests

    def may_meet(self, api_key: int, client_id: str | None, principal: str) -> bool:
        """Whether a request is to be looked at, as far as its header tells."""
        return any(
            self._picks_header(fault, api_key, client_id, principal)
            for fault in self._standing.values()
        )

    def plan(self, asked: Asked, name_of: NameOf) -> Plan | None:
        """What is to be done; None where no fault meets the request. Counts."""
        picking = [
            fault
            for fault in self._standing.values()
            if self._picks_header(fault, asked.api_key, asked.client_id, asked.principal)
            and _concerns(fault.rule, asked)
        ]
        if not picking:
            return None
        plan = Plan()
        if isinstance(asked.request, m.FetchRequest) and any(
            needs_names(fault.rule) for fault in picking
        ):
            plan.has_names = asked.request.session_epoch in FIRST_EPOCHS
            if not plan.has_names:
                plan.asks_for_names = True
                return plan
        entries = entries_of(asked.request, name_of)
        is_met = plan.has_names
        for fault in picking:
            chosen = _chooser(fault.rule)
            if fault.rule.topic is not None and not any(map(chosen, entries)):
                continue
            if fault.rule.kind.name in REFUSING and _refused(fault.rule, asked, chosen) is None:
                continue
            if fault.strikes():
                is_met = True
                _add(plan, fault.rule, asked, chosen)
        return plan if is_met else None

    def _picks_header(
        self, fault: Fault, api_key: int, client_id: str | None, principal: str
    ) -> bool:
        rule = fault.rule
        return (
            rule.kind.acts is Acts.REQUEST
            and not fault.is_spent
            and (rule.api is None or rule.api == api_key)
            and rule.client_id in (None, client_id)
            and (client_id != OWN_CLIENT or rule.client_id is not None)
            and rule.principal in (None, principal)
            and rule.broker in (None, self._broker_id)
            and _meets_api(rule, api_key)
        )


def _meets_api(rule: Rule, api_key: int) -> bool:
    name = rule.kind.name
    if name == "error":
        return api_key in apis_with(rule.code)
    if name == "leader-moved":
        return api_key in BY_LEADERS
    if name in MOVED:
        spared = NEVER_LOADING if name == LOADING else NEVER_MOVED
        return api_key in apis_with(MOVED[name]) and api_key not in spared
    return not rule.kind.apis or any(API_BY_NAME[one] == api_key for one in rule.kind.apis)


def _concerns(rule: Rule, asked: Asked) -> bool:
    follower = follower_of(asked.request)
    if rule.kind.name == "isr-shrink":
        return follower >= 0 and rule.number("replica") in (-1, follower)
    if follower >= 0 or asked.is_of_node:
        return False
    if rule.kind.name in COORDINATORS and _is_of_share_coordinator(asked.request):
        return False
    return (rule.group is None or rule.group in groups_of(asked.request)) and (
        rule.transactional_id is None
        or rule.transactional_id in transactional_ids_of(asked.request)
    )


def _is_of_share_coordinator(request: Message) -> bool:
    """Offsets by topic, where the group's coordinator is not asked."""
    return isinstance(request, m.DescribeShareGroupOffsetsRequest) and all(
        group.topics is not None for group in request.groups
    )


def needs_names(rule: Rule) -> bool:
    """Whether a fault that meets a Fetch has to know its partitions."""
    return (
        rule.topic is not None
        or rule.kind.name == "leader-moved"
        or (rule.kind.name == "error" and not _is_of_session(rule.code))
    )


def _is_of_session(code: ErrorCode) -> bool:
    found = places_of(ApiKey.FETCH, code, m.FetchRequest.MAX_VERSION)
    return not any(place.asked for place in found)


def _chooser(rule: Rule) -> Chosen:
    topic, partition = rule.topic, rule.partition

    def chosen(entry: Entry) -> bool:
        return topic is None or (
            entry.topic == topic and (partition is None or entry.partition == partition)
        )

    return chosen


def _refused(rule: Rule, asked: Asked, chosen: Chosen) -> Refused | None:
    """The error of a rule in the response of this request; None where it cannot carry it."""
    code = rule.code if rule.kind.name == "error" else MOVED[rule.kind.name]
    places = places_of(asked.api_key, code, asked.api_version)
    if rule.kind.name == LOADING:
        code = _code_while_loading(asked)
    for place in places:
        if not place.asked and rule.topic is None:
            return Refused(place, code, chosen, rule.is_on("after"))
        if place.asked and has_entries(asked.request, place.asked):
            return Refused(place, code, chosen, rule.is_on("after"))
    return None


def _code_while_loading(asked: Asked) -> ErrorCode:
    if asked.api_key == ApiKey.HEARTBEAT:
        return ErrorCode.NONE  # who was a member is taken for one
    is_old = asked.api_version < TOLD_TO_TRANSACTIONS_FROM
    if asked.api_key == ApiKey.TXN_OFFSET_COMMIT and is_old:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def _add(plan: Plan, rule: Rule, asked: Asked, chosen: Chosen) -> None:
    name = rule.kind.name
    if name in REFUSING:
        refused = _refused(rule, asked, chosen)
        assert refused is not None
        plan.refused.append(refused)
    elif name == "delay":
        if rule.is_on("after"):
            plan.reply_delay_ms += rule.number("ms")
        else:
            plan.delay_ms += rule.number("ms")
    elif name == "drop-request":
        plan.drops = str(rule.options["how"])
    elif name == "drop-reply":
        plan.drops_reply = str(rule.options["how"])
    elif name == "cut-reply":
        plan.cut_at = rule.number("at")
    elif name == "corrupt-records":
        plan.corrupted.append(chosen)
    elif name == "throttle":
        plan.throttle_ms = max(plan.throttle_ms, rule.number("ms"))
    else:
        assert name == "isr-shrink", name
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        place = places_of(ApiKey.FETCH, code, asked.api_version)[0]
        plan.hidden.append((place, chosen))
