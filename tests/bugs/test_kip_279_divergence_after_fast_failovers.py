"""KIP-279: after two leaders in quick succession a follower kept records of an epoch that nobody
else has, because the leader answered with an epoch that the follower did not know.

It then cuts at the end of its own largest epoch below the leader's, and asks on.
"""

from __future__ import annotations

from pathlib import Path

from kwire.replica.fetcher import truncation_offset
from tests.support.replicas import Replicas


def test_a_follower_that_does_not_know_the_leaders_epoch_asks_on(tmp_path: Path) -> None:
    world = Replicas(tmp_path)
    world.lead(1, epoch=0)
    world.append(1, b"a")
    world.exchange()
    world[1].is_up = False
    world.lead(2, epoch=1)
    world.append(2, b"b1")
    world[1].is_up, world[2].is_up = True, False
    world.lead(1, epoch=2)
    world.append(1, b"c1")
    world.append(1, b"c2")
    world.append(1, b"c3")
    world[1].is_up, world[2].is_up = False, True
    world.lead(2, epoch=3)
    world.append(2, b"d1")
    follower = world[1].partition
    assert world.epochs(1) == [(0, 0), (2, 1)]
    assert world.epochs(2) == [(0, 0), (1, 1), (3, 2)]
    # The leader's largest epoch not above 2 is 1, and ends at 2: where the follower has c2.
    assert truncation_offset(follower, 1, 2) == 1
    world[1].is_up = True
    world.lead(2, epoch=4)
    world.exchange()
    assert world.values(1) == world.values(2) == [b"a", b"b1", b"d1"]
