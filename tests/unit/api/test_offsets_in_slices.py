"""OffsetFetch of all that a group has committed: topics that are made anew meanwhile."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kwire.api import offset_fetch
from kwire.coordinator.group.found_offsets import FoundOffsets, FoundPartitions
from kwire.coordinator.group.stored_offsets import StoredOffset
from kwire.pending import as_pending
from kwire.protocol import messages as m
from kwire.server.sliced_response import SlicedResponse
from kwire.slices import Slices
from tests.support.connections import TurningLoop

BEFORE, ANEW = b"b" * 16, b"a" * 16
OFFSET = StoredOffset(
    offset=5,
    leader_epoch=-1,
    metadata="",
    commit_ms=0,
    expire_ms=None,
    topic_id=BEFORE,
    record_offset=-1,
)


@pytest.mark.parametrize("count", [1, offset_fetch.SLICE_PARTITIONS + 1])
def test_offsets_of_a_topic_that_is_gone_are_not_told_under_the_id_of_a_new_one(count: int) -> None:
    found = FoundOffsets(
        "g",
        [
            FoundPartitions("made.anew", bytes(16), [(index, OFFSET) for index in range(count)]),
            FoundPartitions("made.later", bytes(16), [(0, OFFSET)]),
        ],
    )
    loop = TurningLoop()
    topics = SimpleNamespace(by_name={"made.anew": SimpleNamespace(topic_id=BEFORE)})
    parts = SimpleNamespace(
        metadata=SimpleNamespace(image=SimpleNamespace(topics=topics)),
        coordinators=SimpleNamespace(groups=SimpleNamespace(fetch_offsets=lambda *_: found)),
    )
    context: Any = SimpleNamespace(
        api_version=10,
        parts=parts,
        slices=Slices(loop.call_soon),
        allows=lambda *_: True,
        sees=lambda *_: True,
    )
    group = m.OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=None)
    pending = as_pending(offset_fetch.handle(context, m.OffsetFetchRequest(groups=[group])))
    for name in ("made.anew", "made.later"):
        topics.by_name[name] = SimpleNamespace(topic_id=ANEW)
    while loop.soon:
        loop.turn()
    answer: Any = pending.result()
    if count > 1:
        assert isinstance(answer, SlicedResponse)
        answer = answer.decoded()
    (topic,) = answer.groups[0].topics
    assert topic.topic_id == BEFORE
    assert len(topic.partitions) == count
