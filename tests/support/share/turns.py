"""In which order a session's partitions give records, and what follows from the order of answers.

One fetch gives a batch of each partition that has one; then each fetch takes one record. Partitions
that gave records go behind the others, in the order of the answer; a fetch begins with another one
by its epoch, and looks last at those whose first free offset is new since the last fetch.
"""

from __future__ import annotations

from kwire.api.shared.share_order import in_answer_order
from tests.support.share.member import RECORD_LIMIT, Member, produce, said, set_group_config
from tests.support.wire import WireClient

PARTITIONS = 8
WITH_RECORDS = 6
TURNS = 16
BATCH_BYTES = 100
"""More than a batch of one record has, less than two."""


def turns(bootstrap: str, name: str) -> tuple[list[int], list[int]]:
    """Partitions of which one record after another came, and those that should have been."""
    client = WireClient(bootstrap)
    topic, group = f"{name}-topic", f"{name}-group"
    client.create_topic(topic, PARTITIONS)
    topic_id = client.topic_id(topic)
    keys = [(topic_id, index) for index in range(PARTITIONS)]
    set_group_config(client, group, share_auto_offset_reset="earliest")
    member = Member(bootstrap, group, [topic])
    member.join(PARTITIONS)
    for index in range(PARTITIONS):
        produce(client, topic, 1, partition=index)
    for key in keys:  # share partitions open one after another
        member.acquire([key], forgotten=[other for other in keys if other != key])
    for index in range(WITH_RECORDS):
        produce(client, topic, *[1] * TURNS, partition=index)
    first = said(member.fetch(keys, bytes_max=PARTITIONS * BATCH_BYTES))
    assert [(x[0], len(x[4])) for x in first[2] if x[4]] == [(x, 1) for x in range(WITH_RECORDS)]
    # The one that was opened last was in the session already. Those without records count, too.
    named = [index for _, index in in_answer_order(keys, {topic_id: topic})]
    order = [PARTITIONS - 1, *range(WITH_RECORDS, PARTITIONS - 1)]
    order += [index for index in named if index < WITH_RECORDS]
    new = set(range(WITH_RECORDS))
    came, expected = [], []
    for _ in range(TURNS):
        begin = member.epoch % PARTITIONS
        answer = said(member.fetch(records_max=1, mode=RECORD_LIMIT))
        came += [x[0] for x in answer[2] if x[4]]
        in_turn = [x for x in order[begin:] + order[:begin] if x < WITH_RECORDS]
        index = min(in_turn, key=lambda x: x in new)
        expected.append(index)
        new = {index}
        order.remove(index)
        order.append(index)
    member.close()
    client.close()
    return came, expected
