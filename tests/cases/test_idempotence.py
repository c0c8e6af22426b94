"""Idempotent producers: sequence numbers, duplicates, producer epochs."""

import pytest

from tests import wire
from tests.wire import batch, init_producer, latest, produce_once, read_log, values


@pytest.mark.case("IDEM-1")
def test_idem_1_last_five_batches_are_recognised_as_duplicates(conn, topic):
    """A resend of any of the last five batches is answered with its first offset and writes nothing; an older one and
    a gap are out of order.

    SOURCES: redpanda-data/redpanda#3038, #3039, #3826
    """
    pid = init_producer(conn).producer_id

    def send(seq):
        return produce_once(
            conn, topic, 0, batch([f"v{seq}"], producer_id=pid, producer_epoch=0, base_sequence=seq)
        )

    for seq in range(7):
        r = send(seq)
        assert (r.error_code, r.base_offset) == (0, seq)
    for seq in (6, 5, 4, 3, 2, 4, 6):
        r = send(seq)
        assert (r.error_code, r.base_offset) == (0, seq), f"resend of sequence {seq}"
    for seq in (1, 0, 9, 8):
        r = send(seq)
        assert (r.error_code, r.base_offset) == (45, -1), f"sequence {seq}"
    assert latest(conn, topic) == 7
    r = send(7)
    assert (r.error_code, r.base_offset) == (0, 7)
    assert values(read_log(conn, topic)) == [b"v%d" % i for i in range(8)]


@pytest.mark.case("IDEM-1")
def test_idem_1_duplicates_are_counted_per_partition(conn, topics):
    """Sequence memory belongs to one partition: the same sequence on another partition is a new record.

    SOURCES: redpanda-data/redpanda#3038
    """
    t = topics(2)
    pid = init_producer(conn).producer_id
    for p in (0, 1):
        for seq in (0, 1):
            r = produce_once(
                conn, t, p, batch(["a"], producer_id=pid, producer_epoch=0, base_sequence=seq)
            )
            assert (r.error_code, r.base_offset) == (0, seq)
    assert [latest(conn, t, p) for p in (0, 1)] == [2, 2]


@pytest.mark.case("IDEM-1")
@pytest.mark.restart
@pytest.mark.timeout(150)
def test_idem_1_duplicate_recognised_after_restart(conn, topic, restart_broker, conns):
    """The last batch of a producer is still recognised after an orderly restart of the broker.

    SOURCES: redpanda-data/redpanda#3038
    """
    pid = init_producer(conn).producer_id
    for seq in range(7):
        assert (
            produce_once(
                conn, topic, 0, batch(["v"], producer_id=pid, producer_epoch=0, base_sequence=seq)
            ).error_code
            == 0
        )
    restart_broker(conn.bootstrap)
    c = conns()
    wire.wait_ready(c, topic)
    r = produce_once(c, topic, 0, batch(["v"], producer_id=pid, producer_epoch=0, base_sequence=6))
    assert (r.error_code, r.base_offset) == (0, 6)
    assert (
        produce_once(
            c, topic, 0, batch(["v"], producer_id=pid, producer_epoch=0, base_sequence=8)
        ).error_code
        == 45
    )
    r = produce_once(c, topic, 0, batch(["v"], producer_id=pid, producer_epoch=0, base_sequence=7))
    assert (r.error_code, r.base_offset) == (0, 7)
    assert latest(c, topic) == 8


@pytest.mark.case("IDEM-3")
def test_idem_3_sequence_wraps_to_zero(conn, topic):
    """After sequence 2147483647 comes 0, also inside one batch; negative sequences are invalid.

    SOURCES: redpanda-data/redpanda#4854
    """
    top = 2**31 - 1

    def send(pid, seq, n=1):
        r = produce_once(
            conn, topic, 0, batch(["v"] * n, producer_id=pid, producer_epoch=0, base_sequence=seq)
        )
        return r.error_code, r.base_offset

    p1 = init_producer(conn).producer_id
    assert send(p1, top) == (0, 0)
    assert send(p1, 0) == (0, 1)
    assert send(p1, top) == (0, 0), "resend of the batch before the wrap"
    assert send(p1, 2) == (45, -1)
    p2 = init_producer(conn).producer_id
    assert p2 != p1
    assert send(p2, top - 1, 4) == (0, 2)
    assert send(p2, 3) == (45, -1)
    assert send(p2, 2) == (0, 6)
    assert send(p2, -(2**31))[0] == 87
    assert send(p2, -1)[0] == 87
    assert latest(conn, topic) == 7


@pytest.mark.case("IDEM-20")
def test_idem_20_a_batch_outside_transactions_is_fenced_by_a_later_epoch(conn, topic):
    """A transactional id gives a producer id and the next epoch. Batches outside of transactions may
    have them; once one of a later epoch was appended, those of an earlier one are refused (47), at
    whatever sequence, also where they were never seen; no marker is written.

    SOURCES: KIP-98, KIP-360
    """
    name = wire.unique("writer")
    first = init_producer(conn, name)
    assert _outside(conn, topic, "a", first, 0).error_code == 0
    second = init_producer(conn, name)
    assert second.producer_id == first.producer_id
    assert second.producer_epoch == first.producer_epoch + 1
    assert _outside(conn, topic, "still alone", first, 1).error_code == 0
    assert _outside(conn, topic, "b", second, 0).error_code == 0
    for sequence in (0, 1, 2, 7):
        assert _outside(conn, topic, "late", first, sequence).error_code == 47
    assert _outside(conn, topic, "c", second, 1).error_code == 0
    assert values(read_log(conn, topic)) == [b"a", b"still alone", b"b", b"c"]
    assert latest(conn, topic) == 4


def _outside(conn, topic, value, producer, sequence):
    records = batch(
        [value],
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        base_sequence=sequence,
    )
    return produce_once(conn, topic, 0, records)
