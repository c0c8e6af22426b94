"""Offsets of classic groups: without members, metadata, topic ids, open transactions."""

import uuid

import pytest

from tests.cases.helpers import (
    Member,
    Txn,
    committed,
    join_once,
    simple_commit,
    stable,
    state_of,
    subscription,
)
from tests.wire import group_ready, retry


def _topics(*told):
    """OffsetCommit's topics from (name, partition, offset, metadata)."""
    return [
        {
            "name": name,
            "partitions": [
                {
                    "partition_index": partition,
                    "committed_offset": offset,
                    "committed_leader_epoch": -1,
                    "committed_metadata": metadata,
                }
            ],
        }
        for name, partition, offset, metadata in told
    ]


def _commit(c, group, version, topics, **told):
    body = {
        "group_id": group,
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "retention_time_ms": -1,
        "topics": topics,
    }
    r = c.send("offset_commit", version, {**body, **told})
    return [p.error_code for t in r.topics for p in t.partitions]


@pytest.mark.case("GRP-6")
def test_grp_6_commits_without_membership(conn, topic, unique):
    """Without generation and member any group takes offsets and is there from then on, the one with the empty name too;
    a generation or a member of a group that is not there is 22, 69 from v9 on.

    SOURCES: apache/kafka PR#267 (KAFKA-2596); KIP-289; redpanda-data/redpanda#2597
    """
    for version in (2, 7, 8, 9):
        g = unique("g")
        group_ready(conn, g)
        told = [(1, "m"), (0, ""), (1, "")]
        codes = [
            simple_commit(
                conn, g, topic, 5, version=version, generation_id_or_member_epoch=e, member_id=m
            )
            for e, m in told
        ]
        assert codes == [69 if version >= 9 else 22] * 3, f"v{version}"
        assert state_of(conn, g) == "Dead"
        assert simple_commit(conn, g, topic, 5, version=version) == 0
        assert state_of(conn, g) == "Empty"
    group_ready(conn, "")
    assert simple_commit(conn, "", topic, 9) == 0
    assert committed(conn, "", topic).committed_offset == 9
    for api, version, told in (
        ("heartbeat", 4, {"generation_id": 1, "member_id": "m"}),
        ("leave_group", 2, {"member_id": "m"}),
        ("sync_group", 3, {"generation_id": 1, "member_id": "m", "assignments": []}),
    ):
        assert conn.send(api, version, group_id="", **told).error_code == 24, api
    assert join_once(conn, "", 5).error_code == 24
    assert conn.send("delete_groups", 2, groups_names=[""]).results[0].error_code == 0


@pytest.mark.case("GRP-16")
def test_grp_16_metadata_of_commits(conn, topics, group):
    """At most offset.metadata.max.bytes (4,096) characters of metadata, 12 for more; null is read as empty; each
    partition is answered alone, and one that is not there is 3.

    SOURCES: dpkp/kafka-python#2322; confluentinc/librdkafka#1515; redpanda-data/redpanda#2597
    """
    topic = topics(3)
    group_ready(conn, group)
    for version in (2, 5, 8, 9):
        for metadata, code in (
            ("x" * 4096, 0),
            ("x" * 4097, 12),
            ("é" * 4096, 0),
            ("\U0001f600" * 2048, 0),
            ("\U0001f600" * 2049, 12),
            ("a\0b", 0),
            (None, 0),
        ):
            got = _commit(conn, group, version, _topics((topic, 0, 7, metadata)))
            assert got == [code], (version, metadata and metadata[:3])
            if not code:
                assert committed(conn, group, topic).metadata == (metadata or "")
        several = _topics(
            (topic, 1, 9, ""), (topic, 1, 9, "x" * 5000), (topic, 9, 9, ""), (topic, -1, 9, "")
        )
        assert sorted(_commit(conn, group, version, several)) == [0, 3, 3, 12]
        other = _topics(("no-such-topic", 0, 1, ""), (topic, 2, 11, "m"))
        assert sorted(_commit(conn, group, version, other)) == [0, 3]
    for offset in (-1, -100, 0, 2**63 - 1):
        assert simple_commit(conn, group, topic, offset) == 0, "any offset is taken"
        assert committed(conn, group, topic).committed_offset == offset


@pytest.mark.case("GRP-12")
def test_grp_12_offsets_by_topic_id(conn, topics, group):
    """OffsetCommit and OffsetFetch v10 name topics by id: unknown ids, and the zero id, are 100.

    SOURCES: KIP-848
    """
    topic = topics(2)
    asked = [{"topic_id": None, "name": topic}]
    known = conn.send("metadata", 12, topics=asked, allow_auto_topic_creation=False)
    right, wrong, zero = known.topics[0].topic_id, uuid.UUID(int=77), uuid.UUID(int=0)
    group_ready(conn, group)

    def by_id(which, *told):
        parts = _topics(*((None, p, o, "") for p, o in told))
        return {"topic_id": which, "partitions": [x["partitions"][0] for x in parts]}

    told = [
        by_id(right, (0, 5), (9, 5)),
        by_id(wrong, (0, 6)),
        by_id(zero, (0, 6)),
        by_id(right, (1, 8)),
    ]
    body = {"group_id": group, "generation_id_or_member_epoch": -1, "member_id": "", "topics": told}
    r = conn.send("offset_commit", 10, body)
    got = {(t.topic_id, p.partition_index): p.error_code for t in r.topics for p in t.partitions}
    assert got == {(right, 0): 0, (right, 9): 3, (wrong, 0): 100, (zero, 0): 100, (right, 1): 0}
    ask = [{"topic_id": i, "partition_indexes": [0]} for i in (right, wrong, zero)]
    r = conn.send("offset_fetch", 10, groups=[{"group_id": group, "topics": ask}]).groups[0]
    read = [(t.topic_id, p.committed_offset, p.error_code) for t in r.topics for p in t.partitions]
    assert sorted(read, key=str) == sorted(
        [(right, 5, 0), (wrong, -1, 100), (zero, -1, 100)], key=str
    )
    r = conn.send("offset_fetch", 10, groups=[{"group_id": group, "topics": None}]).groups[0]
    read = [(t.topic_id, p.committed_offset) for t in r.topics for p in t.partitions]
    assert sorted(read) == [(right, 5), (right, 8)]


@pytest.mark.case("GRP-14")
def test_grp_14_a_group_outlives_its_last_offset(conn, conns, topics, group):
    """OffsetDelete of the last offset leaves a group without members where it is, to expire; partitions that are not
    there are 3, subscribed ones 86.

    SOURCES: apache/kafka PR#15221 (KAFKA-14505); redpanda-data/redpanda PR#8669
    """
    topic = topics(2)
    group_ready(conn, group)

    def delete(name, *told):
        asked = [
            {"name": t, "partitions": [{"partition_index": p} for p in parts]} for t, parts in told
        ]
        r = conn.send("offset_delete", 0, group_id=name, topics=asked)
        parts = [(t.name, p) for t in r.topics for p in t.partitions]
        return r.error_code, sorted((n, p.partition_index, p.error_code) for n, p in parts)

    assert [simple_commit(conn, group, topic, 1, p) for p in (0, 1)] == [0, 0]
    assert delete(group, (topic, [0, 7, -1])) == (0, [(topic, -1, 3), (topic, 0, 0), (topic, 7, 3)])
    assert state_of(conn, group) == "Empty"
    assert delete(group, (topic, [1])) == (0, [(topic, 1, 0)])
    assert state_of(conn, group) == "Empty"
    assert delete(group, (topic, [1])) == (0, [(topic, 1, 0)])
    m = Member(conns(), group, session_ms=30000, protocols=[("range", subscription([topic]))])
    stable([m])
    assert m.commit(topic, 5) == 0
    assert delete(group, (topic, [0])) == (0, [(topic, 0, 86)])


@pytest.mark.case("GRP-14")
def test_grp_14_groups_and_offsets_of_open_transactions(conn, topic, unique):
    """Offsets of an open transaction: OffsetFetch with RequireStable says 88 until its end; a later plain commit wins.
    What OffsetDelete or DeleteGroups removed meanwhile does not come back with a commit.

    SOURCES: apache/kafka PR#19496 (KAFKA-19163), PR#19497 (KAFKA-19164), PR#15155; redpanda-data/redpanda#6423
    """
    for commit in (True, False):
        g = unique("g")
        group_ready(conn, g)
        t = Txn(conn, unique("tx"))
        assert t.add_offsets(g) == 0
        assert t.commit_offsets(g, {(topic, 0): 5}) == [0]
        assert committed(conn, g, topic, require_stable=True).error_code == 88
        p = committed(conn, g, topic)
        assert (p.error_code, p.committed_offset) == (0, -1)
        assert simple_commit(conn, g, topic, 77) == 0
        assert committed(conn, g, topic, require_stable=True).error_code == 88
        assert committed(conn, g, topic).committed_offset == 77
        assert t.end(commit) == 0
        p = retry(
            lambda name=g: committed(conn, name, topic, require_stable=True),
            lambda p: p.error_code != 88,
            10,
        )
        assert (p.error_code, p.committed_offset) == (0, 77)
    for whole in (True, False):
        g = unique("g")
        group_ready(conn, g)
        t = Txn(conn, unique("tx"))
        assert t.add_offsets(g) == 0
        assert t.commit_offsets(g, {(topic, 0): 5}) == [0]
        if whole:
            assert conn.send("delete_groups", 2, groups_names=[g]).results[0].error_code == 0
        else:
            one = [{"name": topic, "partitions": [{"partition_index": 0}]}]
            r = conn.send("offset_delete", 0, group_id=g, topics=one)
            assert r.topics[0].partitions[0].error_code == 0
        assert committed(conn, g, topic, require_stable=True).error_code == 0
        assert t.end(True) == 0
        ends = retry(lambda t=t: _state(conn, t.tid), lambda s: s.startswith("Complete"), 10)
        assert ends == "CompleteCommit"
        assert committed(conn, g, topic, require_stable=True).committed_offset == -1
        assert state_of(conn, g) == ("Dead" if whole else "Empty")


def _state(c, tid) -> str:
    return (
        c.send("describe_transactions", 0, transactional_ids=[tid])
        .transaction_states[0]
        .transaction_state
    )
