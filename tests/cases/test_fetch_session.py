"""Fetch sessions and topic ids."""

import time
import uuid

import pytest

from tests import wire as w


def _close(c, sid, epoch=-1):
    w.fetch(c, None, {}, session_id=sid, session_epoch=epoch, max_wait=0)


def _open(c, topic, parts, version=12, **kw):
    r = w.fetch(c, topic, parts, version, session_id=0, session_epoch=0, max_wait=0, **kw)
    assert r.error_code == 0
    return r


@pytest.mark.case("FETCH-6")
def test_fetch_6_incremental_answers_and_forgotten_partitions(c):
    """In a session only partitions with something new are answered: none when nothing changed, the one with data
    until its position moves on, none once it is forgotten.

    SOURCES: platformatic/kafka#321, thomhurst/Dekaf#1002
    """
    topic = w.unique("fetch6")
    w.create_topic(c, topic, partitions=3)
    for p in (0, 1, 2):
        w.produce(c, topic, [b"old"], p)
    r = _open(c, topic, {0: 1, 1: 1, 2: 1})
    sid = r.session_id
    assert sid and set(w.parts_of(r)) == {0, 1, 2}, "the first answer has all partitions"
    epoch = 0

    def step(parts=None, **kw):
        nonlocal epoch
        epoch += 1
        r = w.fetch(
            c,
            topic,
            parts or {},
            12,
            session_id=sid,
            session_epoch=epoch,
            **{"max_wait": 300, **kw},
        )
        assert (r.error_code, r.session_id) == (0, sid)
        return w.parts_of(r)

    t0 = time.monotonic()
    assert step() == {}
    assert time.monotonic() - t0 >= 0.25, "nothing new: waits like any fetch"
    w.produce(c, topic, [b"new"], 1)
    got = step(max_wait=5000)
    assert set(got) == {1}
    assert [b.base_offset for b in w.parse(got[1].records)[0]] == [1]
    assert got[1].high_watermark == 2
    got = step(max_wait=5000)
    assert set(got) == {1} and [b.base_offset for b in w.parse(got[1].records)[0]] == [1], (
        "position not moved"
    )
    assert step({1: 2}) == {}
    assert step() == {}
    assert w.delete_records(c, topic, 1, 2).low_watermark == 1
    got = step()
    assert set(got) == {2} and got[2].log_start_offset == 1 and not got[2].records, (
        "log start has changed"
    )
    assert step() == {}
    assert step(forgotten=[1]) == {}
    w.produce(c, topic, [b"unseen"], 1)
    assert step() == {}
    w.produce(c, topic, [b"seen"], 0)
    assert set(step(max_wait=5000)) == {0}
    got = step({1: 2, 0: 2}, max_wait=5000)  # back in, at an older position
    assert set(got) == {1}
    assert [b.base_offset for b in w.parse(got[1].records)[0]] == [2]
    _close(c, sid)


@pytest.mark.case("FETCH-7")
def test_fetch_7_a_recreated_topic_is_another_topic(c):
    """Fetch by id never reads a topic re-created under the same name: the old id is unknown (100), also in a
    session opened before, while by name and by the new id there is the new topic from offset 0.

    SOURCES: twmb/franz-go#1426, thomhurst/Dekaf#815, aiven/inkless#265, streamnative/kop#530
    """
    topic = w.unique("fetch7")
    w.create_topic(c, topic)
    for _ in range(5):
        w.produce(c, topic, [b"old"])
    id1 = w.topic_id(c, topic)
    r = w.fetch(c, topic, {0: 0}, 13, tid=id1, session_id=0, session_epoch=0, max_wait=0)
    sid = r.session_id
    assert r.error_code == 0
    assert sid
    assert len(w.parse(w.parts_of(r)[0].records)[0]) == 5
    w.delete_topic(c, topic)
    w.wait_gone(c, topic)
    assert w.fetch_one(c, topic, 0, max_wait=0).error_code == 3
    w.create_topic(c, topic)
    id2 = w.topic_id(c, topic)
    assert id2 != id1
    w.produce(c, topic, [b"new"])
    for gone in (id1, uuid.uuid4(), None):
        r = w.fetch(c, topic, {0: 0}, 13, tid=gone, max_wait=0)
        assert r.error_code == 0
        assert [(t.topic_id.int if t.topic_id else 0) for t in r.responses] == [
            gone.int if gone else 0
        ]
        p = w.parts_of(r)[0]
        assert (p.error_code, p.high_watermark, p.records or b"") == (100, -1, b"")
    r = w.fetch(c, topic, {0: 0}, 13, tid=id1, session_id=sid, session_epoch=1, max_wait=0)
    codes = [p.error_code for t in r.responses for p in t.partitions]
    assert r.error_code in (0, 70, 103)
    assert all(x in (100, 103) for x in codes)
    assert r.error_code or codes
    for version, key in ((12, {}), (4, {}), (13, {"tid": id2})):
        p = w.fetch_one(c, topic, 0, version=version, **key)
        got, _ = w.parse(p.records)
        assert p.error_code == 0
        assert [b.base_offset for b in got] == [0]
        assert got[0].records[0].value == b"new"
    _close(c, sid)
