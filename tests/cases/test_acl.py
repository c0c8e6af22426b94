"""Authorization: which code, and what stays hidden."""

import time

import pytest

from tests import wire
from tests.wire import ZERO_UUID, Conn, batch, retry

ALL, READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE = 2, 3, 4, 5, 6, 7, 8
TOPIC, GROUP, CLUSTER, TXN = 2, 3, 4, 5
LITERAL, PREFIXED = 3, 4
ALLOW, DENY = 3, 2


class Acl:
    """Admin and user connections plus bookkeeping of the ACLs made, so that they can be removed."""

    def __init__(self, acl):
        self.bootstrap, admin, self.user = acl
        self.a = Conn(self.bootstrap, sasl=("PLAIN", *admin))
        self.u = Conn(self.bootstrap, sasl=("PLAIN", *self.user))
        self.made = []
        wire.group_ready(self.a, "warm-up")
        wire.txn_ready(self.a, "warm-up")

    def grant(self, rtype, name, op, pattern=LITERAL, perm=ALLOW):
        entry = {
            "resource_type": rtype,
            "resource_name": name,
            "resource_pattern_type": pattern,
            "principal": "User:" + self.user[0],
            "host": "*",
            "operation": op,
            "permission_type": perm,
        }
        r = self.a.send("create_acls", 3, creations=[entry])
        assert r.results[0].error_code == 0, r
        self.made.append(entry)

    def close(self):
        self.a.send(
            "delete_acls",
            3,
            filters=[
                {
                    "resource_type_filter": e["resource_type"],
                    "resource_name_filter": e["resource_name"],
                    "pattern_type_filter": e["resource_pattern_type"],
                    "principal_filter": e["principal"],
                    "host_filter": e["host"],
                    "operation": e["operation"],
                    "permission_type": e["permission_type"],
                }
                for e in self.made
            ],
        )
        self.a.close()
        self.u.close()


@pytest.fixture
def env(acl):
    e = Acl(acl)
    yield e
    e.close()


def _meta(c, names, version=12, auto=True):
    r = c.send(
        "metadata",
        version,
        topics=None if names is None else [{"name": n} for n in names],
        allow_auto_topic_creation=auto,
    )
    return {t.name: t for t in r.topics}


def _granted(env, unique, *extra):
    """Topics ok (READ granted) and secret (nothing granted)."""
    ok, secret = wire.new_topic(env.a, unique("ok")), wire.new_topic(env.a, unique("secret"))
    env.grant(TOPIC, ok, READ)
    assert wire.produce_once(env.a, ok, 0, batch(["x"])).error_code == 0
    assert wire.produce_once(env.a, secret, 0, batch(["x"])).error_code == 0
    t = retry(lambda: _meta(env.u, [ok])[ok], lambda t: t.error_code == 0, 5)
    assert t.error_code == 0, "READ implies DESCRIBE"
    return ok, secret


@pytest.mark.case("ACL-1")
def test_acl_1_metadata_hides_and_denies(env, unique):
    """Named and not allowed is 29, whether the topic exists or not, without id or partitions, and is not created; the
    list of all topics leaves such topics out.

    SOURCES: apache/kafka PR#3924; confluentinc/librdkafka#3522; tchiotludo/akhq#116
    """
    ok, secret = _granted(env, unique)
    nosuch = unique("nosuch")
    for v in (4, 9, 12):
        t = _meta(env.u, [ok, secret, nosuch], v)
        assert {n: x.error_code for n, x in t.items()} == {ok: 0, secret: 29, nosuch: 29}, f"v{v}"
        for n in (secret, nosuch):
            assert t[n].partitions == [] and t[n].get("topic_id", ZERO_UUID) == ZERO_UUID, f"v{v}"
        assert len(t[ok].partitions) == 1
        r = _meta(env.u, None, v)
        assert ok in r and secret not in r and all(x.error_code == 0 for x in r.values()), f"v{v}"
    time.sleep(0.5)
    assert _meta(env.a, [nosuch], auto=False)[nosuch].error_code == 3, "must not have been created"


@pytest.mark.case("ACL-1")
def test_acl_1_metadata_by_id(env, unique):
    """Asked by id, a topic that may not be described is 29 and its name is not given away.

    SOURCES: apache/kafka PR#3924
    """
    ok, secret = _granted(env, unique)
    ids = {n: _meta(env.a, [n])[n].topic_id for n in (ok, secret)}
    r = env.u.send(
        "metadata",
        12,
        allow_auto_topic_creation=False,
        topics=[{"name": None, "topic_id": i} for i in ids.values()],
    )
    got = {t.topic_id: (t.error_code, t.name) for t in r.topics}
    assert got == {ids[ok]: (0, ok), ids[secret]: (29, None)}


@pytest.mark.case("ACL-1")
def test_acl_1_data_apis_answer_per_partition(env, unique):
    """Fetch, ListOffsets, Produce and DeleteRecords: 29 for the forbidden topic, the allowed one is served.

    SOURCES: apache/kafka PR#3924; confluentinc/librdkafka#3522; confluentinc/ksql PR#5865
    """
    ok, secret = _granted(env, unique)
    nosuch = unique("nosuch")
    u = env.u
    part = {
        "partition": 0,
        "current_leader_epoch": -1,
        "fetch_offset": 0,
        "log_start_offset": -1,
        "partition_max_bytes": 1 << 20,
    }
    r = u.send(
        "fetch",
        11,
        replica_id=-1,
        max_wait_ms=100,
        min_bytes=1,
        max_bytes=1 << 20,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        rack_id="",
        forgotten_topics_data=[],
        topics=[{"topic": n, "partitions": [part]} for n in (ok, secret, nosuch)],
    )
    p = {t.topic: t.partitions[0] for t in r.responses}
    assert {n: x.error_code for n, x in p.items()} == {ok: 0, secret: 29, nosuch: 29}
    assert p[ok].records
    assert not p[secret].records
    assert p[secret].high_watermark == -1
    r = u.send(
        "list_offsets",
        5,
        replica_id=-1,
        isolation_level=0,
        topics=[
            {
                "name": n,
                "partitions": [{"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1}],
            }
            for n in (ok, secret, nosuch)
        ],
    )
    p = {t.name: t.partitions[0] for t in r.topics}
    assert {n: (x.error_code, x.offset) for n, x in p.items()} == {
        ok: (0, 1),
        secret: (29, -1),
        nosuch: (29, -1),
    }
    w = wire.new_topic(env.a, unique("w"))
    env.grant(TOPIC, w, WRITE)
    retry(lambda: wire.produce_once(u, w, 0, batch(["a"])), lambda x: x.error_code == 0, 5)
    n0 = wire.latest(env.a, w)
    r = u.send(
        "produce",
        9,
        transactional_id=None,
        acks=-1,
        timeout_ms=5000,
        topic_data=[
            {"name": n, "partition_data": [{"index": 0, "records": batch(["b"])}]}
            for n in (ok, secret, nosuch, w)
        ],
    )
    p = {t.name: t.partition_responses[0].error_code for t in r.responses}
    assert p == {ok: 29, secret: 29, nosuch: 29, w: 0}
    assert wire.latest(env.a, ok) == 1
    assert wire.latest(env.a, w) == n0 + 1
    r = u.send(
        "delete_records",
        2,
        timeout_ms=5000,
        topics=[
            {"name": n, "partitions": [{"partition_index": 0, "offset": 1}]} for n in (ok, secret)
        ],
    )
    assert {t.name: t.partitions[0].error_code for t in r.topics} == {ok: 29, secret: 29}
    assert wire.earliest(env.a, ok) == 0


@pytest.mark.case("ACL-1")
def test_acl_1_groups(env, unique):
    """Foreign groups are 30 in every group call; a granted group works.

    SOURCES: tchiotludo/akhq#116
    """
    ok, secret = _granted(env, unique)
    g, mine = unique("foreign"), unique("mine")
    u = env.u
    env.grant(GROUP, mine, READ)
    retry(
        lambda: u.send("find_coordinator", 3, key=mine, key_type=0), lambda r: r.error_code == 0, 5
    )

    def join(group):
        return u.send(
            "join_group",
            5,
            group_id=group,
            session_timeout_ms=10000,
            rebalance_timeout_ms=10000,
            member_id="",
            group_instance_id=None,
            protocol_type="consumer",
            protocols=[{"name": "range", "metadata": b""}],
        ).error_code

    assert u.send("find_coordinator", 3, key=mine, key_type=0).error_code == 0
    assert join(mine) == 79
    assert u.send("find_coordinator", 3, key=g, key_type=0).error_code == 30
    r = u.send("find_coordinator", 4, key_type=0, coordinator_keys=[g, mine])
    assert {x.key: x.error_code for x in r.coordinators} == {g: 30, mine: 0}
    assert join(g) == 30
    assert (
        u.send(
            "sync_group", 3, group_id=g, generation_id=1, member_id="m", assignments=[]
        ).error_code
        == 30
    )
    assert u.send("heartbeat", 3, group_id=g, generation_id=1, member_id="m").error_code == 30
    assert u.send("leave_group", 2, group_id=g, member_id="m").error_code == 30
    assert u.send("describe_groups", 5, groups=[g]).groups[0].error_code == 30
    assert u.send("delete_groups", 2, groups_names=[g]).results[0].error_code == 30
    assert u.send("offset_delete", 0, group_id=g, topics=[]).error_code == 30
    c = lambda group, *ts: {
        t.name: t.partitions[0].error_code
        for t in u.send(
            "offset_commit",
            7,
            group_id=group,
            generation_id_or_member_epoch=-1,
            member_id="",
            topics=[
                {
                    "name": n,
                    "partitions": [
                        {"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}
                    ],
                }
                for n in ts
            ],
        ).topics
    }
    assert c(g, ok) == {ok: 30}
    assert c(mine, ok, secret) == {ok: 0, secret: 29}
    assert u.send("offset_fetch", 7, group_id=g, topics=None).error_code == 30
    r = u.send(
        "offset_fetch",
        7,
        group_id=mine,
        topics=[{"name": n, "partition_indexes": [0]} for n in (ok, secret)],
    )
    assert {t.name: t.partitions[0].error_code for t in r.topics} == {ok: 0, secret: 29}
    r = u.send("offset_fetch", 7, group_id=mine, topics=None)
    assert [t.name for t in r.topics] == [ok]
    names = {x.group_id for x in u.send("list_groups", 4, states_filter=[]).groups}
    assert mine in names
    assert g not in names


@pytest.mark.case("ACL-1")
def test_acl_1_topic_admin_and_cluster(env, unique):
    """Creating, deleting and describing foreign topics is 29; cluster-level calls are 31.

    SOURCES: confluentinc/ksql PR#5865
    """
    ok, secret = _granted(env, unique)
    u, n = env.u, unique("new")
    r = u.send(
        "create_topics",
        5,
        timeout_ms=5000,
        validate_only=False,
        topics=[
            {
                "name": n,
                "num_partitions": 1,
                "replication_factor": 1,
                "assignments": [],
                "configs": [],
            }
        ],
    )
    assert r.topics[0].error_code == 29
    r = u.send("delete_topics", 5, timeout_ms=5000, topic_names=[ok, secret, n])
    assert {x.name: x.error_code for x in r.responses} == {ok: 29, secret: 29, n: 29}
    r = u.send(
        "create_partitions",
        2,
        timeout_ms=5000,
        validate_only=False,
        topics=[{"name": ok, "count": 3, "assignments": None}],
    )
    assert r.results[0].error_code == 29
    r = u.send(
        "describe_configs",
        2,
        resources=[
            {"resource_type": 2, "resource_name": x, "configuration_keys": None}
            for x in (ok, secret)
        ],
    )
    assert {x.resource_name: x.error_code for x in r.results} == {ok: 29, secret: 29}
    r = u.send(
        "incremental_alter_configs",
        1,
        validate_only=False,
        resources=[
            {
                "resource_type": 2,
                "resource_name": ok,
                "configs": [{"name": "retention.ms", "config_operation": 0, "value": "1000"}],
            }
        ],
    )
    assert r.responses[0].error_code == 29
    assert (
        u.send(
            "describe_acls",
            2,
            resource_type_filter=1,
            pattern_type_filter=1,
            operation=1,
            permission_type=1,
        ).error_code
        == 31
    )
    r = u.send(
        "create_acls",
        2,
        creations=[
            {
                "resource_type": TOPIC,
                "resource_name": "x",
                "resource_pattern_type": LITERAL,
                "principal": "User:u",
                "host": "*",
                "operation": ALL,
                "permission_type": ALLOW,
            }
        ],
    )
    assert r.results[0].error_code == 31
    assert u.send("describe_client_quotas", 1, components=[], strict=False).error_code == 31
    m = _meta(env.a, [ok, secret])
    assert {x.error_code for x in m.values()} == {0}, "nothing was deleted"


@pytest.mark.case("ACL-1")
def test_acl_1_transactions(env, unique):
    """A foreign transactional id is 53; an idempotent producer without any write permission is 31, with WRITE on some
    topic it is allowed.

    SOURCES: confluentinc/ksql PR#5865
    """
    u, t = env.u, unique("tx")
    assert (
        u.send(
            "init_producer_id",
            4,
            transactional_id=t,
            transaction_timeout_ms=60000,
            producer_id=-1,
            producer_epoch=-1,
        ).error_code
        == 53
    )
    assert u.send("find_coordinator", 3, key=t, key_type=1).error_code == 53
    assert (
        u.send(
            "end_txn", 3, transactional_id=t, producer_id=1, producer_epoch=0, committed=True
        ).error_code
        == 53
    )
    assert (
        u.send(
            "add_offsets_to_txn",
            3,
            transactional_id=t,
            producer_id=1,
            producer_epoch=0,
            group_id="g",
        ).error_code
        == 53
    )
    r = u.send(
        "add_partitions_to_txn",
        3,
        v3_and_below_transactional_id=t,
        v3_and_below_producer_id=1,
        v3_and_below_producer_epoch=0,
        v3_and_below_topics=[{"name": "x", "partitions": [0]}],
    )
    assert r.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code == 53
    assert (
        u.send(
            "init_producer_id",
            4,
            transactional_id=None,
            transaction_timeout_ms=60000,
            producer_id=-1,
            producer_epoch=-1,
        ).error_code
        == 31
    )
    mine = unique("mine")
    env.grant(TXN, mine, WRITE)
    r = retry(lambda: wire.init_producer(u, mine), lambda r: r.error_code == 0, 10)
    assert r.error_code == 0
    env.grant(TOPIC, unique("w"), WRITE)
    r = retry(
        lambda: u.send(
            "init_producer_id",
            4,
            transactional_id=None,
            transaction_timeout_ms=60000,
            producer_id=-1,
            producer_epoch=-1,
        ),
        lambda r: r.error_code == 0,
        5,
    )
    assert r.error_code == 0


@pytest.mark.case("ACL-1")
def test_acl_1_patterns_and_deny(env, unique):
    """Prefixed and '*' grants apply, and a deny wins over every allow.

    SOURCES: apache/kafka PR#3924
    """
    base = unique("pre")
    a, b, other = (wire.new_topic(env.a, n) for n in (base + "-a", base + "-b", unique("other")))
    env.grant(TOPIC, base, READ, PREFIXED)
    codes = lambda: {n: x.error_code for n, x in _meta(env.u, [a, b, other]).items()}
    want = {a: 0, b: 0, other: 29}
    assert retry(codes, lambda c: c == want, 5) == want
    env.grant(TOPIC, b, DESCRIBE, LITERAL, DENY)
    want = {a: 0, b: 29, other: 29}
    assert retry(codes, lambda c: c == want, 5) == want
    assert wire.fetch_partition(env.u, a).error_code == 0
    env.grant(TOPIC, "*", READ)
    want = {a: 0, b: 29, other: 0}
    assert retry(codes, lambda c: c == want, 5) == want
