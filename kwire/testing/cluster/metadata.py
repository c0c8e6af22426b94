"""What the brokers of a cluster say of its topics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kwire.cli.client import Client
from kwire.client.errors import ClientError
from kwire.protocol import messages as m


class PartitionView(NamedTuple):
    """A partition as one broker sees it."""

    leader_id: int
    leader_epoch: int
    in_sync: int


def partitions_seen_by(
    address: str, topics: Sequence[str]
) -> dict[tuple[str, int], PartitionView] | None:
    """(topic, partition) -> what this broker says of it; None when it does not answer."""
    shape = m.MetadataRequest.MetadataRequestTopic
    request = m.MetadataRequest(
        topics=[shape(name=name) for name in topics], allow_auto_topic_creation=False
    )
    try:
        with Client(address) as client:
            answer = client.call(request)
    except ClientError:
        return None
    return {
        (topic.name or "", p.partition_index): PartitionView(
            p.leader_id, p.leader_epoch, len(p.isr_nodes)
        )
        for topic in answer.topics
        for p in topic.partitions
    }


def replicas_agree(addresses: Sequence[str], topics: Sequence[str]) -> bool:
    """Whether all brokers say the same of the topics, each with as many replicas in sync.

    One broker's word is not enough: one that was cut off from the others still tells what was
    before, and a client that believes it reads old leaders to their ends.
    """
    views = [partitions_seen_by(address, topics) for address in addresses]
    first = views[0]
    if not first or any(view != first for view in views):
        return False
    return all(seen.in_sync == len(addresses) for seen in first.values())
