"""Transactions and idempotent producers, more of them: epochs, fencing, both forms of the requests, sequences."""

import pytest

from tests import wire
from tests.cases.helpers import Member, Txn, committed, marker_type, wait_lso
from tests.wire import batch, init_producer, latest, read_log, retry, txn_ready


def _end(c, t, commit, version, epoch=None):
    """EndTxn, waiting out 51 -> the whole answer."""
    return retry(
        lambda: c.send(
            "end_txn",
            version,
            transactional_id=t.tid,
            producer_id=t.pid,
            producer_epoch=t.epoch if epoch is None else epoch,
            committed=commit,
        ),
        lambda r: r.error_code != 51,
        10,
        0.02,
    )


def _described(c, tid):
    """DescribeTransactions once no markers are on their way."""
    return retry(
        lambda: c.send("describe_transactions", 0, transactional_ids=[tid]).transaction_states[0],
        lambda s: not s.transaction_state.startswith("Prepare"),
        10,
        0.02,
    )


def _write(c, t, topic, values=("v",), version=12, seq=0, partition=0, epoch=None, **told):
    """Produce a transactional batch -> (error code, base offset)."""
    data = batch(
        list(values),
        producer_id=t.pid,
        producer_epoch=t.epoch if epoch is None else epoch,
        base_sequence=seq,
        **{"transactional": True, **told},
    )
    r = wire.produce_once(c, topic, partition, data, version=version, transactional_id=t.tid)
    return r.error_code, r.base_offset


# ------------------------------------------------------------------ InitProducerId


@pytest.mark.case("TXN-1")
def test_txn_1_init_with_a_producer_id(conn, tid):
    """The owner that names what it has (KIP-360) goes on with the next epoch; asked again with the same it gets the same
    answer; others, and later ones, are fenced: 90, with v3 47.

    SOURCES: apache/kafka PR#7115 (KAFKA-8710); confluentinc/librdkafka PR#2749; twmb/franz-go#23
    """
    txn_ready(conn, tid)
    r = init_producer(conn, tid)
    pid = r.producer_id
    assert (r.error_code, r.producer_epoch) == (0, 0)
    for _ in range(2):
        r = init_producer(conn, tid, producer_id=pid, epoch=0)
        assert (r.error_code, r.producer_id, r.producer_epoch) == (0, pid, 1)
    for told in ((pid, 10), (pid + 1000, 1)):
        r = init_producer(conn, tid, producer_id=told[0], epoch=told[1])
        assert (r.error_code, r.producer_id, r.producer_epoch) == (90, -1, -1), told
    assert init_producer(conn, tid, version=3, producer_id=pid, epoch=10).error_code == 47
    for told in ((5, -1), (-1, 5), (-1, -2), (-2, -1)):
        r = init_producer(conn, tid, producer_id=told[0], epoch=told[1])
        assert r.error_code == 42, told
    assert init_producer(conn, tid).producer_epoch == 2


@pytest.mark.case("TXN-1")
def test_txn_1_init_over_an_open_transaction(conn, topic, tid):
    """A new owner first hears 51 while the open transaction is aborted, then has an epoch that the old one does not;
    everything of the old one is fenced, by the code that its version knows.

    SOURCES: IBM/sarama#2915; apache/kafka PR#19910 (KAFKA-19367), PR#4137 (KAFKA-6119); confluentinc/librdkafka#3003
    """
    t = Txn(conn, tid)
    assert t.produce(topic, ["a"], add=True).error_code == 0
    first = conn.send(
        "init_producer_id",
        4,
        transactional_id=tid,
        transaction_timeout_ms=60000,
        producer_id=-1,
        producer_epoch=-1,
    )
    assert (first.error_code, first.producer_id) == (51, -1)
    r = init_producer(conn, tid)
    assert (r.error_code, r.producer_id, r.producer_epoch) == (0, t.pid, t.epoch + 2)
    assert [_end(conn, t, True, v).error_code for v in (0, 1, 2, 4)] == [47, 47, 90, 90]
    assert [t.add((topic, 0), version=v) for v in (0, 1, 2, 3)] == [[47], [47], [90], [90]]
    assert [t.add_offsets("g", version=v) for v in (0, 1, 2, 3)] == [47, 47, 90, 90]
    assert [_write(conn, t, topic, version=v, seq=1)[0] for v in (7, 9, 11)] == [47, 47, 47]
    kinds = [marker_type(b) if b.control else "data" for b in read_log(conn, topic)]
    assert kinds == ["data", "abort"]


@pytest.mark.case("TXN-1")
def test_txn_1_idempotent_producers_get_new_ids(conn):
    """Without a transactional id the timeout does not matter and every answer is a new producer, also when one is named;
    half of a name is 42.

    SOURCES: apache/kafka PR#7115 (KAFKA-8710)
    """
    seen = []
    for version in (0, 2, 3, 4, 5):
        for timeout in (0, -1, 60000, 2**31 - 1):
            r = init_producer(conn, None, timeout, version=version)
            assert (r.error_code, r.producer_epoch) == (0, 0)
            seen.append(r.producer_id)
    r = init_producer(conn, None, producer_id=seen[0], epoch=0)
    assert (r.error_code, r.producer_epoch) == (0, 0)
    assert len({*seen, r.producer_id}) == len(seen) + 1
    for told in ((5, -1), (-1, 5)):
        assert init_producer(conn, None, producer_id=told[0], epoch=told[1]).error_code == 42


# ------------------------------------------------------------------ EndTxn 5 (KIP-890)


@pytest.mark.case("TXN-4")
def test_txn_4_every_end_gives_the_next_epoch(conn, topic, tid):
    """With transaction version 2 EndTxn v5 answers the next epoch, also an abort of nothing; partitions join by Produce
    v12; what the last epoch sends later is fenced and leaves no trace.

    SOURCES: apache/kafka PR#16840 (KAFKA-14563), PR#19844 (KAFKA-18042), PR#18758 (KAFKA-18660); thomhurst/Dekaf#818
    """
    t = Txn(conn, tid)
    assert _write(conn, t, topic) == (0, 0)
    d = _described(conn, tid)
    assert (d.transaction_state, [(x.topic, x.partitions) for x in d.topics]) == (
        "Ongoing",
        [(topic, [0])],
    )
    assert _write(conn, t, topic) == (0, 0), "a repeat is told where it is"
    assert _write(conn, t, topic, seq=5)[0] == 45
    r = _end(conn, t, True, 5)
    assert (r.error_code, r.producer_id, r.producer_epoch) == (0, t.pid, t.epoch + 1)
    again = _end(conn, t, True, 5)
    assert (again.error_code, again.producer_id, again.producer_epoch) == (0, t.pid, t.epoch + 1)
    assert wait_lso(conn, topic, 2) == 2
    assert [_write(conn, t, topic, seq=1, version=v)[0] for v in (9, 11, 12)] == [47, 47, 47]
    t.epoch += 1
    assert _write(conn, t, topic, seq=1)[0] == 45, "a new epoch starts at 0"
    assert _write(conn, t, topic) == (0, 2)
    assert _end(conn, t, False, 5).producer_epoch == t.epoch + 1
    t.epoch += 1
    assert wait_lso(conn, topic, 4) == 4
    assert _end(conn, t, True, 5).error_code == 48, "nothing to commit"
    r = _end(conn, t, False, 5)
    assert (r.error_code, r.producer_epoch) == (0, t.epoch + 1), "an abort of nothing fences too"
    marks = [(marker_type(b), b.producer_epoch) for b in read_log(conn, topic) if b.control]
    assert marks == [("commit", t.epoch - 1), ("abort", t.epoch)]


@pytest.mark.case("TXN-4")
def test_txn_4_a_late_end_is_fenced_once_the_next_transaction_is_there(conn, topic, tid):
    """A repeated EndTxn v5 is answered only while its outcome is the last thing that happened: with the next transaction
    begun, or a new owner, an old epoch is 90 and changes nothing.

    SOURCES: apache/kafka PR#17698 (KAFKA-14563); KIP-890
    """
    t = Txn(conn, tid)
    assert _write(conn, t, topic)[0] == 0
    t.epoch = _end(conn, t, True, 5).producer_epoch
    assert _write(conn, t, topic)[0] == 0
    for commit in (True, False):
        codes = [_end(conn, t, commit, 5, t.epoch + d).error_code for d in (-2, -1, 1)]
        assert codes == [90, 90, 90], "while it is open"
    assert _described(conn, tid).transaction_state == "Ongoing"
    r = _end(conn, t, False, 5)
    assert r.error_code == 0
    t.epoch = r.producer_epoch
    assert [_end(conn, t, c, 5, t.epoch - 1).error_code for c in (False, True)] == [0, 48]
    assert [_end(conn, t, c, 5, t.epoch - 2).error_code for c in (False, True)] == [90, 90]
    t.epoch = init_producer(conn, tid).producer_epoch
    for commit in (True, False):
        codes = [_end(conn, t, commit, 5, t.epoch + d).error_code for d in (-2, -1, 1)]
        assert codes == [90, 90, 90], "with a new owner"
    assert _described(conn, tid).transaction_state == "Empty"


@pytest.mark.case("TXN-4")
@pytest.mark.parametrize("version", [1, 3, 4])
def test_txn_4_ends_of_nothing_and_of_others(conn, topic, tid, version):
    """Up to v4 an end without a transaction is 48; another producer id is 49, another epoch 90 (47 up to v1).

    SOURCES: apache/kafka PR#8239 (KAFKA-9666); redpanda-data/redpanda#4029
    """
    t = Txn(conn, tid)
    fenced = 90 if version >= 2 else 47
    assert [_end(conn, t, c, version).error_code for c in (True, False)] == [48, 48]
    assert [_end(conn, t, True, version, e).error_code for e in (t.epoch + 1, -1)] == [fenced] * 2
    t.pid += 1
    assert _end(conn, t, True, version).error_code == 49


# ------------------------------------------------------------------ partitions and offsets


@pytest.mark.case("TXN-5")
@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_txn_5_one_bad_partition_and_none_is_added(conn, topics, tid, version):
    """A partition that does not exist is 3 and the others of the request 55: nothing was begun.

    SOURCES: apache/kafka PR#2849 (KAFKA-5059); redpanda-data/redpanda#3544
    """
    topic = topics(2)
    t = Txn(conn, tid)
    got = t.add((topic, 0), ("no-such-topic", 0), (topic, 9), version=version)
    assert sorted(got) == [3, 3, 55]
    assert _described(conn, tid).transaction_state == "Empty"
    assert t.add((topic, 0), (topic, 1), (topic, 0), version=version) == [0, 0, 0]
    d = _described(conn, tid)
    assert [(x.topic, sorted(x.partitions)) for x in d.topics] == [(topic, [0, 1])]


@pytest.mark.case("TXN-5")
@pytest.mark.parametrize("version", [4, 5])
def test_txn_5_batched_additions(conn, topics, tid, unique, version):
    """AddPartitionsToTxn v4-5 takes many transactions, each to be added to or only looked at; every one has its codes.

    SOURCES: apache/kafka PR#15486 (KAFKA-16314), PR#14370
    """
    topic = topics(2)
    t = Txn(conn, tid)

    def asked(only, partition=0, **told):
        what = {"name": topic, "partitions": [partition]}
        return {
            "transactional_id": t.tid,
            "producer_id": t.pid,
            "producer_epoch": t.epoch,
            "verify_only": only,
            "topics": [what],
            **told,
        }

    def codes(*transactions):
        r = conn.send("add_partitions_to_txn", version, transactions=list(transactions))
        assert r.error_code == 0
        return {
            x.transactional_id: [
                p.partition_error_code for y in x.topic_results for p in y.results_by_partition
            ]
            for x in r.results_by_transaction
        }

    other = unique("nobody")
    txn_ready(conn, other)
    absent = 120
    assert codes(asked(True), asked(False, transactional_id=other)) == {tid: [absent], other: [49]}
    assert codes(asked(False)) == {tid: [0]}
    assert codes(asked(True)) == {tid: [0]}
    assert codes(asked(True, 1)) == {tid: [absent]}
    assert codes(asked(True, producer_id=t.pid + 1)) == {tid: [49]}
    assert codes(asked(True, producer_epoch=t.epoch + 1)) == {tid: [90]}


@pytest.mark.case("TXN-5")
def test_txn_5_offsets_need_their_group_to_be_part_of_it(conn, topics, unique, tid):
    """TxnOffsetCommit before AddOffsetsToTxn is 48, 120 with v4; v5 adds the group itself (transaction version 2). Other
    producers are 49 and 47, an empty group is 24.

    SOURCES: apache/kafka PR#15155 (KAFKA-14505), PR#16840 (KAFKA-14563); AutoMQ/automq#794
    """
    topic = topics(1)
    t = Txn(conn, tid)

    def commit(version, group=None):
        name = unique("g") if group is None else group
        return t.commit_offsets(name, {(topic, 0): 7, ("no-such-topic", 0): 1}, version=version)

    wire.group_ready(conn, unique("g"))
    assert [sorted(commit(v)) for v in (0, 2, 3, 4)] == [[3, 48], [3, 48], [3, 48], [3, 120]]
    assert _described(conn, tid).transaction_state == "Empty"
    g = unique("g")
    assert sorted(commit(5, g)) == [0, 3]
    assert _described(conn, tid).topics[0].topic == "__consumer_offsets"
    for version in (0, 3, 5):
        big = t.commit_offsets(g, {(topic, 0): 9}, version=version, metadata="x" * 5000)
        assert big == [12]
        assert sorted(commit(version, "")) == [3, 24]
    epoch, pid = t.epoch, t.pid
    t.epoch += 1
    assert t.commit_offsets(g, {(topic, 0): 9}) == [47]
    t.epoch, t.tid = epoch - 1, unique("nobody")
    assert t.commit_offsets(g, {(topic, 0): 9}) == [47], "told before the coordinator is asked"
    t.tid = tid
    t.epoch, t.pid = epoch, pid + 1
    assert t.commit_offsets(g, {(topic, 0): 9}) == [49]
    t.pid = pid
    assert _end(conn, t, True, 5).error_code == 0
    stable = lambda: committed(conn, g, topic, require_stable=True)
    assert retry(stable, lambda p: p.error_code != 88, 10).committed_offset == 7


@pytest.mark.case("TXN-8")
def test_txn_8_offsets_by_state_of_the_group(conn, conns, topic, group, tid):
    """A transaction's commit by a member: 22 with another generation, 25 with another member, 82 with another's instance
    id; without a member (up to v2 always) nobody checks, nor whether a plan is awaited.

    SOURCES: apache/kafka PR#7897; twmb/franz-go#23
    """
    m = Member(conns(), group, session_ms=30000, instance="ia")
    wire.group_ready(conn, group)
    m.join()
    assert m.sync({m.id: b""}).error_code == 0
    t = Txn(conn, tid)
    assert t.add_offsets(group) == 0

    def commit(generation=-1, member="", instance=None, version=3):
        told = {"generation": generation, "member": member, "instance": instance}
        return t.commit_offsets(group, {(topic, 0): 5}, version=version, **told)[0]

    assert [commit(), commit(version=2), commit(m.gen, m.id, "ia")] == [0, 0, 0]
    assert [commit(m.gen - 1, m.id), commit(m.gen + 1, m.id)] == [22, 22]
    assert [commit(m.gen, "zz"), commit(m.gen, "zz", "ia"), commit(m.gen, m.id, "zz")] == [
        25,
        82,
        25,
    ]
    m.post_join(protocols=[{"name": "range", "metadata": b"z"}])
    assert m.got_join().error_code == 0
    assert commit(m.gen, m.id, "ia") == 0
    assert m.sync({m.id: b""}).error_code == 0
    assert m.leave(version=3) == 0
    assert [commit(m.gen, m.id, "ia"), commit()] == [25, 0]
    assert t.end(False) == 0


# ------------------------------------------------------------------ topics and records that go


@pytest.mark.case("TXN-10")
def test_txn_10_a_topic_that_is_deleted_meanwhile(conn, topics, tid):
    """A topic that goes while a transaction has it: the others are ended all the same and the id goes on; a new topic of
    that name has nothing but the marker.

    SOURCES: apache/kafka PR#3130 (KAFKA-5202); redpanda-data/redpanda#3544, #14624; streamnative/kop PR#1417; apache/pulsar#12754
    """

    def gone(name):
        asked = [{"name": name}]
        return conn.send("metadata", 9, topics=asked, allow_auto_topic_creation=False).topics[0]

    a, b = topics(), topics()
    t = Txn(conn, tid)
    for name in (a, b):
        assert t.produce(name, ["x"], add=True).error_code == 0
    assert wire.delete_topic(conn, a) == 0
    assert retry(lambda: gone(a).error_code, lambda e: e == 3, 10) == 3
    assert t.produce(b, ["y"]).error_code == 0
    assert (t.add((a, 0)), t.produce(a, ["y"]).error_code) == ([3], 3)
    wire.new_topic(conn, a)
    assert t.end(True) == 0
    assert _described(conn, tid).transaction_state == "CompleteCommit"
    assert wait_lso(conn, b, 3) == 3
    assert [b.control for b in read_log(conn, a)] == [True]
    assert t.add((b, 0)) == [0]
    assert t.end(False) == 0


@pytest.mark.case("TXN-10")
def test_txn_10_records_deleted_meanwhile(conn, topic, tid):
    """DeleteRecords goes past the start of an open transaction, which goes on and ends; readers of committed records get
    past it.

    SOURCES: apache/kafka PR#5448 (KAFKA-7190), PR#5518 (KAFKA-7298); twmb/kcl#10
    """
    t = Txn(conn, tid)
    assert t.produce(topic, ["a", "b"], add=True).error_code == 0
    assert wire.produce_once(conn, topic, 0, batch(["p"])).error_code == 0

    def delete(offset):
        one = [{"name": topic, "partitions": [{"partition_index": 0, "offset": offset}]}]
        r = conn.send("delete_records", 2, topics=one, timeout_ms=5000).topics[0].partitions[0]
        return r.error_code, r.low_watermark

    assert [delete(2), delete(-1), delete(99), delete(-2)] == [(0, 2), (0, 3), (1, -1), (1, -1)]
    assert latest(conn, topic, isolation=1) == 3
    assert t.produce(topic, ["c"]).error_code == 0
    assert t.end(False) == 0
    assert wait_lso(conn, topic, 5) == 5
    p = wire.fetch_partition(conn, topic, offset=3, isolation=1)
    assert [(b.base_offset, b.control) for b in p.batches] == [(3, False), (4, True)]
    assert [(x.producer_id, x.first_offset) for x in p.aborted_transactions] == [(t.pid, 0)]


# ------------------------------------------------------------------ what Produce takes


@pytest.mark.case("TXN-7")
def test_txn_7_batches_and_their_request(conn, topics, tid):
    """Transactional batches need their id, sequence and producer; control batches are never taken; a plain batch, or
    one of an idempotent producer, does not become part of a transaction by the request's id.

    SOURCES: apache/kafka PR#14370, PR#19844 (KAFKA-18042); confluentinc/librdkafka PR#2749
    """
    topic = topics(2)
    t = Txn(conn, tid)
    assert t.add((topic, 0)) == [0]
    assert _write(conn, t, topic, version=9) == (0, 0)
    assert _write(conn, t, topic, version=9) == (0, 0)
    assert [_write(conn, t, topic, version=9, seq=s)[0] for s in (5, -1)] == [45, 87]
    assert _write(conn, t, topic, ["a", "b"], version=9)[0] == 45, "the same start, another end"
    assert _write(conn, t, topic, version=9, seq=1, transactional=False)[0] == 48
    mark = [(b"\0\0\0\1", b"\0\0\0\0\0\0")]
    assert _write(conn, t, topic, mark, version=9, seq=-1, control=True)[0] == 87
    assert _write(conn, t, topic, version=9, seq=1) == (0, 1)
    assert _end(conn, t, True, 3).error_code == 0
    assert wait_lso(conn, topic, 3) == 3
    assert [_write(conn, t, topic, version=v, seq=2)[0] for v in (9, 11)] == [48, 120]


@pytest.mark.case("IDEM-2")
def test_idem_2_sequences_and_epochs(conn, topic):
    """A producer nobody knows may start anywhere; then gaps are 45, a new epoch starts at 0 (45 else), an old one is 47;
    no sequence is 87.

    SOURCES: apache/kafka PR#5518 (KAFKA-7298), PR#5448 (KAFKA-7190); redpanda-data/redpanda#22670; aio-libs/aiokafka#1017
    """
    pid = init_producer(conn).producer_id

    def send(seq, epoch=0, values=("a",), producer_id=pid):
        data = batch(list(values), producer_id=producer_id, producer_epoch=epoch, base_sequence=seq)
        r = wire.produce_once(conn, topic, 0, data)
        return r.error_code, r.base_offset

    assert [send(7), send(8)] == [(0, 0), (0, 1)]
    assert [send(10)[0], send(3)[0]] == [45, 45]
    assert [send(5, 1)[0], send(0, 1)] == [45, (0, 2)]
    assert [send(9, 0)[0], send(1, 0)[0]] == [47, 47]
    assert send(0, 5) == (0, 3)
    assert [send(-1, 5)[0], send(0, -1)[0]] == [87, 47]
    assert send(0, 3, producer_id=987654321) == (0, 4), "nobody gave out that id"
    assert latest(conn, topic) == 5


@pytest.mark.case("IDEM-2")
def test_idem_2_records_deleted_under_a_producer(conn, topic):
    """A producer whose records were all deleted goes on where it was; gaps are still gaps and repeats repeats.

    SOURCES: apache/kafka PR#5448 (KAFKA-7190); spring-projects/spring-kafka#1441; redpanda-data/redpanda#22670
    """
    pid = init_producer(conn).producer_id

    def send(seq):
        data = batch(["a"], producer_id=pid, producer_epoch=0, base_sequence=seq)
        r = wire.produce_once(conn, topic, 0, data)
        return r.error_code, r.base_offset

    assert [send(0), send(1)] == [(0, 0), (0, 1)]
    one = [{"name": topic, "partitions": [{"partition_index": 0, "offset": -1}]}]
    r = conn.send("delete_records", 2, topics=one, timeout_ms=5000).topics[0].partitions[0]
    assert (r.error_code, r.low_watermark) == (0, 2)
    assert [send(1), send(40)[0], send(2), send(3)] == [(0, 1), 45, (0, 2), (0, 3)]


# ------------------------------------------------------------------ queries


@pytest.mark.case("TXN-11")
def test_txn_11_lists_of_transactions(conn, topic, unique):
    """ListTransactions filters by state (exact names; what it does not know it lists once), producer id, age and pattern
    (of the whole id, RE2; 128 for none).

    SOURCES: twmb/kcl#10; KIP-664, KIP-994, KIP-1152
    """
    x, y = Txn(conn, unique("lx")), Txn(conn, unique("ly"))
    assert x.produce(topic, ["a"], add=True).error_code == 0

    def listed(version=2, **told):
        filters = {"state_filters": [], "producer_id_filters": [], **told}
        r = conn.send("list_transactions", version, filters)
        ids = {s.transactional_id for s in r.transaction_states}
        return r.error_code, r.unknown_state_filters, x.tid in ids, y.tid in ids

    assert listed() == (0, [], True, True)
    assert listed(state_filters=["Ongoing"]) == (0, [], True, False)
    assert listed(state_filters=["ongoing"]) == (0, ["ongoing"], False, False)
    assert listed(state_filters=["Bogus", "Empty", "Bogus"]) == (0, ["Bogus"], False, True)
    assert listed(producer_id_filters=[x.pid]) == (0, [], True, False)
    assert listed(producer_id_filters=[y.pid], state_filters=["Ongoing"]) == (0, [], False, False)
    assert listed(duration_filter=10**9)[2] is False
    assert listed(transactional_id_pattern="lx-.*") == (0, [], True, False)
    assert listed(transactional_id_pattern="l") == (0, [], False, False)
    assert listed(transactional_id_pattern="") == (0, [], True, True)
    assert listed(transactional_id_pattern="(")[0] == 128
    assert listed(transactional_id_pattern="(?=l).*")[0] == 128
    assert x.end(True) == 0


@pytest.mark.case("TXN-11")
def test_txn_11_markers_from_elsewhere(conn, topic, tid):
    """WriteTxnMarkers: partitions that are not there are 3, an older coordinator 52, an older producer 47; a marker ends
    what its producer has open in that partition, whatever its coordinator thinks.

    SOURCES: apache/kafka PR#21176 (KAFKA-19999); twmb/kcl#10; KIP-664
    """
    pid = init_producer(conn).producer_id

    def mark(pid, epoch=0, coordinator=0, commit=True, told=((topic, [0]),)):
        one = {
            "producer_id": pid,
            "producer_epoch": epoch,
            "transaction_result": commit,
            "coordinator_epoch": coordinator,
            "topics": [{"name": n, "partition_indexes": p} for n, p in told],
        }
        r = conn.send("write_txn_markers", 1, markers=[one])
        return [p.error_code for m in r.markers for t in m.topics for p in t.partitions]

    assert sorted(mark(pid, told=((topic, [5]), ("no-such-topic", [0])))) == [3, 3]
    assert mark(pid, told=()) == []
    assert [mark(pid, coordinator=3), mark(pid, coordinator=2), mark(pid, coordinator=3)] == [
        [0],
        [52],
        [0],
    ]
    assert [mark(pid, 4, 3), mark(pid, 3, 3)] == [[0], [47]]
    t = Txn(conn, tid)
    assert t.produce(topic, ["a"], add=True).error_code == 0
    end = latest(conn, topic)
    assert latest(conn, topic, isolation=1) == end - 1
    assert mark(t.pid, t.epoch, commit=False) == [0]
    assert wait_lso(conn, topic, end + 1) == end + 1
    assert _described(conn, tid).transaction_state == "Ongoing"
    assert t.end(True) == 0
