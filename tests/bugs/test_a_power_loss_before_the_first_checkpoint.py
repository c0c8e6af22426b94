"""A directory in its first minute had no file of recovery points: as if that had been lost.

What a power loss had torn was then kept as damage, with later records behind the hole, and a
replica never fetched what it lacked (simulated history 720531).
"""

from __future__ import annotations

from tests.support.logs import read_all
from tests.support.managed_logs import TOPIC_ID, Node


def test_a_tail_that_never_was_durable_is_cut_off_and_not_a_hole() -> None:
    node = Node()
    log = node.manager.create("topic", 0, TOPIC_ID)
    for _ in range(2):
        node.append("topic", 0)
    log.roll()
    node.append("topic", 0)
    torn = "/data/topic-0/00000000000000000000.log"
    handle = node.disk.open(torn)
    node.disk.truncate(handle, node.disk.size_of(torn) - 3)

    node.kill()

    again = node.manager.get("topic", 0)
    assert again is not None
    assert [offset for offset, _ in read_all(again)] == [0]
    assert again.log_end_offset == 1
