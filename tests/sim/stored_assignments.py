"""Histories of a classic group whose assignments are stored a member a turn, while all changes.

Members come, join anew and leave, the leader assigns (and again), the log refuses, the partition is
loaded anew, between any two slices of one assignment.

- a member hears what the first assignment of its generation has for it, and nothing of another one,
- what it hears is stored, with all members of that generation,
- no operation fails in a way that has no Kafka error,
- once nothing changes any more, everybody has an assignment.
"""

from __future__ import annotations

from typing import Any

from kwire.clock import SeededRandom
from kwire.coordinator.group.classic.states import ClassicState
from kwire.pending import Pending
from kwire.protocol.errors import ErrorCode
from tests.sim.checkers import Violation
from tests.support.groups import GroupWorld

STEPS = 120
MEMBERS_MAX = 6
QUIET_ROUNDS = 60


class AssignmentHistory:
    """One seed's history."""

    def __init__(self, seed: int) -> None:
        self.below = SeededRandom(seed).below
        self.world = GroupWorld(seed=seed)
        self.joins: list[Pending[Any]] = []
        self.generations: dict[str, int] = {}
        self.leader = ""
        self.members: list[str] = []
        self.plans: dict[tuple[Any, int], dict[str, bytes]] = {}
        """By shard and generation: one that is loaded anew may begin a number again."""
        self.syncs: list[tuple[str, tuple[Any, int], Pending[Any]]] = []
        self.heard: dict[str, int] = {}
        self.faults: list[Exception] = []
        runtime = self.world.coordinator.runtime
        broken = runtime._broken

        def noted(current: Any, pending: Any, error: Exception) -> None:
            self.faults.append(error)
            broken(current, pending, error)

        runtime._broken = noted  # type: ignore[method-assign]
        self.ended = 0
        """How many assignments were ended by something else."""

    def run(self) -> None:
        """Violation where a promise is broken."""
        steps = (
            *(self.come, self.sync, self.sync, self.assign, self.assign, self.leave),
            *(self.join_anew, self.refuse, self.reload, self.turn, self.turn, self.turn),
        )
        for _ in range(STEPS):
            steps[self.below(len(steps))]()
            self.look()
        self.world.log.refuse = None
        for _ in range(QUIET_ROUNDS):
            if not self.generations:
                self.come()
            for member_id in list(self.generations):
                self.join(member_id)
            self.world.loop.advance(500)
            self.look()
            self.sync()
            self.assign()
            self.world.loop.advance(500)
            self.look()
            if self.heard and set(self.heard) == set(self.members):
                return
        raise Violation(f"{self.members} do not come together: {self.heard}")

    # -- steps

    def come(self) -> None:
        if len(self.generations) < MEMBERS_MAX:
            self.joins.append(self._pending(self.world.join()))

    def join(self, member_id: str) -> None:
        self.joins.append(self._pending(self.world.join(member_id)))

    def join_anew(self) -> None:
        for member_id in list(self.generations)[: self.below(3)]:
            self.join(member_id)

    def leave(self) -> None:
        for member_id in list(self.generations)[: self.below(2)]:
            self.world.leave((member_id, None))
            self._gone(member_id)

    def sync(self) -> None:
        for member_id, generation in self.generations.items():
            if member_id != self.leader:
                place = self.world.shard, generation
                reply = self._pending(self.world.sync(member_id, generation))
                self.syncs.append((member_id, place, reply))

    def assign(self) -> None:
        """The leader's SyncGroup; of a generation that has one, another one."""
        generation = self.generations.get(self.leader)
        if generation is None:
            return
        number = self.below(1000)
        plan = {x: f"{x} {generation} {number}".encode() for x in self.members}
        place = self.world.shard, generation
        group = place[0].classic.groups.live.get("g")
        if (
            group is not None
            and group.state is ClassicState.COMPLETING_REBALANCE
            and (group.generation, group.leader) == (generation, self.leader)
        ):
            self.plans.setdefault(place, plan)
        reply = self._pending(self.world.sync(self.leader, generation, plan))
        self.syncs.append((self.leader, place, reply))

    def turn(self) -> None:
        self.world.loop.advance(self.below(2))

    def refuse(self) -> None:
        self.world.log.refuse = ErrorCode.NOT_ENOUGH_REPLICAS
        self.world.loop.advance(self.below(3))
        self.world.log.refuse = None

    def reload(self) -> None:
        if self.below(4) == 0:
            self.world.reload()

    # -- what they hear

    def look(self) -> None:
        if self.faults:
            raise Violation(f"an operation failed: {self.faults}")
        joins, self.joins = self.joins, []
        for reply in joins:
            if not reply.done:
                self.joins.append(reply)
            elif (answer := reply.result()).error_code == ErrorCode.NONE:
                self.generations[answer.member_id] = answer.generation_id
                self.heard.clear()
                if answer.leader == answer.member_id:
                    self.leader = answer.member_id
                    self.members = [x.member_id for x in answer.members]
            elif answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
                self._gone(answer.member_id)
        syncs, self.syncs = self.syncs, []
        for member_id, place, reply in syncs:
            if not reply.done:
                self.syncs.append((member_id, place, reply))
            else:
                self._synced(member_id, place, reply.result())

    def _synced(self, member_id: str, place: tuple[Any, int], answer: Any) -> None:
        if answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
            self._gone(member_id)
        if answer.error_code != ErrorCode.NONE:
            self.ended += answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
            return
        generation = place[1]
        stored = self.world.shard.storage.classic.groups["g"]
        if stored.generation != generation:
            return  # heard, and something else is stored since
        kept = {x.member_id: x.assignment for x in stored.members}
        if kept.get(member_id) != answer.assignment:
            raise Violation(f"{member_id} hears {answer.assignment!r}, stored is {kept}")
        plan = self.plans.get(place)
        if plan is not None and kept != {x: plan.get(x, b"") for x in kept}:
            raise Violation(f"{plan} was the first of {generation}, stored is {kept}")
        if plan is not None and set(kept) != set(plan):
            raise Violation(f"{plan} was for others than {set(kept)}")
        self.heard[member_id] = generation

    def _gone(self, member_id: str) -> None:
        self.generations.pop(member_id, None)
        self.heard.pop(member_id, None)

    @staticmethod
    def _pending(answer: Any) -> Pending[Any]:
        return answer if isinstance(answer, Pending) else Pending.completed(answer)
