"""The faults on command of one node, bound to its requests, files, clock and cluster.

Nothing of it is made where nobody asks for faults; while none stands, requests, files and clock
know nothing of them (ADR 40).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias, TypeVar

from kwire.clock import SkewedClock
from kwire.config.broker_config import BrokerConfig
from kwire.faults.errors import ANOTHER, FaultError, shown
from kwire.faults.kinds import Acts, Given
from kwire.faults.machine import Fault, Faults
from kwire.faults.rules import Rule, parse_rule
from kwire.kraft.images.metadata_image import MetadataImage
from kwire.log.faulty_files import FaultyFiles
from kwire.node.waiting import end_of
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.structs import Message, Request
from kwire.server.faulted_requests import FaultedRequests
from kwire.server.request_steps import RequestSteps

Told = dict[str, Given]
LeaveRequest: TypeAlias = (
    m.LeaveGroupRequest | m.ConsumerGroupHeartbeatRequest | m.ShareGroupHeartbeatRequest
)
LeaveResponse: TypeAlias = (
    m.LeaveGroupResponse | m.ConsumerGroupHeartbeatResponse | m.ShareGroupHeartbeatResponse
)
Leave: TypeAlias = Callable[[], Pending[LeaveResponse]]
"""One member leaves its group."""
ResponseT = TypeVar("ResponseT", bound=Message)

CLIENT_ID = "kwire-fault"
SESSION_TIMEOUT_MS = 10_000
TRANSACTION_TIMEOUT_MS = 60_000
TIMEOUT_S = 10.0
PAUSE_S = 0.02
LEAVES = -1
"""The epoch of a member that leaves."""
PASSING = (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


class Ask(Protocol):
    """This node's own handler of an API."""

    def __call__(
        self, api_key: int, version: int, request: Request[ResponseT], /
    ) -> Pending[ResponseT]: ...


class AskController(Protocol):
    """The active controller, in this node's name."""

    def __call__(self, request: Request[ResponseT], /) -> Pending[ResponseT]: ...


class Channel(Protocol):
    """The way to the active controller."""

    def forward(self, request: Request[ResponseT], requester: None, /) -> Pending[ResponseT]: ...


class LocalRequests(Protocol):
    """This node's own handlers."""

    @property
    def execute(self) -> Ask: ...


class FaultyNode(Protocol):
    """What faults touch of a node."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop: ...

    @property
    def broker_id(self) -> int: ...

    @property
    def config(self) -> BrokerConfig: ...

    @property
    def request_steps(self) -> RequestSteps: ...

    @property
    def image(self) -> MetadataImage: ...

    @property
    def local_requests(self) -> LocalRequests: ...

    @property
    def controller_channel(self) -> Channel: ...


def faults_of(
    node: FaultyNode, files: FaultyFiles, clock: SkewedClock, lose_power: Callable[[], None]
) -> NodeFaults:
    """The faults of a node that was made with these files and this clock."""
    return NodeFaults(
        node.loop,
        broker_id=node.broker_id,
        steps=node.request_steps,
        files=files,
        clock=clock,
        image=lambda: node.image,
        ask=node.local_requests.execute,
        ask_controller=lambda request: node.controller_channel.forward(request, None),
        lose_power=lose_power,
        controller_listeners=node.config.controller_listener_names(),
    )


class NodeFaults:
    """See the module. `lose_power()` ends the node and takes back what was not synced."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        broker_id: int,
        steps: RequestSteps,
        files: FaultyFiles,
        clock: SkewedClock,
        image: Callable[[], MetadataImage],
        ask: Ask,
        ask_controller: AskController,
        lose_power: Callable[[], None],
        controller_listeners: Sequence[str] = (),
    ) -> None:
        self._loop = loop
        self._broker_id = broker_id
        self._faults = Faults(broker_id)
        self._requests = FaultedRequests(
            self._faults, loop, controller_listeners, on_spent=self._changed
        )
        self._steps = steps
        self._files = files
        self._clock = clock
        self._image = image
        self._ask = ask
        self._ask_controller = ask_controller
        self._lose_power = lose_power

    # -- what is asked

    async def add(self, given: Mapping[str, Given]) -> Told:
        """Add a fault, or do at once what it is; FaultError, one line."""
        rule = parse_rule(given)
        self._check_broker(rule)
        if rule.kind.acts is Acts.ONCE:
            await self._do(rule)
            return {"id": 0, **rule.described(), "hits": 1}
        fault = self._faults.add(rule)
        self._changed()
        return fault.described()

    def _check_broker(self, rule: Rule) -> None:
        known = {self._broker_id, *self._image().brokers}
        if rule.broker is not None and rule.broker not in known:
            accepted = ", ".join(map(str, sorted(known)))
            raise FaultError(
                f"broker={rule.broker} is no broker of this cluster; accepted: {accepted}"
            )
        if rule.kind.acts is Acts.ONCE and rule.broker not in (None, self._broker_id):
            raise FaultError(
                f"{rule.kind.name} with broker={rule.broker} {ANOTHER}; accepted here: "
                f"broker={self._broker_id}"
            )

    def remove(self, number: int) -> Told:
        """End a fault; what it was, and what it has met. FaultError."""
        fault = self._faults.remove(number)
        self._changed()
        return fault.described()

    def clear(self) -> None:
        """End all of them."""
        self._faults.clear()
        self._changed()

    def standing(self) -> list[Told]:
        """All that stand, those that have met all they were to among them."""
        return [fault.described() for fault in self._faults.standing()]

    def fault(self, number: int) -> Fault | None:
        """The one of this number."""
        return next((one for one in self._faults.standing() if one.number == number), None)

    def _changed(self) -> None:
        faults = self._faults
        self._steps.set_faults(self._requests if faults.here(Acts.REQUEST) else None)
        disk = faults.here(Acts.DISK)
        slow = [rule for rule in disk if rule.kind.name == "disk-slow"]
        self._files.is_full = any(rule.kind.name == "disk-full" for rule in disk)
        self._files.sync_ms = sum(rule.number("ms") for rule in slow)
        self._files.write_delay_ms = sum(rule.number("ms") for rule in slow if rule.is_on("writes"))
        self._clock.skew_ms = sum(rule.number("ms") for rule in faults.here(Acts.CLOCK))

    # -- what is done at once

    async def _do(self, rule: Rule) -> None:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                if rule.kind.name == "move-leader":
                    await self._move_leader(rule)
                elif rule.kind.name == "fence-producer":
                    await self._fence(rule.transactional_id or "")
                elif rule.kind.name == "rebalance":
                    await self._rebalance(rule.group or "")
                elif rule.kind.name == "fence-member":
                    await self._remove_members(rule.group or "", str(rule.options["member"]))
                else:
                    assert rule.kind.name == "power-loss", rule.kind.name
                    self._loop.call_soon(self._lose_power)
        except TimeoutError:
            raise FaultError(f"{rule.kind.name} was not done within {TIMEOUT_S:g} s") from None
        except KafkaError as error:
            if error.code == ErrorCode.NOT_COORDINATOR:
                raise FaultError(
                    f"{rule.kind.name} fails: NOT_COORDINATOR; accepted: a group or transactional "
                    "id that is in use, at the broker that coordinates it"
                ) from None
            raise FaultError(f"{rule.kind.name} fails: {error}") from None

    async def _move_leader(self, rule: Rule) -> None:
        name, index, to = rule.topic or "", rule.partition or 0, rule.number("to")
        replicas = self._replicas(name, index)
        if to not in replicas:
            known = ", ".join(map(str, replicas))
            raise FaultError(f"to={to} is no replica of {name}-{index}; accepted: {known}")
        shape = m.AlterPartitionReassignmentsRequest
        partition = shape.ReassignablePartition(
            partition_index=index, replicas=[to, *(one for one in replicas if one != to)]
        )
        topic = shape.ReassignableTopic(name=name, partitions=[partition])
        moved = await self._done(self._ask_controller(shape(topics=[topic], timeout_ms=5000)))
        _check(moved.error_code)
        while self._replicas(name, index)[0] != to:
            await asyncio.sleep(PAUSE_S)
        elections = m.ElectLeadersRequest
        named = elections.TopicPartitions(topic=name, partitions=[index])
        elected = await self._done(
            self._ask_controller(elections(topic_partitions=[named], timeout_ms=5000))
        )
        _check(elected.error_code)
        while self._leader(name, index) != to:
            await asyncio.sleep(PAUSE_S)

    def _replicas(self, topic: str, index: int) -> list[int]:
        partition = self._image().topics.partition(topic, index)
        if partition is None:
            raise FaultError(f"there is no partition {topic}-{index}: create it first")
        return list(partition.replicas)

    def _leader(self, topic: str, index: int) -> int:
        partition = self._image().topics.partition(topic, index)
        return -1 if partition is None else partition.leader

    async def _fence(self, transactional_id: str) -> None:
        request = m.InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
            producer_id=-1,
            producer_epoch=-1,
        )
        await self._until_done(request, 4)

    async def _rebalance(self, group_id: str) -> None:
        groups = await self._done(
            self._ask(int(ApiKey.DESCRIBE_GROUPS), 5, m.DescribeGroupsRequest(groups=[group_id]))
        )
        group = groups.groups[0]
        _check(group.error_code)
        if not group.members:
            raise FaultError(f"group={shown(group_id)} has no members of a classic group")
        shape = m.JoinGroupRequest
        join = shape(
            group_id=group_id,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=SESSION_TIMEOUT_MS,
            protocol_type=group.protocol_type,
            protocols=[shape.JoinGroupRequestProtocol(name=group.protocol_data)],
        )
        told = await self._done(self._ask(int(ApiKey.JOIN_GROUP), 5, join))
        _check(told.error_code, ErrorCode.MEMBER_ID_REQUIRED)
        member_id = told.member_id
        joining = self._ask(int(ApiKey.JOIN_GROUP), 5, join.copy(member_id=member_id))
        leave = m.LeaveGroupRequest(
            group_id=group_id,
            members=[m.LeaveGroupRequest.MemberIdentity(member_id=member_id)],
        )
        left = await self._done(self._ask(int(ApiKey.LEAVE_GROUP), 4, leave))
        joining.cancel()
        _check(left.error_code)

    async def _remove_members(self, group_id: str, member_id: str) -> None:
        """As an administrator removes members, and as members leave."""
        leaving = await self._classic_members(group_id)
        leaving = leaving or await self._consumers(group_id)
        leaving = leaving or await self._share_consumers(group_id)
        if member_id not in ("", *leaving):
            known = ", ".join(leaving) or "none, the group has no members"
            raise FaultError(
                f"member={shown(member_id)} is not in {shown(group_id)}; accepted: {known}"
            )
        if not leaving:
            raise FaultError(f"group={shown(group_id)} has no members")
        for one, leave in leaving.items():
            if member_id in ("", one):
                _check((await self._done(leave())).error_code)

    async def _classic_members(self, group_id: str) -> dict[str, Leave]:
        found = await self._done(
            self._ask(int(ApiKey.DESCRIBE_GROUPS), 5, m.DescribeGroupsRequest(groups=[group_id]))
        )
        _check(found.groups[0].error_code, ErrorCode.GROUP_ID_NOT_FOUND)
        named = m.LeaveGroupRequest.MemberIdentity
        return {
            one.member_id: self._leaving(
                ApiKey.LEAVE_GROUP,
                4,
                m.LeaveGroupRequest(
                    group_id=group_id,
                    members=[
                        named(member_id=one.member_id, group_instance_id=one.group_instance_id)
                    ],
                ),
            )
            for one in found.groups[0].members
        }

    async def _consumers(self, group_id: str) -> dict[str, Leave]:
        request = m.ConsumerGroupDescribeRequest(group_ids=[group_id])
        found = await self._done(self._ask(int(ApiKey.CONSUMER_GROUP_DESCRIBE), 1, request))
        return {
            one.member_id: self._leaving(
                ApiKey.CONSUMER_GROUP_HEARTBEAT,
                1,
                m.ConsumerGroupHeartbeatRequest(
                    group_id=group_id,
                    member_id=one.member_id,
                    instance_id=one.instance_id,
                    member_epoch=LEAVES,
                ),
            )
            for one in found.groups[0].members
        }

    async def _share_consumers(self, group_id: str) -> dict[str, Leave]:
        request = m.ShareGroupDescribeRequest(group_ids=[group_id])
        found = await self._done(self._ask(int(ApiKey.SHARE_GROUP_DESCRIBE), 1, request))
        return {
            one.member_id: self._leaving(
                ApiKey.SHARE_GROUP_HEARTBEAT,
                1,
                m.ShareGroupHeartbeatRequest(
                    group_id=group_id, member_id=one.member_id, member_epoch=LEAVES
                ),
            )
            for one in found.groups[0].members
        }

    def _leaving(self, api_key: ApiKey, version: int, request: LeaveRequest) -> Leave:
        return lambda: self._ask(int(api_key), version, request)

    async def _until_done(self, request: m.InitProducerIdRequest, version: int) -> None:
        while True:
            response = await self._done(self._ask(request.API_KEY or 0, version, request))
            if response.error_code not in PASSING:
                break
            await asyncio.sleep(PAUSE_S)
        _check(response.error_code)

    async def _done(self, pending: Pending[ResponseT]) -> ResponseT:
        await end_of(self._loop, pending)
        return pending.result()


def _check(code: int, *also: ErrorCode) -> None:
    if code and code not in also:
        raise KafkaError(code)
