"""Faults of redrives put into the code on purpose, to show that `share_redrive.py` finds them.
`python -m tests.sim.share_redrive SEED 40 --mutation NAME` looks for a seed."""

from __future__ import annotations

import itertools
from typing import Any

from kwire.client.cluster import Coordinator
from kwire.client.dead_letters.redrive import PartitionRedrive
from kwire.client.errors import check
from kwire.client.producer import Outgoing, Producer
from kwire.client.transactional_producer import TransactionalProducer
from kwire.protocol import messages as m
from tests.sim.mutations import Mutation
from tests.sim.share_redrive import RedrivePlan


async def _commit(cluster: Any, group: str, positions: Any) -> None:
    """Offsets with their metadata, in no transaction."""
    kind = m.OffsetCommitRequest
    topics = [
        kind.OffsetCommitRequestTopic(
            name=topic,
            partitions=[
                kind.OffsetCommitRequestPartition(
                    partition_index=index,
                    committed_offset=position.offset,
                    committed_metadata=position.metadata,
                )
            ],
        )
        for (topic, index), position in positions.items()
    ]

    async def ask(node_id: int) -> None:
        response = await cluster.call(kind(group_id=group, topics=topics), node_id, version_max=9)
        check(response.topics[0].partitions[0].error_code, f"group {group}")

    await cluster.ask_coordinator(Coordinator.GROUP, group, ask)


def progress_is_committed_before_the_records(replace: Any) -> None:
    """The progress is no part of the transaction, and is there first."""

    async def commit_offsets(self: Any, group: str, positions: Any) -> None:
        await _commit(self._cluster, group, positions)

    replace(TransactionalProducer, "commit_offsets", commit_offsets)


def progress_is_committed_after_the_records(replace: Any) -> None:
    """The progress is no part of the transaction, and follows it."""
    commit = TransactionalProducer.commit

    async def commit_offsets(self: Any, group: str, positions: Any) -> None:
        self.later = group, positions

    async def commits(self: Any) -> None:
        await commit(self)
        await _commit(self._cluster, *self.later)

    replace(TransactionalProducer, "commit_offsets", commit_offsets)
    replace(TransactionalProducer, "commit", commits)


def records_are_sent_outside_of_the_transaction(replace: Any) -> None:
    """Only the progress is in it."""

    async def send(self: Any, topic: str, partition: int, records: Any, **others: Any) -> int:
        producer = Producer(self._cluster)
        offset = -1
        for record in records:
            one = Outgoing(record.key, record.value, record.headers, partition=partition)
            sent = await producer.send(topic, [one])
            offset = sent[0].offset if offset < 0 else offset
        return offset

    replace(TransactionalProducer, "send", send)


def nobody_is_fenced(replace: Any) -> None:
    """Each redrive has a transactional id of its own."""
    numbers = itertools.count()
    begin = TransactionalProducer.__init__

    def begins(self: Any, cluster: Any, transactional_id: str, **others: Any) -> None:
        begin(self, cluster, f"{transactional_id}/{next(numbers)}", **others)

    replace(TransactionalProducer, "__init__", begins)


def progress_is_read_before_others_are_fenced(replace: Any) -> None:
    """What another redrive commits between both is sent again."""
    run, committed = PartitionRedrive.run, PartitionRedrive._committed

    async def runs(self: Any, sent_max: Any = None) -> int:
        self.early = [await committed(self)]
        return await run(self, sent_max)

    async def read(self: Any) -> Any:
        return self.early.pop() if self.early else await committed(self)

    replace(PartitionRedrive, "run", runs)
    replace(PartitionRedrive, "_committed", read)


ENDING = RedrivePlan((), length_s=10.0, stands=False)
STANDING = RedrivePlan((), length_s=10.0, ends=False)

AIMED: dict[str, RedrivePlan] = {}
MUTATIONS: dict[str, Mutation] = {}
SEEDS: dict[str, int] = {}
for _mutation, _plan, _seed in (
    (progress_is_committed_before_the_records, ENDING, 1),
    (progress_is_committed_after_the_records, ENDING, 1),
    (records_are_sent_outside_of_the_transaction, ENDING, 1),
    (nobody_is_fenced, STANDING, 1),
    (progress_is_read_before_others_are_fenced, STANDING, 1),
):
    MUTATIONS[_mutation.__name__] = _mutation
    AIMED[_mutation.__name__] = _plan
    SEEDS[_mutation.__name__] = _seed
