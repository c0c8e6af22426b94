"""Every checker can fail: each is fed a history that breaks its promise, and one that keeps it."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from kwire.kraft.metadata_log import MetadataBatch
from kwire.log.types import FetchSlices
from kwire.protocol import messages as m
from kwire.protocol.records import Record, build_batch, iterate_headers, stamp
from kwire.protocol.records.control import end_transaction_marker
from kwire.testing.simulation import Simulation
from tests.sim.checkers import Checkers
from tests.sim.faults import Plan
from tests.sim.history import History
from tests.sim.model import CommittedLog, Violation
from tests.sim.offsets import NOTHING, Coordinators, OffsetLedger, Owners
from tests.sim.readers import COMMITTED, UNCOMMITTED, Reader
from tests.sim.workload import Actor, TransactionalProducer
from tests.sim.zombies import Zombie

TOPIC_ID = bytes(15) + b"t"
IDS = (1, 2, 3)


def batch(
    offset: int, *values: str, epoch: int = 0, keys: tuple[str, ...] = (), **options: Any
) -> bytes:
    records = [
        Record(offset + i, 0, keys[i].encode() if keys else None, value.encode(), [])
        for i, value in enumerate(values)
    ]
    return bytes(build_batch(records, base_offset=offset, leader_epoch=epoch, **options))


class FakeLog:
    """Batches by offset, as much of a log as the checkers look at."""

    def __init__(self, *batches: bytes) -> None:
        self.batches = list(batches)
        self.log_start_offset = 0
        self.high_watermark = 0
        self.local = SimpleNamespace(files=SimpleNamespace(fault=None))

    @property
    def log_end_offset(self) -> int:
        ends = [header.last_offset + 1 for b in self.batches for _, header in iterate_headers(b)]
        return max(ends, default=0)

    def read(self, offset: int, bytes_max: int, **options: Any) -> FetchSlices:
        data = b"".join(
            b for b in self.batches if next(iterate_headers(b))[1].last_offset >= offset
        )
        return FetchSlices([data] if data else [], len(data), offset, 0, 0, 0, None)


def replica(
    node_id: int, log: FakeLog, *, epoch: int = 0, leader: int = 1, isr: tuple[int, ...] = IDS
) -> Any:
    """A partition on a node."""
    state = SimpleNamespace(broker_id=node_id, leader_epoch=epoch, isr=isr, replicas=IDS)
    return SimpleNamespace(
        topic="plain",
        topic_id=TOPIC_ID,
        index=0,
        state=state,
        log=log,
        is_leader=node_id == leader,
        leader_epoch=epoch,
    )


class World:
    """Checkers over fake replicas, one per node."""

    def __init__(self, **logs: FakeLog) -> None:
        self.checkers = Checkers()
        self.logs = {node_id: logs.get(f"n{node_id}", FakeLog()) for node_id in IDS}
        self.checkers.honest_node = self.node

    def node(self, node_id: int) -> Any:
        held = replica(node_id, self.logs[node_id])
        replicas = SimpleNamespace(partition_by_id=lambda topic_id, index: held)
        return SimpleNamespace(broker_id=node_id, replicas=replicas, incarnation_id=bytes(16))

    def high_watermark(self, node_id: int, offset: int, **options: Any) -> None:
        partition = replica(node_id, self.logs[node_id], **options)
        self.checkers._high_watermark(partition, offset)

    def leads(self, node_id: int, epoch: int) -> None:
        partition = replica(node_id, self.logs[node_id], epoch=epoch, leader=node_id)
        self.checkers._leadership(self.node(node_id), partition, epoch)


ONE, TWO = batch(0, "p:0:a"), batch(1, "p:1:b")


def whole(**others: FakeLog) -> World:
    """Three replicas with two batches, of which the leader n1 has committed both."""
    world = World(**{f"n{i}": FakeLog(ONE, TWO) for i in IDS})
    world.leads(1, 0)
    world.high_watermark(1, 2)
    for name, log in others.items():
        world.logs[int(name[1:])] = log
    return world


def broken(check: Callable[[], object], text: str) -> None:
    with pytest.raises(Violation, match=text):
        check()


# -- leaders and epochs


def driver(node_id: int) -> Any:
    return SimpleNamespace(config=SimpleNamespace(node_id=node_id))


def test_two_leaders_of_one_quorum_epoch() -> None:
    checkers = Checkers()
    checkers._quorum_leader(driver(1), 1, 4)
    checkers._quorum_leader(driver(2), 1, 4)
    broken(lambda: checkers._quorum_leader(driver(3), 3, 4), "leader of epoch 4 is 3, it was 1")


def test_two_candidates_with_a_majority_of_one_quorum_epoch() -> None:
    checkers = Checkers()
    checkers.quorum_leader_elected(1, 4)
    checkers.quorum_leader_elected(2, 5)
    broken(lambda: checkers.quorum_leader_elected(2, 4), "leader of epoch 4 is 2, it was 1")


def test_a_quorum_epoch_that_goes_back() -> None:
    checkers = Checkers()
    checkers._quorum_leader(driver(1), None, 4)
    broken(lambda: checkers._quorum_leader(driver(1), None, 3), "quorum epoch 3 after 4")


def test_two_leaders_of_one_partition_epoch() -> None:
    world = whole()
    world.leads(2, 1)
    broken(lambda: world.leads(3, 1), "n3 leads plain-0 at epoch 1, which n2 did before")


def test_two_leaders_commit_at_one_epoch() -> None:
    world = whole()
    broken(lambda: world.high_watermark(2, 2, leader=2), "n1 has led plain-0 at the same epoch")


def test_a_leader_epoch_that_goes_back() -> None:
    world = whole()
    world.high_watermark(2, 2, epoch=3)
    broken(lambda: world.high_watermark(2, 2, epoch=2), "the leader epoch of plain-0 was 3")


# -- high watermarks


def test_a_high_watermark_that_goes_back() -> None:
    world = whole()
    broken(lambda: world.high_watermark(1, 1), "goes from 2 to 1")


def test_a_high_watermark_behind_the_log() -> None:
    world = World(n1=FakeLog(ONE), n2=FakeLog(ONE), n3=FakeLog(ONE))
    broken(lambda: world.high_watermark(1, 2), "behind the log's end 1")


def test_a_high_watermark_that_no_leader_has_reached() -> None:
    world = World(**{f"n{i}": FakeLog(ONE, TWO) for i in IDS})
    world.high_watermark(1, 1)
    broken(lambda: world.high_watermark(2, 2), "no leader is past 1")


def test_a_high_watermark_that_an_in_sync_replica_has_not_reached() -> None:
    world = World(n1=FakeLog(ONE, TWO), n2=FakeLog(ONE, TWO), n3=FakeLog(ONE))
    world.high_watermark(1, 1)
    broken(lambda: world.high_watermark(1, 2), "the log of n3, which is in sync, ends at 1")


def test_a_commit_with_too_few_in_sync_replicas() -> None:
    world = World(n1=FakeLog(ONE))
    broken(lambda: world.high_watermark(1, 1, isr=(1,)), "2 are needed")


# -- what is committed stays


def test_a_new_leader_without_what_is_committed() -> None:
    world = whole(n2=FakeLog(ONE))
    broken(lambda: world.leads(2, 1), "ends at 1, committed is up to 2")


def test_a_new_leader_with_something_else() -> None:
    world = whole(n2=FakeLog(ONE, batch(1, "q:0:z")))
    broken(lambda: world.leads(2, 1), "committed is Batch")


def test_replicas_that_differ_below_the_high_watermark() -> None:
    world = whole(n2=FakeLog(ONE, batch(1, "q:0:z")))
    broken(lambda: world.high_watermark(2, 2), "committed is Batch")


def test_a_replica_in_the_isr_of_the_controller_that_lacks_something() -> None:
    world = whole(n3=FakeLog(ONE))
    record = m.PartitionChangeRecord(topic_id=TOPIC_ID, partition_id=0, isr=[1, 3])
    broken(lambda: world.checkers._isr_committed(record), "n3 is in the ISR")
    world.checkers._isr_committed(
        m.PartitionChangeRecord(topic_id=TOPIC_ID, partition_id=0, isr=[1, 2])
    )


def test_a_replica_that_the_controller_has_added_without_its_leaders_knowing() -> None:
    world = World(n1=FakeLog(ONE, TWO), n2=FakeLog(ONE, TWO), n3=FakeLog(ONE))
    created = m.PartitionRecord(topic_id=TOPIC_ID, partition_id=0, isr=[1, 2], leader_epoch=0)
    world.checkers._record_committed(created)
    world.high_watermark(1, 1, isr=(1, 2))
    added = m.PartitionChangeRecord(topic_id=TOPIC_ID, partition_id=0, isr=[1, 2, 3])
    world.checkers._record_committed(added)
    broken(lambda: world.high_watermark(1, 2, isr=(1, 2)), "the log of n3, which is in sync, ends")


def test_a_new_life_in_the_isr_for_what_the_last_one_had() -> None:
    def record(*isr: int) -> Any:
        return m.PartitionChangeRecord(topic_id=TOPIC_ID, partition_id=0, isr=list(isr))

    world = whole(n3=FakeLog(ONE))
    checkers = world.checkers
    checkers.honest_node = lambda node_id: None if node_id == 3 else world.node(node_id)
    checkers.running_node = world.node
    checkers._isr_committed(record(1, 3), before=(1, 3))  # it was, and leaves when it registers
    checkers._isr_committed(record(1, 3), before=(1,))  # nobody knows of its new life yet
    checkers._record_committed(m.RegisterBrokerRecord(broker_id=3, incarnation_id=bytes(16)))
    broken(lambda: checkers._isr_committed(record(1, 3), before=(1,)), "n3 is in the ISR")


def test_a_high_watermark_beyond_a_log_that_was_cut_off() -> None:
    world = whole()
    partition = replica(2, FakeLog(ONE))
    partition.state.high_watermark = 1
    world.checkers._truncated(partition)
    partition.state.high_watermark = 2
    broken(lambda: world.checkers._truncated(partition), "cut plain-0 off at 1")


def test_a_replica_that_cuts_off_what_is_committed() -> None:
    world = whole()
    partition = replica(2, world.logs[2])
    world.checkers._truncation(partition, 2)
    broken(lambda: world.checkers._truncation(partition, 1), "cuts plain-0 off at 1")


def test_a_replica_may_cut_off_what_is_not_committed() -> None:
    world = whole(n2=FakeLog(ONE, batch(1, "q:0:z")))
    world.checkers._truncation(replica(2, world.logs[2]), 1)


def test_a_replica_that_lacks_something_at_the_end() -> None:
    world = whole(n3=FakeLog(ONE))
    log = world.checkers.log_of(replica(3, world.logs[3]))
    broken(
        lambda: world.checkers._at_end(3, replica(3, world.logs[3]), log),
        "ends at 1 at the end, committed is up to 2",
    )


# -- metadata


def metadata(base: int, name: str, epoch: int = 1) -> MetadataBatch:
    record = m.TopicRecord(name=name, topic_id=name.encode().rjust(16, b"\0"))
    return MetadataBatch(base, base, epoch, 0, 10, [record])


def test_committed_metadata_that_forks() -> None:
    checkers = Checkers()
    checkers.metadata_committed(1, metadata(0, "a"))
    checkers.metadata_committed(2, metadata(0, "a"))
    broken(lambda: checkers.metadata_committed(3, metadata(0, "b")), "committed metadata at 0")


def test_committed_metadata_of_another_epoch() -> None:
    checkers = Checkers()
    checkers.metadata_committed(1, metadata(0, "a"))
    broken(lambda: checkers.metadata_committed(2, metadata(0, "a", epoch=2)), "has epoch 2")


def a_run() -> MetadataBatch:
    records = [metadata(offset, name).records[0] for offset, name in enumerate("ab")]
    return MetadataBatch(0, 1, 1, 0, 20, records)


def test_batches_that_a_node_reads_as_one_are_the_same_metadata() -> None:
    checkers = Checkers()
    checkers.metadata_committed(1, metadata(0, "a"))
    checkers.metadata_committed(1, metadata(1, "b"))
    checkers.metadata_committed(2, a_run())
    checkers.snapshot("written", a_run().records[:1], 1)
    other = a_run()._replace(records=[a_run().records[0], metadata(1, "c").records[0]])
    broken(lambda: checkers.metadata_committed(3, other), "committed metadata at 1")


def test_a_snapshot_that_ends_within_a_batch() -> None:
    checkers = Checkers()
    checkers.metadata_committed(1, a_run())
    broken(lambda: checkers.snapshot("written", a_run().records[:1], 1), "within a batch")


def test_metadata_that_a_minority_has() -> None:
    def raft(end_offset: int, voters: tuple[int, ...] = ()) -> Any:
        return SimpleNamespace(
            config=SimpleNamespace(node_id=1),
            log=SimpleNamespace(end_offset=end_offset),
            role=SimpleNamespace(voters=voters, epoch=4),
        )

    ends = {1: 9, 2: 7, 3: 7}
    checkers = Checkers()
    checkers.running_node = lambda node_id: SimpleNamespace(
        metadata=SimpleNamespace(driver=SimpleNamespace(raft=raft(ends[node_id])))
    )
    checkers._majority_has(raft(9, IDS), 7)
    checkers._majority_has(raft(9, (1,)), 9)
    broken(lambda: checkers._majority_has(raft(9, (1, 2)), 9), r"of which \[2\] do not have it")
    broken(lambda: checkers._majority_has(raft(9, IDS), 8), r"of which \[2, 3\] do not")
    ends[3] = 8
    checkers.deciders[1, 4, 8] = [1, 2, 3]  # decided before the change that takes itself out
    checkers._majority_has(raft(9, (2, 3)), 8)
    broken(lambda: checkers._majority_has(raft(9, (2, 3)), 8), r"of which \[2\] do not have it")


def test_metadata_that_is_committed_is_cut_off() -> None:
    checkers = Checkers()
    checkers.metadata_committed(1, metadata(0, "a"))
    checkers.metadata_committed(1, metadata(1, "b"))
    log = FakeLog(
        batch(0, "p:0:a", epoch=1), batch(1, "p:1:b", epoch=1), batch(2, "p:2:c", epoch=1)
    )
    checkers.metadata_truncated("n2", log, 2)
    broken(lambda: checkers.metadata_truncated("n2", log, 1), "n2 cuts its metadata off at 1")


def test_metadata_of_another_epoch_may_be_cut_off() -> None:
    checkers = Checkers()
    checkers.metadata_committed(1, metadata(0, "a", epoch=2))
    checkers.metadata_truncated("n2", FakeLog(batch(0, "p:0:a", epoch=1)), 0)


def test_a_snapshot_that_is_not_the_log() -> None:
    checkers = Checkers()
    for offset, name in enumerate("abc"):
        checkers.metadata_committed(1, metadata(offset, name))
    records = [metadata(0, name).records[0] for name in "abc"]
    checkers.snapshot("written", records, 3)
    checkers.snapshot("written", records[:2], 2)
    broken(lambda: checkers.snapshot("written", records[:2], 3), "missing")
    broken(lambda: checkers.snapshot("loaded", records, 2), "too much")


def test_nodes_whose_metadata_differs_at_the_end() -> None:
    def node(leader: int) -> Any:
        partition = SimpleNamespace(leader=leader, leader_epoch=1, isr=IDS)
        topic = SimpleNamespace(name="a", partitions={0: partition})
        topics = SimpleNamespace(by_name={"a": topic})
        return SimpleNamespace(replicas=[], image=SimpleNamespace(topics=topics))

    Checkers().finish({1: node(1), 2: node(1)})
    broken(lambda: Checkers().finish({1: node(1), 2: node(2)}), "differs at the end")


# -- what is committed itself


def committed(*batches: bytes) -> CommittedLog:
    log = CommittedLog("plain-0", is_user_topic=True)
    for data in batches:
        log.extend(data, next(iterate_headers(data))[1].last_offset + 1, 0, "n1")
    return log


def test_a_duplicate_and_a_lost_order() -> None:
    committed(batch(0, "p:0:a", "q:0:a"), batch(2, "p:1:b"))
    broken(lambda: committed(batch(0, "p:0:a"), batch(1, "p:0:a")), "a duplicate")
    broken(lambda: committed(batch(0, "p:1:b"), batch(1, "p:0:a")), "the order is lost")


def test_a_gap_and_an_epoch_that_goes_back() -> None:
    broken(lambda: committed(batch(0, "p:0:a"), batch(2, "p:1:a")), "behind 1")
    broken(lambda: committed(batch(0, "p:0:a", epoch=2), batch(1, "p:1:a", epoch=1)), "go back")


def test_the_last_value_of_a_key_that_the_cleaner_has_taken() -> None:
    log = CommittedLog("__consumer_offsets-0", is_user_topic=False, is_compacted=True)
    log.extend(batch(0, "1", "2", "3", keys=("a", "b", "a")), 3, 0, "n1")
    log.compare(batch(1, "2", "3", keys=("b", "a")), 0, 3, "n2")
    broken(lambda: log.compare(batch(1, "9", keys=("b",)), 0, 3, "n2"), "committed is")
    kept = {offset: record for offset, record in log.keyed.items() if offset > 0}
    log.check_last_values(kept, 3, "n2")
    broken(lambda: log.check_last_values({1: log.keyed[1]}, 3, "n2"), "at 2, is gone")


# -- clients


def actor(kind: Any, checkers: Checkers, *arguments: Any) -> Any:
    return kind(Simulation(1).host("clients"), "c", checkers, *arguments)


def with_log(log: CommittedLog) -> Checkers:
    checkers = Checkers()
    checkers.by_name["plain", 0] = log
    return checkers


def fetched(data: bytes, high_watermark: int, aborted: Any = ()) -> Any:
    entry = m.FetchResponse.AbortedTransaction
    return m.FetchResponse.PartitionData(
        high_watermark=high_watermark,
        records=data,
        aborted_transactions=[entry(producer_id=p, first_offset=o) for p, o in aborted],
    )


def test_an_acknowledgement_of_what_is_not_committed() -> None:
    producer = actor(Actor, with_log(committed(ONE)))
    producer.acknowledged("plain", 0, 0, [b"p:0:a"])
    broken(lambda: producer.acknowledged("plain", 0, 1, [b"p:1:b"]), "was acknowledged at 1")


def test_records_above_the_high_watermark() -> None:
    reader = actor(Reader, with_log(committed(ONE)), "plain", 0, UNCOMMITTED)
    broken(lambda: reader._take(fetched(ONE + TWO, 2)), "no leader is past 1")
    broken(lambda: reader._take(fetched(ONE + TWO, 1)), "committed there is None")


def test_an_end_that_is_not_committed_or_not_stable() -> None:
    open_one = batch(
        1, "t:0:a", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True
    )
    checkers = with_log(committed(ONE, open_one))
    reader = actor(Reader, checkers, "plain", 0, UNCOMMITTED)
    reader.end_known(2)
    broken(lambda: reader.end_known(3), "said to end at 3, committed is up to 2")
    careful = actor(Reader, checkers, "plain", 0, COMMITTED)
    careful.end_known(1)
    broken(lambda: careful.end_known(2), "said to end at 2, stable is up to 1")


def test_an_old_life_that_is_not_refused() -> None:
    zombie = actor(Zombie, Checkers())
    zombie._must_be_refused("an offset", 22)
    assert zombie.refused == 1
    broken(lambda: zombie._must_be_refused("an offset", 0), "an offset is taken")


def transaction() -> tuple[bytes, bytes]:
    """An aborted one of producer 7, and its marker."""
    data = batch(0, "t:0:a", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    marker = bytearray(end_transaction_marker(7, 0, False, 0, 0))
    stamp(marker, 0, 1, 0)
    return data, bytes(marker)


def test_read_committed_is_exact() -> None:
    data, marker = transaction()
    after = batch(2, "p:0:a")
    checkers = with_log(committed(data, marker, after))
    reader = actor(Reader, checkers, "plain", 0, COMMITTED)
    reader._take(fetched(data + marker + after, 3, aborted=((7, 0),)))
    assert reader.seen == 1
    unaware = actor(Reader, checkers, "plain", 0, COMMITTED)
    broken(lambda: unaware._take(fetched(data + marker + after, 3)), "read_committed")
    skips = actor(Reader, checkers, "plain", 0, COMMITTED)
    skips._take(fetched(b"", 3))
    assert skips.seen != len(checkers.by_name["plain", 0].visible), "liveness asks for them all"


def test_a_transaction_that_is_over_without_its_marker() -> None:
    data, marker = transaction()
    log = committed(data)
    checkers = Checkers()
    checkers.by_name["exact", 0] = log
    producer = TransactionalProducer(Simulation(1).host("clients"), "t", checkers, implicit=False)
    producer._identity, producer._touched = (7, 0), {0: None}
    producer._ended()
    broken(producer._settled, "complete, and open in exact-0")
    log.extend(marker, 2, 0, "n1")
    producer._settled()


# -- groups


def test_an_acknowledged_offset_that_is_lost_or_goes_back() -> None:
    ledger = OffsetLedger("g/plain-0")
    ledger.check(NOTHING, ledger.tick(), "c")
    tenure = ledger.acquired()
    for offset in (5, 9):
        ledger.end(ledger.begin(offset, tenure), True)
    ledger.check(9, ledger.tick(), "c")
    broken(lambda: ledger.check(5, ledger.tick(), "c"), "it can be one of \\[9\\]")
    broken(lambda: ledger.check(NOTHING, ledger.tick(), "c"), "is lost")


def test_an_offset_without_an_answer_may_be_there_until_the_next_owner_has_committed() -> None:
    ledger = OffsetLedger("g/plain-0")
    first = ledger.acquired()
    ledger.end(ledger.begin(5, first), None)
    ledger.end(ledger.begin(7, first), True)
    ledger.check(5, ledger.tick(), "c")
    ledger.check(7, ledger.tick(), "c")
    ledger.end(ledger.begin(8, ledger.acquired()), True)
    ledger.check(8, ledger.tick(), "c")
    broken(lambda: ledger.check(5, ledger.tick(), "c"), "goes back")


def test_an_offset_that_was_fetched_does_not_go_back() -> None:
    ledger = OffsetLedger("g/plain-0")
    tenure = ledger.acquired()
    ledger.end(ledger.begin(5, tenure), True)
    ledger.end(ledger.begin(7, tenure), None)
    ledger.check(5, ledger.tick(), "c")
    ledger.check(7, ledger.tick(), "c")
    broken(lambda: ledger.check(5, ledger.tick(), "c"), "goes back")
    broken(lambda: ledger.check(NOTHING, ledger.tick(), "c"), "is lost")


def test_what_is_committed_while_the_question_is_under_way_does_not_count_yet() -> None:
    ledger = OffsetLedger("g/plain-0")
    tenure = ledger.acquired()
    ledger.end(ledger.begin(5, tenure), True)
    asked = ledger.tick()
    ledger.end(ledger.begin(7, tenure), True)
    ledger.check(5, asked, "c")
    broken(lambda: ledger.check(5, ledger.tick(), "c"), "is lost")


def test_two_owners_of_one_partition() -> None:
    owners = Owners("g", session_s=4.0, rebalance_s=5.0)
    owners.acquire(("plain", 0), "a", 10.0, 10.0)
    broken(lambda: owners.acquire(("plain", 0), "b", 12.0, 12.0), "a owns and has not given up")
    owners.acquire(("plain", 0), "b", 14.0, 14.0)  # not heard of for a session
    owners.heard("b", 20.0)
    broken(lambda: owners.acquire(("plain", 0), "a", 21.0, 21.0), "b owns")
    owners.release(("plain", 0), "b")
    owners.acquire(("plain", 0), "a", 21.0, 21.0)
    owners.unanswered("a", 22.0)
    owners.heard("a", 26.0)
    broken(lambda: owners.acquire(("plain", 0), "b", 26.5, 26.5), "a owns")
    owners.settled("a")
    broken(lambda: owners.acquire(("plain", 0), "b", 27.0, 27.0), "a owns")
    owners.unanswered("a", 26.5)
    owners.heard("a", 31.0)
    owners.acquire(("plain", 0), "b", 31.5, 31.5)  # may have been told to give it up at 26.5


def test_a_replaced_coordinator_keeps_no_session_alive() -> None:
    """A node that is frozen does not know yet that another one coordinates in its place."""
    coordinators = Coordinators()
    assert coordinators.heard_s(0, 1, 1.0) == 1.0
    coordinators.loaded(0, 3, 1, 2.0)
    assert coordinators.heard_s(0, 1, 5.0) == 5.0
    coordinators.loaded(0, 5, 2, 10.0)
    coordinators.loaded(0, 4, 3, 11.0)  # it was replaced while it loaded
    assert coordinators.heard_s(0, 1, 9.0) == 9.0, "the new one began later"
    assert coordinators.heard_s(0, 1, 12.0) == 10.0
    assert coordinators.heard_s(0, 2, 12.0) == 12.0
    assert coordinators.heard_s(1, 1, 12.0) == 12.0, "of another partition"
    coordinators.loaded(0, 6, 1, 15.0)
    assert coordinators.heard_s(0, 1, 14.0) == 14.0, "whoever it was, the newest began later"


# -- liveness


def test_what_does_not_come_to_pass_in_time_is_a_violation() -> None:
    history = History(1, Plan())
    with history.checkers.watch():
        history.begin()
        broken(lambda: history.until(lambda: False, 1.0, "nothing happens"), "within 1 s")
    history.close()
