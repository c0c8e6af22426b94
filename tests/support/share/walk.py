"""Random walks through a share group: the same steps at any broker, and what it said to each.

What a step does depends on the seed and on earlier answers alone, so that two brokers that say the
same are asked the same. What Apache Kafka 4.4 notices later than kwire is left out: records that
were deleted (with the next read of what is gone), and that the start moves over records of aborted
transactions (with the next acknowledgement).
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import Any

from kwire.api.shared.share_order import in_answer_order
from kwire.protocol import messages as m
from kwire.testing.cluster import wait_for
from tests.support.share.member import (
    Acknowledgement,
    Key,
    Member,
    produce,
    said,
    set_group_config,
)
from tests.support.wire import WireClient, batch_of, produce_request

LOCK_MS = 1000
LONG_LOCK_MS = 60_000
STEPS = 60
TOPICS_MAX = 500
"""Until one of them has the order of an answer that is wanted."""

Said = list[Any]


class Walk:
    """One walk; `steps` gives (what was done, what was said) until it ends. `with_empty` says which
    partitions an answer names without anything to say of them, too."""

    def __init__(
        self,
        bootstrap: str,
        seed: int,
        name: str,
        *,
        may_expire: bool = True,
        partitions: int = 1,
        with_empty: bool = False,
    ) -> None:
        self.partitions = partitions
        self.with_empty = with_empty
        self.random = random.Random(seed)
        self.client = WireClient(bootstrap)
        self.topic = f"{name}-{seed}"
        self.group = f"{name}-group-{seed}"
        self.is_committed = self.random.random() < 0.4
        self.can_expire = self.random.random() < 0.3 and may_expire
        topic_id = self._create_topic(seed)
        self.keys: list[Key] = [(topic_id, index) for index in range(self.partitions)]
        self.configs = {
            "share_auto_offset_reset": "earliest",
            "share_record_lock_duration_ms": str(LONG_LOCK_MS),
            "share_delivery_count_limit": str(self.random.randint(2, 7)),
            "share_partition_max_record_locks": str(self.random.choice((100, 2000))),
            "share_isolation_level": (
                "read_committed" if self.is_committed else "read_uncommitted"
            ),
        }
        set_group_config(self.client, self.group, **self.configs)
        self.members = [Member(bootstrap, self.group, [self.topic], at) for at in range(3)]
        self.held: list[dict[Key, list[int]]] = [{} for _ in self.members]
        self.producer = self._producer()

    def close(self) -> None:
        for member in self.members:
            member.close()
        self.client.close()

    def steps(self) -> Iterator[Said]:
        for index in range(self.partitions):
            self._produce(index)
        self.members[0].join(self.partitions)
        for at, member in enumerate(self.members):
            if at:
                member.heartbeat()
        for index in range(self.partitions):  # share partitions open one after another
            others = [key for key in self.keys if key != self.keys[index]]
            answer = self.members[0].acquire(
                [self.keys[index]], forgotten=others, records_max=1, mode=1
            )
            self._keep(0, answer)
            yield ["open", said(answer)]
        for member in self.members[1:]:
            yield ["open", said(member.fetch(self.keys[:1], records_max=0))[:1]]
        for member in self.members:
            while member.epoch % 12:  # with its epochs a session takes its partitions in turn
                member.fetch(records_max=0)
        kinds = (
            *(self.fetch,) * 6,
            *(self.acknowledge,) * 8,
            *(self.produce, self.configure),
            *(() if self.is_committed else (self.nonsense,)),
            *((self.expire,) if self.can_expire else ()),
        )
        for _ in range(STEPS):
            step = self.random.choice(kinds)
            yield [step.__name__, step()]

    # -- steps

    def fetch(self) -> Said:
        at = self.random.randrange(len(self.members))
        answer = self.members[at].fetch(
            [self.keys[self.random.randrange(self.partitions)]],
            mode=self.random.randint(0, 1),
            records_max=self.random.choice((1, 3, 10, 500)),
            batch_size=self.random.choice((1, 5, 500)),
            bytes_max=self.random.choice((100, 1 << 20)),
        )
        self._keep(at, answer)
        return [*self._said(answer), at, answer.acquisition_lock_timeout_ms]

    def acknowledge(self) -> Said:
        at = self.random.randrange(len(self.members))
        held = self.held[at]
        keys = [key for key in self.keys if held.get(key)]
        if not keys:
            return []
        key = self.random.choice(keys)
        batches = self._batches(held[key])
        is_renewal = any(4 in types for _, _, types in batches)
        member = self.members[at]
        if self.random.random() < 0.4:
            answer = member.fetch(
                [],
                {key: batches},
                mode=1,
                records_max=0 if is_renewal else 3,
                bytes_max=0 if is_renewal else 1 << 20,
                is_renewal=is_renewal,
            )
            self._keep(at, answer)
            return self._said(answer)
        return said(member.acknowledge({key: batches}, is_renewal=is_renewal))

    def _batches(self, offsets: list[int]) -> list[Acknowledgement]:
        """Some of what is held, in order; taken off what is held but for renewals."""
        runs: list[list[int]] = []
        for offset in sorted(offsets):
            if self.random.random() < 0.35:
                continue
            if runs and runs[-1][-1] == offset - 1 and self.random.random() < 0.85:
                runs[-1].append(offset)
            else:
                runs.append([offset])
        if not runs:
            runs = [[min(offsets)]]
        batches: list[Acknowledgement] = []
        weights = self.random.choice(((1, 8, 4, 2, 0), (0, 2, 8, 1, 0), (1, 4, 4, 1, 4)))
        for run in runs:
            count = len(run) if self.random.random() < 0.5 else 1
            types = self.random.choices(range(5), weights, k=count)
            batches.append((run[0], run[-1], types))
            for place, offset in enumerate(run):
                if types[place if count > 1 else 0] != 4:
                    offsets.remove(offset)
        return batches

    def nonsense(self) -> Said:
        """An acknowledgement of anything."""
        at = self.random.randrange(len(self.members))
        first = self.random.randint(0, 60)
        batches = [(first, first + self.random.randint(0, 9), [self.random.randint(1, 3)])]
        key = self.random.choice(self.keys)
        answer = self.members[at].acknowledge({key: batches})
        for topic in answer.responses:
            for partition in topic.partitions:
                if not partition.error_code:
                    _forget(self.held[at].get(key, []), batches[0][0], batches[0][1])
        return said(answer)

    def produce(self) -> Said:
        self._produce(self.random.randrange(self.partitions))
        return []

    def configure(self) -> Said:
        name, value = self.random.choice(
            (
                ("share_delivery_count_limit", str(self.random.randint(2, 9))),
                ("share_renew_acknowledge_enable", self.random.choice(("true", "false"))),
                ("share_partition_max_record_locks", self.random.choice(("100", "2000"))),
            )
        )
        set_group_config(self.client, self.group, **{name: value})
        return [name, value]

    def expire(self) -> Said:
        """Some fetch with locks that run out before the next step; all other locks stay."""
        held = [{key: list(offsets) for key, offsets in of.items()} for of in self.held]
        set_group_config(self.client, self.group, share_record_lock_duration_ms=str(LOCK_MS))
        answers = [self.fetch() for _ in range(self.random.randint(1, 3))]
        end_s = time.monotonic() + LOCK_MS / 1000 * 1.6
        set_group_config(self.client, self.group, share_record_lock_duration_ms=str(LONG_LOCK_MS))
        wait_for(lambda: time.monotonic() > end_s, "locks are over")
        self.held = held
        return answers

    # -- aids

    def _said(self, answer: m.ShareFetchResponse) -> Said:
        return said(answer) if self.with_empty else _without_empty(said(answer))

    def _keep(self, at: int, answer: m.ShareFetchResponse) -> None:
        for topic in answer.responses:
            for partition in topic.partitions:
                held = self.held[at].setdefault((topic.topic_id, partition.partition_index), [])
                for given in partition.acquired_records:
                    for offset in range(given.first_offset, given.last_offset + 1):
                        if offset not in held:
                            held.append(offset)

    def _create_topic(self, seed: int) -> bytes:
        """Its id. Of several partitions the order of an answer depends on the topic's id and name
        (`share_order`), and the next fetches on that: topics are made until theirs is the one that
        the seed wants."""
        wanted = list(range(self.partitions))
        random.Random(f"order of {seed}").shuffle(wanted)
        for attempt in range(TOPICS_MAX):
            name = f"{self.topic}-{attempt}" if attempt else self.topic
            self.client.create_topic(name, self.partitions)
            topic_id = self.client.topic_id(name)
            keys = [(topic_id, index) for index in range(self.partitions)]
            if [index for _, index in in_answer_order(keys, {topic_id: name})] == wanted:
                self.topic = name
                return topic_id
        raise AssertionError(f"no topic of {TOPICS_MAX} has the order {wanted}")

    def _end(self, index: int) -> int:
        shape = m.ListOffsetsRequest
        asked = shape.ListOffsetsPartition(partition_index=index, timestamp=-1)
        request = shape(topics=[shape.ListOffsetsTopic(name=self.topic, partitions=[asked])])
        return int(self.client.call(request, 7).topics[0].partitions[0].offset)

    def _produce(self, index: int) -> None:
        sizes = [self.random.choice((1, 2, 5, 20)) for _ in range(self.random.randint(1, 4))]
        if not self.is_committed or self.random.random() < 0.5:
            produce(self.client, self.topic, *sizes, partition=index)
            return
        self._transaction(index, sizes, commit=self.random.random() < 0.5)

    def _producer(self) -> tuple[int, int]:
        self.transactional_id = f"{self.group}-producer"
        find = m.FindCoordinatorRequest(key_type=1, coordinator_keys=[self.transactional_id])
        request = m.InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=60_000
        )
        found: list[tuple[int, int]] = []

        def is_made() -> bool:
            self.client.call(find, 4)
            answer = self.client.call(request, 4)
            found.append((answer.producer_id, answer.producer_epoch))
            return int(answer.error_code) == 0

        wait_for(is_made, "a producer id is given")
        self._sequences = [0] * self.partitions
        return found[-1]

    def _transaction(self, index: int, sizes: list[int], commit: bool) -> None:
        producer_id, epoch = self.producer
        shape = m.AddPartitionsToTxnRequest
        topic = shape.AddPartitionsToTxnTopic(name=self.topic, partitions=[index])
        add = shape(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=[topic],
        )

        def is_added() -> bool:
            answer = self.client.call(add, 3).results_by_topic_v3_and_below[0]
            return int(answer.results_by_partition[0].partition_error_code) == 0

        wait_for(is_added, "the partition is in the transaction")
        for size in sizes:
            batch = batch_of(
                [b"%d" % at for at in range(size)],
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=self._sequences[index],
                transactional=True,
            )
            self._sequences[index] += size
            request = produce_request(self.topic, {index: batch})
            request.transactional_id = self.transactional_id
            answer = self.client.call(request, 9).responses[0].partition_responses[0]
            assert answer.error_code == 0, answer
        end = m.EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=commit,
        )
        before = self._end(index)
        wait_for(lambda: self.client.call(end, 3).error_code == 0, "the transaction ends")
        wait_for(lambda: self._end(index) > before, "its marker is there")


def _without_empty(answer: Said) -> Said:
    """Without partitions of which nothing is said."""
    kept = [p for p in answer[2] if p[1][0] or p[2][0] or p[3] or p[4]]
    return [answer[0], answer[1], kept]


def _forget(offsets: list[int], first: int, last: int) -> None:
    offsets[:] = [offset for offset in offsets if not first <= offset <= last]
