"""kafka-python never consumed when its second JoinGroup was answered between two of its polls.

kafka-python 3.0.12 with polls of 50 ms joins before it knows the topic's partitions, gets an empty
assignment, learns of the partitions after 100 ms, just when a poll ends, and joins again. If the
answers to JoinGroup and SyncGroup arrive before its next poll asks whether to rejoin, it forgets
them and keeps the empty assignment for good (GRP-4 of the cases, one round in twenty).
"""

from __future__ import annotations

from kwire.pending import Pending
from tests.support.groups import GroupWorld


def test_a_lone_member_that_joins_again_is_answered_a_moment_later() -> None:
    world = GroupWorld(rejoin_settle_ms=30)
    first = world.join()
    world.loop.run()
    member_id = first.result().member_id
    world.now(world.sync(member_id, 1))
    again = world.join(member_id)
    world.loop.run()
    assert isinstance(again, Pending)
    assert not again.done
    world.loop.advance(30)
    assert again.done
    assert again.result().generation_id == 2


def test_the_first_join_of_an_empty_group_does_not_wait() -> None:
    world = GroupWorld(rejoin_settle_ms=30)
    assert world.now(world.join()).generation_id == 1
