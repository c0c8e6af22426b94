"""Producers whose transactions ended in one turn of the loop, beyond the fiftieth, had to wait.

The end of a transaction is announced to the coordinator itself, which writes its markers. The
announcements left with the replies that were parked, of which a turn gives out fifty: the others
were made behind their producers' answers, and the next transactions met CONCURRENT_TRANSACTIONS and
a backoff of 20 ms (`bench/one_request.py transactions` with 100 producers).
"""

from __future__ import annotations

from collections.abc import Callable

from kwire.coordinator.transaction.end import EndAnswer, EndRequest
from kwire.coordinator.transaction.init_producer import InitRequest
from kwire.pending import Pending
from tests.unit.coordinator.transaction.test_transaction_service import T0, World

COUNT = 120


def test_each_can_begin_its_next_transaction_when_it_has_its_answer() -> None:
    world = World()
    coordinator = world.coordinator
    begun = []
    for i in range(COUNT):
        pid, epoch = world.done(coordinator.init_producer_id(InitRequest(f"t{i}", 60_000)))
        world.done(coordinator.add_partitions(f"t{i}", pid, epoch, [T0], 2))
        begun.append((f"t{i}", pid, epoch))

    added: list[Pending[None]] = []

    def next_of(transactional_id: str) -> Callable[[Pending[EndAnswer]], None]:
        def begin(pid: int, epoch: int) -> None:
            added.append(coordinator.add_partitions(transactional_id, pid, epoch, [T0], 2))

        def answered(done: Pending[EndAnswer]) -> None:
            # A client needs a turn at least for its next request.
            world.loop.call_soon(lambda: begin(*done.result()))

        return answered

    for transactional_id, pid, epoch in begun:
        ended = coordinator.end_transaction(EndRequest(transactional_id, pid, epoch, True, True))
        ended.add_done_callback(next_of(transactional_id))
    world.loop.run()
    assert [pending.error() for pending in added] == [None] * COUNT
