"""Clients that come back in a new life, and whose old one goes on: it must be refused.

A transactional producer initialises twice, and asks with what it got the first time; a member of a
classic group joins twice, and commits with its first generation. Nothing of what the old life asks
may be answered as done.
"""

from __future__ import annotations

from typing import Any

from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from tests.sim.client import Retry
from tests.sim.workload import Actor

GROUP_KIND, TRANSACTION_KIND = 0, 1
SESSION_MS = 30_000
BETWEEN_S = 1.0
MOVED = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)


class _Again(Exception):
    """What was to be prepared did not come about."""


class Zombie(Actor):
    """Both kinds in turn. `refused` counts what was refused as it must be."""

    refused = 0
    member_id = ""

    async def run(self) -> None:
        while not self.stop:
            for act in (self._old_producer, self._old_member):
                try:
                    await act()
                except _Again:
                    self.member_id = ""
                await self.client.pause(BETWEEN_S)

    async def _ask(self, kind: int, request: Any, version: int) -> Any:
        """Until an answer comes of a coordinator."""
        while not self.stop:
            try:
                answer = await self.client.ask_coordinator(kind, self.name, request, version, 6.0)
            except Retry:
                await self.client.pause()
                continue
            if _code(answer) not in MOVED:
                self.operations += 1
                return answer
            self.client.forget_coordinator(kind, self.name)
            await self.client.pause()
        raise _Again

    def _must_be_refused(self, what: str, code: int) -> None:
        if code == 0:
            self.checkers.fail(f"{self.name}: {what} is taken")
        self.refused += 1
        self.client.note(f"{what} is refused: {ErrorCode(code).name}")

    # -- a producer

    async def _old_producer(self) -> None:
        old = await self._identity()
        new = await self._identity()
        if old == new:
            self.checkers.fail(f"{self.name}: a producer that begins anew is {new}, as before")
        request = m.AddPartitionsToTxnRequest
        topic = request.AddPartitionsToTxnTopic(name="exact", partitions=[0])
        message = request(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=old[0],
            v3_and_below_producer_epoch=old[1],
            v3_and_below_topics=[topic],
        )
        code = _code(await self._ask(TRANSACTION_KIND, message, 3))
        self._must_be_refused(f"a transaction of {old}, which {new} has replaced,", code)

    async def _identity(self) -> tuple[int, int]:
        request = m.InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=8000)
        answer = await self._ask(TRANSACTION_KIND, request, 4)
        if answer.error_code:
            raise _Again
        return answer.producer_id, answer.producer_epoch

    # -- a member

    async def _old_member(self) -> None:
        old = await self._join(b"one")
        offset = 1 + self.operations
        if _code(await self._commit(old, offset)):
            raise _Again
        new = await self._join(b"another")
        if new == old:
            raise _Again
        code = _code(await self._commit(old, offset + 1))
        self._must_be_refused(f"an offset of generation {old}, now it is {new},", code)

    async def _join(self, metadata: bytes) -> int:
        request = m.JoinGroupRequest
        while True:
            message = request(
                group_id=self.name,
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=SESSION_MS,
                member_id=self.member_id,
                protocol_type="consumer",
                protocols=[request.JoinGroupRequestProtocol(name="range", metadata=metadata)],
            )
            joined = await self._ask(GROUP_KIND, message, 9)
            if joined.error_code != ErrorCode.MEMBER_ID_REQUIRED:
                break
            self.member_id = joined.member_id
        if joined.error_code:
            raise _Again
        self.member_id = joined.member_id
        share = m.SyncGroupRequest.SyncGroupRequestAssignment(
            member_id=self.member_id, assignment=b"all"
        )
        message = m.SyncGroupRequest(
            group_id=self.name,
            generation_id=joined.generation_id,
            member_id=self.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[share],
        )
        if (await self._ask(GROUP_KIND, message, 5)).error_code:
            raise _Again
        return int(joined.generation_id)

    async def _commit(self, generation: int, offset: int) -> Any:
        request = m.OffsetCommitRequest
        partition = request.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        topic = request.OffsetCommitRequestTopic(name="plain", partitions=[partition])
        message = request(
            group_id=self.name,
            generation_id_or_member_epoch=generation,
            member_id=self.member_id,
            topics=[topic],
        )
        return await self._ask(GROUP_KIND, message, 8)


def _code(answer: Any) -> int:
    """The error code of an answer, or of the only partition in it."""
    if isinstance(answer, m.AddPartitionsToTxnResponse):
        topic = answer.results_by_topic_v3_and_below[0]
        return int(topic.results_by_partition[0].partition_error_code)
    if isinstance(answer, m.OffsetCommitResponse):
        return int(answer.topics[0].partitions[0].error_code)
    return int(answer.error_code)
