"""What becomes of a session whose group is deleted, and of the group that is made in its place: one
conversation, for any cluster. The member has left its group, and keeps its connection."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kwire.protocol import messages as m
from kwire.testing.cluster import wait_for
from tests.support.share.member import ACCEPT, Member, produce, said, set_group_config
from tests.support.wire import WireClient

PARTITIONS = 4
TOPIC, GROUP = "deleted-topic", "deleted-group"


def coordinator(client: WireClient, group: str) -> int:
    """The node that coordinates a group."""
    found: list[int] = []

    def is_there() -> bool:
        request = m.FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
        answer = client.call(request, 6).coordinators[0]
        found.append(answer.node_id)
        return not answer.error_code

    wait_for(is_there, f"the coordinator of {group}")
    return found[-1]


def deleted(bootstrap: str, *, is_apart: bool) -> Iterator[list[Any]]:
    """All steps. With `is_apart` of a partition whose leader is not the group's coordinator."""
    client = WireClient(bootstrap)
    client.create_topic(TOPIC, partitions=PARTITIONS)
    set_group_config(client, GROUP, share_auto_offset_reset="earliest")
    leaders = {p.partition_index: p.leader_id for p in client.topic(TOPIC).partitions}
    topic_id = client.topic_id(TOPIC)
    group_at = coordinator(client, GROUP)
    index = next(index for index, at in leaders.items() if not is_apart or at != group_at)
    key = topic_id, index
    at = {node: f"{host}:{port}" for node, (host, port) in client.brokers().items()}
    of_group = at[group_at]
    with WireClient(at[leaders[index]]) as leader:
        produce(leader, TOPIC, 20, partition=index)

    def joined(name: int) -> tuple[Member, Member]:
        """A member as the coordinator knows it, and as the leader does."""
        member = Member(of_group, GROUP, [TOPIC], name)
        member.join(PARTITIONS)
        return member, Member(at[leaders[index]], GROUP, [TOPIC], name)

    def delete_group() -> None:
        request = m.DeleteGroupsRequest(groups_names=[GROUP])
        with WireClient(of_group) as asked:
            wait_for(lambda: not asked.call(request, 2).results[0].error_code, "it is deleted")

    def plain(answer: Any) -> list[Any]:
        """Without the partition's number, which is not the same everywhere."""
        code, message, partitions = said(answer)
        return [code, message, [partition[1:] for partition in partitions]]

    old_one, old = joined(1)
    yield ["acquired", plain(old.acquire([key]))]
    old_one.leave()
    delete_group()
    new_one, new = joined(2)
    yield ["the old one fetches", plain(old.fetch())]
    yield ["the new one fetches", plain(new.fetch([key]))]
    yield ["the old one accepts", plain(old.acknowledge({key: [(0, 4, [ACCEPT])]}))]
    yield ["the new one fetches again", plain(new.fetch())]
    yield ["the new one accepts the same", plain(new.acknowledge({key: [(0, 4, [ACCEPT])]}))]
    new_one.leave()
    delete_group()
    late = {key: [(5, 6, [ACCEPT])]}
    yield ["the old one accepts in a deleted group", plain(old.acknowledge(late))]
    for member in (old_one, old, new_one, new):
        member.close()
    client.close()
