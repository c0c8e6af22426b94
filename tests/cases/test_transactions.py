"""Transactions: visibility, markers, fencing, expiry, offsets, admin views."""

import asyncio
import time

import pytest

from tests import wire
from tests.cases.helpers import Member, Txn, committed, marker_type, stable, wait_lso
from tests.wire import (
    batch,
    fetch_partition,
    init_producer,
    latest,
    produce_once,
    read_committed,
    read_log,
    retry,
    txn_ready,
    values,
)

# Three client libraries, each: read everything from `start` and return (values, final position).


def read_kafka_python(bootstrap, topic, start=0, isolation="read_committed", end=None, seconds=20):
    from kafka import KafkaConsumer, TopicPartition

    tp = TopicPartition(topic, 0)
    k = KafkaConsumer(
        bootstrap_servers=bootstrap, isolation_level=isolation, enable_auto_commit=False
    )
    try:
        k.assign([tp])
        k.seek(tp, start)
        out, t_end = [], time.monotonic() + seconds
        while k.position(tp) < end and time.monotonic() < t_end:
            for recs in k.poll(200).values():
                out += [r.value for r in recs]
        return out, k.position(tp)
    finally:
        k.close()


def read_aiokafka(bootstrap, topic, start=0, isolation="read_committed", end=None, seconds=20):
    from aiokafka import AIOKafkaConsumer, TopicPartition

    async def go():
        tp = TopicPartition(topic, 0)
        k = AIOKafkaConsumer(
            bootstrap_servers=bootstrap, isolation_level=isolation, enable_auto_commit=False
        )
        await k.start()
        try:
            k.assign([tp])
            k.seek(tp, start)
            out, t_end = [], time.monotonic() + seconds
            while await k.position(tp) < end and time.monotonic() < t_end:
                for recs in (await k.getmany(timeout_ms=200)).values():
                    out += [r.value for r in recs]
            return out, await k.position(tp)
        finally:
            await k.stop()

    return asyncio.run(go())


def read_confluent(bootstrap, topic, start=0, isolation="read_committed", end=None, seconds=20):
    from confluent_kafka import Consumer, KafkaError, TopicPartition

    k = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused-" + topic,
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    try:
        k.assign([TopicPartition(topic, 0, start)])
        out, eof, t_end = [], None, time.monotonic() + seconds
        while eof is None and time.monotonic() < t_end:
            for m in k.consume(500, 0.2):
                if m.error():
                    assert m.error().code() == KafkaError._PARTITION_EOF, m.error()
                    if m.offset() >= end:
                        eof = m.offset()
                else:
                    out.append(m.value())
        return out, eof
    finally:
        k.close()


CLIENTS = [read_kafka_python, read_aiokafka, read_confluent]


@pytest.mark.case("TXN-2")
@pytest.mark.timeout(120)
def test_txn_2_aborted_list_covers_overlapping_transactions_over_segments(conn, topics, unique):
    """Whatever offset a read-committed fetch starts at, in whatever segment, the aborted list lets the client drop
    exactly the aborted records.

    SOURCES: AutoMQ/automq#754; kafka4beam/brod PR#659; platformatic/kafka#391; confluentinc/librdkafka PR#3369
    """
    topic = topics(1, {"segment.bytes": 1 << 20, "max.message.bytes": 1 << 20})
    prods = [Txn(conn, unique("tx")) for _ in range(3)]
    pad = b"x" * 60000
    expected, aborted, state = [], {}, [[] for _ in prods]
    # deterministic interleaving of 30 transactions of three producers, some spanning several segments
    n_tx = step = n_records = 0
    lens = [3, 1, 9, 2, 14, 1, 4, 6, 2, 11]
    open_left = [0, 0, 0]
    began = [False] * 3
    while n_tx < 30 or any(began):
        i = step % 3
        step += 1
        if not began[i]:
            if n_tx >= 30:
                continue
            began[i], open_left[i] = True, lens[(n_tx * 7 + i) % 10]
            n_tx += 1
            assert prods[i].add((topic, 0)) == [0]
        if open_left[i]:
            v = b"%d/%d " % (i, step) + pad
            r = prods[i].produce(topic, [v])
            assert r.error_code == 0
            n_records += 1
            state[i].append((r.base_offset, v))
            open_left[i] -= 1
        else:
            commit = (n_tx + step) % 5 in (0, 2)
            assert prods[i].end(commit) == 0
            if commit:
                expected += state[i]
            elif state[i]:
                aborted[state[i][0][0]] = prods[i].pid
            began[i], state[i] = False, []
    end = n_records + 30
    assert wait_lso(conn, topic, end) == end == latest(conn, topic)
    expected.sort()
    assert 10 < len(expected) < 200
    markers = [b for b in read_log(conn, topic) if b.control]
    marker_offsets = []
    for start in range(end):
        p = fetch_partition(conn, topic, offset=start, isolation=1, partition_max_bytes=300000)
        assert p.error_code == 0 and p.batches, f"offset {start}"
        last = p.batches[-1].last_offset
        got = [
            r.offset for r in read_committed(p.batches, p.aborted_transactions) if r.offset >= start
        ]
        assert got == [o for o, _ in expected if start <= o <= last], f"fetch at {start}"
        for (
            a
        ) in p.aborted_transactions:  # real ones only, and none that ended before the fetch offset
            assert a.producer_id == aborted[a.first_offset], f"fetch at {start}: {a}"
            marker = next(
                b
                for b in markers
                if b.producer_id == a.producer_id and b.base_offset > a.first_offset
            )
            assert marker.base_offset >= start and marker_type(marker) == "abort", (
                f"fetch at {start}: {a}"
            )
        assert len({a.first_offset for a in p.aborted_transactions}) == len(p.aborted_transactions)
        if start == p.batches[0].base_offset and p.batches[0].control:
            marker_offsets.append(start)
    assert len(marker_offsets) == 30, "a fetch that starts at a marker returns the marker"
    for reader in CLIENTS:
        for start in (0, end // 3, end - 20):
            got, pos = reader(conn.bootstrap, topic, start, end=end)
            assert [v[:12] for v in got] == [v[:12] for o, v in expected if o >= start], (
                f"{reader.__name__} at {start}"
            )
            assert pos == end


@pytest.mark.case("TXN-2")
def test_txn_2_fetch_from_the_middle_of_an_aborted_transaction(conn, topic, tid):
    """The entry keeps the transaction's real first offset when the fetch starts inside it or at its marker.

    SOURCES: AutoMQ/automq#754; streamnative/kop#1283
    """
    t = Txn(conn, tid)
    for i in range(3):
        t.produce(topic, [f"a{i}"], add=(i == 0))
    assert t.end(False) == 0
    assert wait_lso(conn, topic, 4) == 4
    t.produce(topic, ["b"], add=True)
    assert t.end(False) == 0
    assert wait_lso(conn, topic, 6) == 6  # the answer to EndTxn comes before the marker
    assert produce_once(conn, topic, 0, batch(["p"])).error_code == 0
    assert wait_lso(conn, topic, 7) == 7
    for start, want in (
        (0, [0, 4]),
        (1, [0, 4]),
        (2, [0, 4]),
        (3, [0, 4]),
        (4, [4]),
        (5, [4]),
        (6, []),
    ):
        p = fetch_partition(conn, topic, offset=start, isolation=1)
        assert [a.first_offset for a in p.aborted_transactions] == want, f"fetch at {start}"
        assert all(a.producer_id == t.pid for a in p.aborted_transactions)
        assert [r.value for r in read_committed(p.batches, p.aborted_transactions)] == [b"p"]
    p = fetch_partition(conn, topic, offset=3, isolation=1)
    assert p.batches[0].base_offset == 3
    assert p.batches[0].control
    assert marker_type(p.batches[0]) == "abort"


@pytest.mark.case("TXN-2")
def test_txn_2_transaction_without_records(conn, topics, tid):
    """A partition that was added but not written to gets at most a marker and never an aborted entry.

    SOURCES: confluentinc/librdkafka PR#3369
    """
    topic = topics(2)
    t = Txn(conn, tid)
    assert t.add((topic, 0), (topic, 1)) == [0, 0]
    assert t.produce(topic, ["a"]).error_code == 0
    assert t.end(False) == 0
    assert wait_lso(conn, topic, 2) == 2
    assert [b.control for b in read_log(conn, topic, 0)] == [False, True]
    p = retry(
        lambda: fetch_partition(conn, topic, 1, isolation=1, max_wait_ms=0), lambda p: p.batches, 5
    )
    assert [(b.control, marker_type(b)) for b in p.batches] == [(True, "abort")]
    assert p.aborted_transactions == []


@pytest.mark.case("TXN-3")
@pytest.mark.parametrize("reader", CLIENTS, ids=lambda f: f.__name__[5:])
def test_txn_3_clients_pass_the_last_marker(conn, topic, tid, reader):
    """A consumer's position reaches the log end although the last offset is a marker.

    SOURCES: confluentinc/librdkafka#3918; apache/spark PR#20836; apache/pinot#12318; debezium/debezium PR#359
    """
    t = Txn(conn, tid)
    for n, commit in enumerate((True, False, True)):
        t.produce(topic, [f"{n}a", f"{n}b"], add=True)
        assert t.end(commit) == 0
    assert wait_lso(conn, topic, 9) == 9
    assert reader(conn.bootstrap, topic, end=9) == ([b"0a", b"0b", b"2a", b"2b"], 9)


@pytest.mark.case("TXN-3")
def test_txn_3_marker_layout(conn, topic, tid):
    """Each marker takes one offset and is a one-record control batch of the transaction's producer, sequence -1, whose
    key says version 0 and abort (0) or commit (1).

    SOURCES: confluentinc/librdkafka#3918; apache/spark PR#20836
    """
    t = Txn(conn, tid)
    for n, commit in enumerate((True, False, True)):
        t.produce(topic, [f"{n}a", f"{n}b"], add=True)
        assert t.end(commit) == 0
    assert wait_lso(conn, topic, 9) == 9
    assert latest(conn, topic) == 9
    bs = read_log(conn, topic)
    assert [r.offset for b in bs if not b.control for r in b.records] == [0, 1, 3, 4, 6, 7]
    marks = [b for b in bs if b.control]
    assert [(b.base_offset, marker_type(b)) for b in marks] == [
        (2, "commit"),
        (5, "abort"),
        (8, "commit"),
    ]
    for b in marks:
        assert (
            b.count,
            b.transactional,
            b.codec,
            b.producer_id,
            b.producer_epoch,
            b.base_sequence,
        ) == (
            1,
            True,
            0,
            t.pid,
            t.epoch,
            -1,
        )
        assert len(b.records[0].key) == 4
        assert b.records[0].value[:2] == b"\0\0" and len(b.records[0].value) >= 6, (
            "end marker version 0"
        )
        assert b.records[0].headers == []


def _end_txn(c, t, commit, version):
    return c.send(
        "end_txn",
        version,
        transactional_id=t.tid,
        producer_id=t.pid,
        producer_epoch=t.epoch,
        committed=commit,
    ).error_code


@pytest.mark.case("TXN-6")
@pytest.mark.parametrize("version", [0, 1, 3, 4])
def test_txn_6_commit_from_another_connection(conns, topic, tid, version):
    """EndTxn depends on transactional id, producer id and epoch only: another process may commit, and a repeated
    commit succeeds, while an abort after it or without a transaction is an invalid state.

    SOURCES: redpanda-data/redpanda#7975, #4029; apache/flink-connector-kafka PR#322
    """
    a = conns(client_id="first")
    t = Txn(a, tid)
    assert _end_txn(a, t, True, version) == 48, "nothing begun"
    assert _end_txn(a, t, False, version) == 48, "nothing begun"
    assert t.produce(topic, ["1", "2", "3"], add=True).error_code == 0
    a.close()
    b = conns(client_id="second")
    assert _end_txn(b, t, True, version) == 0
    codes = []
    retry(lambda: codes.append(_end_txn(b, t, True, version)) or codes[-1], lambda e: e != 51, 10)
    assert set(codes) <= {0, 51} and codes[-1] == 0, codes
    assert retry(lambda: _end_txn(b, t, False, version), lambda e: e != 51, 10) == 48
    assert wait_lso(b, topic, 4) == 4
    assert latest(b, topic) == 4, "one marker only"
    assert values(read_log(b, topic, isolation=1)) == [b"1", b"2", b"3"]


@pytest.mark.case("TXN-6")
def test_txn_6_repeated_abort(conns, topic, tid):
    """The same for abort: repeat is fine, commit afterwards is an invalid state.

    SOURCES: redpanda-data/redpanda#4029
    """
    a = conns()
    t = Txn(a, tid)
    assert t.produce(topic, ["1"], add=True).error_code == 0
    assert t.end(False) == 0
    assert t.end(False) == 0
    assert t.end(True) == 48
    assert wait_lso(a, topic, 2) == 2
    assert latest(a, topic) == 2


@pytest.mark.case("TXN-6")
@pytest.mark.restart
@pytest.mark.timeout(150)
def test_txn_6_commit_after_broker_restart(conn, conns, topic, tid, restart_broker):
    """An open transaction survives an orderly restart of the broker and can then be committed by its stored id.

    SOURCES: redpanda-data/redpanda#7975
    """
    t = Txn(conn, tid, timeout_ms=600000)
    assert t.produce(topic, ["1", "2", "3"], add=True).error_code == 0
    restart_broker(conn.bootstrap)
    b = conns()
    wire.wait_ready(b, topic)
    txn_ready(b, tid)
    assert latest(b, topic, isolation=1) == 0, "still open"
    t.c = b
    assert t.end(True) == 0
    assert wait_lso(b, topic, 4) == 4
    assert values(read_log(b, topic, isolation=1)) == [b"1", b"2", b"3"]


@pytest.mark.case("TXN-7")
@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_txn_7_unknown_transactional_id(conn, topics, unique, version):
    """A transactional id the coordinator does not know, or a producer id that is not its own, is 49 everywhere.

    SOURCES: redpanda-data/redpanda PR#22943, #15766
    """
    topic = topics(2)
    t = Txn(conn, unique("nobody"), init=False)
    txn_ready(conn, t.tid)
    t.pid, t.epoch = 12345, 0
    assert t.add((topic, 0), (topic, 1), version=version) == [49, 49]
    assert t.end(True, version=version) == 49
    assert t.end(False, version=version) == 49
    assert t.add_offsets("g", version=version) == 49
    known = Txn(conn, unique("tx"))
    known.pid += 100000
    assert known.add((topic, 0), version=version) == [49]
    assert known.end(True, version=version) == 49
    assert known.add_offsets("g", version=version) == 49


@pytest.mark.case("TXN-7")
def test_txn_7_empty_transactional_id(conn, topic):
    """An empty transactional id is an invalid request.

    SOURCES: apache/kafka PR#14370
    """
    t = Txn(conn, "", init=False)
    t.pid, t.epoch = 12345, 0
    assert t.add((topic, 0)) == [42]
    assert t.end(True) == 42
    assert t.add_offsets("g") == 42
    assert init_producer(conn, "").error_code == 42


@pytest.mark.case("TXN-7")
def test_txn_7_transactional_batch_without_a_transaction(conn, topic, tid):
    """A transactional batch for a partition that is not part of an open transaction is refused with 48 (120 from Produce
    v11 on) and nothing is written.

    SOURCES: apache/kafka PR#14370
    """
    t = Txn(conn, tid)
    for v in (3, 7, 9, 10):
        assert t.produce(topic, ["x"], version=v).error_code == 48, f"v{v}"
    assert t.produce(topic, ["x"], version=11).error_code == 120, "v11 knows the abortable code"
    assert latest(conn, topic) == 0
    assert t.produce(topic, ["ok"], add=True).error_code == 0
    assert t.end(True) == 0
    assert wait_lso(conn, topic, 2) == 2
    for v in (7, 9):
        assert t.produce(topic, ["late"], version=v).error_code == 48, f"v{v} after the commit"
    assert latest(conn, topic) == 2


@pytest.mark.case("TXN-8")
def test_txn_8_zombies_are_fenced_by_the_group(conn, conns, topic, group, tid):
    """TxnOffsetCommit v3+ checks generation, member and instance when they are given, and nothing when they are not.

    SOURCES: apache/kafka PR#7897; robot-head/crabka PR#371
    """
    wire.group_ready(conn, group)
    m = Member(conns(), group)
    s = Member(conns(), group, instance="i1")
    stable([m, s])
    g = m.gen
    t = Txn(conn, tid)
    assert t.add_offsets(group) == 0

    def commit(o, **kw):
        return t.commit_offsets(group, {(topic, 0): o}, **kw)

    for v in (3, 4):
        assert commit(1, version=v, generation=g, member=m.id) == [0]
        assert commit(2, version=v, generation=g - 1, member=m.id) == [22]
        assert commit(3, version=v, generation=g + 1, member=m.id) == [22]
        assert commit(4, version=v, generation=g, member="nope") == [25]
        assert commit(5, version=v, generation=g, member="nope", instance="i1") == [82]
        assert commit(6, version=v, generation=g, member=s.id, instance="i1") == [0]
        assert commit(7, version=v, generation=g, member=m.id, instance="i9") == [25]
        assert commit(8, version=v) == [0]
    assert commit(10, version=2) == [0], "v2 cannot carry a member"
    assert commit(11, version=3, generation=g, member=m.id) == [0]
    assert commit(12, version=3, generation=g - 1, member=m.id) == [22]
    assert t.end(True) == 0
    p = retry(
        lambda: committed(conn, group, topic, require_stable=True), lambda p: p.error_code != 88, 10
    )
    assert (p.error_code, p.committed_offset) == (0, 11)
    assert m.heartbeat() == 0
    assert s.heartbeat() == 0


@pytest.mark.case("TXN-8")
def test_txn_8_missing_group(conn, topic, group, tid):
    """For a group that does not exist a generation is wrong (22); without one the offsets are taken.

    SOURCES: apache/kafka PR#7897
    """
    wire.group_ready(conn, group)
    t = Txn(conn, tid)
    assert t.add_offsets(group) == 0
    assert t.commit_offsets(group, {(topic, 0): 1}, generation=3, member="m") == [22]
    assert t.commit_offsets(group, {(topic, 0): 2}) == [0]
    assert t.end(True) == 0
    p = retry(
        lambda: committed(conn, group, topic, require_stable=True), lambda p: p.error_code != 88, 10
    )
    assert p.committed_offset == 2


@pytest.mark.case("TXN-9")
def test_txn_9_timeout_bounds(conn, unique):
    """Transaction timeouts of 0, below 0 or above transaction.max.timeout.ms (15 minutes) are refused with 50.

    SOURCES: redpanda-data/redpanda#14624
    """
    for v in (0, 1, 2, 3, 4):
        for ms, want in ((900001, 50), (2**31 - 1, 50), (0, 50), (-1, 50), (900000, 0), (1, 0)):
            tid = unique("tx")
            txn_ready(conn, tid)
            r = init_producer(conn, tid, ms, version=v)
            assert r.error_code == want, f"v{v} timeout {ms}"
            if want:
                assert (r.producer_id, r.producer_epoch) == (-1, -1), r


def _expiry(conn, conns, topic, tid, between=lambda: None):
    t = Txn(conn, tid, timeout_ms=3000)
    assert t.produce(topic, ["dead"], add=True).error_code == 0
    assert produce_once(conn, topic, 0, batch(["plain"])).error_code == 0
    p = fetch_partition(conn, topic, isolation=1, max_wait_ms=200)
    assert p.batches == []
    assert p.last_stable_offset == 0
    between()
    c = conns()
    wire.wait_ready(c, topic)
    assert wait_lso(c, topic, 3, seconds=25) == 3, "the broker must abort the expired transaction"
    bs = read_log(c, topic)
    assert [b.control for b in bs] == [False, False, True]
    assert marker_type(bs[2]) == "abort"
    p = fetch_partition(c, topic, isolation=1)
    assert [r.value for r in read_committed(p.batches, p.aborted_transactions)] == [b"plain"]
    t.c = c
    assert t.end(True, version=3) == 90
    assert t.end(True, version=1) == 47
    assert t.add((topic, 0), version=3) == [90]
    assert t.add((topic, 0), version=1) == [47]
    assert t.produce(topic, ["zombie"]).error_code == 47
    assert latest(c, topic) == 3
    n = Txn(c, tid)
    assert n.pid == t.pid
    assert n.epoch > t.epoch
    assert n.produce(topic, ["new"], add=True).error_code == 0
    assert n.end(True) == 0


@pytest.mark.case("TXN-9")
@pytest.mark.slow
def test_txn_9_expired_transaction_is_aborted(conn, conns, topic, tid):
    """A transaction older than its timeout is aborted by the broker; its producer is fenced from then on.

    SOURCES: redpanda-data/redpanda#14624, #17827, #24445
    """
    _expiry(conn, conns, topic, tid)


@pytest.mark.case("TXN-9")
@pytest.mark.slow
@pytest.mark.restart
@pytest.mark.timeout(150)
def test_txn_9_expired_transaction_is_aborted_after_restart(
    conn, conns, topic, tid, restart_broker
):
    """The same when the broker restarts before the timeout.

    SOURCES: redpanda-data/redpanda#17827
    """
    _expiry(conn, conns, topic, tid, lambda: restart_broker(conn.bootstrap))
