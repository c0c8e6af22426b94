"""KIP-101 (KAFKA-1211): a follower that truncates to its high watermark loses what was committed.

A follower learns of the high watermark one fetch late. If it cuts its log there whenever it starts,
and its leader dies before it has fetched again, the records in between are gone although everybody
had them. And if two replicas keep different records at one offset, they stay different for good.
Followers ask where their epoch ends at the leader instead.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.replicas import Replicas


@pytest.fixture
def world(tmp_path: Path) -> Replicas:
    return Replicas(tmp_path)


def test_a_follower_behind_with_the_high_watermark_keeps_its_records(world: Replicas) -> None:
    world.lead(1, epoch=0)
    world.append(1, b"m0")
    world.exchange()
    world.append(1, b"m1")
    while world[2].partition.log.log_end_offset < 2:
        world.exchange(1)
    follower = world[2].partition
    assert follower.log.high_watermark == 1, "it has m1 and does not know yet that it is committed"
    world.lead(1, epoch=0)  # it starts to follow anew, as after a restart
    world[1].is_up = False
    world.lead(2, epoch=1)
    assert world.values(2) == [b"m0", b"m1"]
    world[1].is_up = True
    world.lead(2, epoch=2)
    world.exchange()
    assert world.values(1) == [b"m0", b"m1"]
    assert follower.state.high_watermark == 2


def test_different_records_at_one_offset_do_not_stay(world: Replicas) -> None:
    world.lead(1, epoch=0)
    world.append(1, b"m0")
    world.exchange()
    world[2].is_up = False
    world.append(1, b"m1")
    world[1].is_up, world[2].is_up = False, True
    world.lead(2, epoch=1)
    world.append(2, b"m2")
    world[1].is_up = True
    world.lead(2, epoch=2)
    world.exchange()
    assert world.values(1) == world.values(2) == [b"m0", b"m2"]
