"""What user interfaces, Connect, Spark and exporters ask for."""

import concurrent.futures
import json
import os
import socket
import subprocess
import time
import urllib.request

import pytest

from tests import wire as w


@pytest.mark.case("ADM-10")
def test_adm_10_connect_internal_topics(bootstrap, c):
    """cleanup.policy=compact given at creation is stored and described as exactly 'compact' on the topic; creating
    it again gives 36; reading such topics to their end offsets terminates, empty or filled.

    SOURCES: apache/kafka#8828 (KAFKA-9216), apache/doris-kafka-connector#46
    """
    from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
    from confluent_kafka.admin import AdminClient, NewTopic

    a = AdminClient({"bootstrap.servers": bootstrap})
    for partitions, filled in ((25, True), (1, False), (5, True)):
        topic = w.unique("connect")
        new = NewTopic(topic, partitions, 1, config={"cleanup.policy": "compact"})
        a.create_topics([new])[topic].result(15)
        with pytest.raises(KafkaException) as e:
            a.create_topics([new])[topic].result(15)
        assert e.value.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS
        w.wait_ready(c, topic, partitions)
        x = w.config_of(c, topic, "cleanup.policy")
        assert (x.value, x.config_source) == ("compact", 1)
        if filled:
            for p in range(0, partitions, 2):
                w.produce(c, topic, [(b"k", b"v"), (b"k", None)], p)
        for isolation in ("read_committed", "read_uncommitted"):
            q = Consumer(
                {
                    "bootstrap.servers": bootstrap,
                    "group.id": w.unique("g"),
                    "isolation.level": isolation,
                    "enable.auto.commit": False,
                }
            )
            tps = [TopicPartition(topic, p, 0) for p in range(partitions)]
            ends = {
                p: q.get_watermark_offsets(TopicPartition(topic, p), 10)[1]
                for p in range(partitions)
            }
            q.assign(tps)
            seen, limit = dict.fromkeys(ends, 0), time.monotonic() + 10
            while seen != ends and time.monotonic() < limit:
                for m in q.consume(100, 0.2):
                    assert not m.error()
                    seen[m.partition()] = m.offset() + 1
            q.close()
            assert seen == ends


@pytest.mark.case("ADM-10")
@pytest.mark.slow
@pytest.mark.timeout(280)
def test_adm_10_a_connect_worker_starts(bootstrap, c, kafka_tool, tmp_path):
    """A distributed Connect worker creates its three internal topics, starts and lists its connectors (needs
    Apache Kafka's jars with Connect among them).

    SOURCES: apache/kafka#8828 (KAFKA-9216)
    """
    if not any(n.startswith("connect-runtime") for n in os.listdir(kafka_tool.libs)):
        pytest.skip("no Connect among the jars")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    name = w.unique("connect")
    props = tmp_path / "worker.properties"
    props.write_text(
        "\n".join(
            [
                f"bootstrap.servers={bootstrap}",
                f"group.id={name}",
                *(f"{x}.storage.topic={name}-{x}" for x in ("config", "offset", "status")),
                *(f"{x}.storage.replication.factor=1" for x in ("config", "offset", "status")),
                *(
                    f"{x}.converter=org.apache.kafka.connect.json.JsonConverter"
                    for x in ("key", "value")
                ),
                "plugin.discovery=service_load",
                f"listeners=http://127.0.0.1:{port}",
                "",
            ]
        )
    )
    log = open(tmp_path / "worker.log", "wb")
    p = subprocess.Popen(
        [
            "java",
            "-Xmx384m",
            "-cp",
            os.path.join(kafka_tool.libs, "*"),
            "org.apache.kafka.connect.cli.ConnectDistributed",
            str(props),
        ],
        stdout=log,
        stderr=log,
    )
    try:
        answer, end = None, time.monotonic() + 200
        while answer is None and time.monotonic() < end and p.poll() is None:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/connectors", timeout=20) as r:
                    answer = json.load(r)
            except OSError:
                time.sleep(0.5)
        assert answer == [], (tmp_path / "worker.log").read_text()[-2000:]
        for x, partitions in (("config", 1), ("offset", 25), ("status", 5)):
            w.wait_topic(c, f"{name}-{x}", partitions)
            assert w.config_of(c, f"{name}-{x}", "cleanup.policy").value == "compact"
    finally:
        p.terminate()
        try:
            p.wait(20)
        except subprocess.TimeoutExpired:
            p.kill()
            p.wait(10)
        log.close()
        for x in ("config", "offset", "status"):
            try:
                w.delete_topic(c, f"{name}-{x}")
            except AssertionError:
                pass


@pytest.mark.case("ADM-13")
def test_adm_13_acl_requests_without_an_authorizer(bootstrap, c):
    """A broker without authorizer answers every ACL request with 54: DescribeAcls as a whole, CreateAcls and
    DeleteAcls per entry. (Run against a broker without authorizer.)

    SOURCES: tchiotludo/akhq#367, redpanda-data/console#1748, bitnami/containers#23237
    """
    flt = {
        "resource_type_filter": 1,
        "resource_name_filter": None,
        "pattern_type_filter": 1,
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
    }
    new = {
        "resource_type": 2,
        "resource_name": "x",
        "resource_pattern_type": 3,
        "principal": "User:a",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    for version in (1, 2, 3):
        r = c.send("describe_acls", version, **flt)
        assert (r.error_code, r.resources) == (54, [])
        assert r.error_message
        r = c.send("create_acls", version, creations=[new, dict(new, operation=4)])
        assert [x.error_code for x in r.results] == [54, 54]
        r = c.send("delete_acls", version, filters=[flt, flt])
        assert [(x.error_code, x.matching_acls) for x in r.filter_results] == [(54, []), (54, [])]

    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.admin import (
        AclBinding,
        AclOperation,
        AclPermissionType,
        AdminClient,
        ResourcePatternType,
        ResourceType,
    )

    a = AdminClient({"bootstrap.servers": bootstrap})
    acl = AclBinding(
        ResourceType.TOPIC,
        "x",
        ResourcePatternType.LITERAL,
        "User:a",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    with pytest.raises(KafkaException) as e:
        a.create_acls([acl])[acl].result(15)
    assert e.value.args[0].code() == KafkaError.SECURITY_DISABLED

    import kafka.admin as ka
    from kafka.errors import SecurityDisabledError

    k = ka.KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        with pytest.raises(SecurityDisabledError):
            k.describe_acls(
                ka.ACLFilter(
                    None,
                    None,
                    ka.ACLOperation.ANY,
                    ka.ACLPermissionType.ANY,
                    ka.ResourcePatternFilter(
                        ka.ResourceType.ANY, None, ka.ACLResourcePatternType.ANY
                    ),
                )
            )
    finally:
        k.close()


@pytest.mark.case("ADM-15")
def test_adm_15_planning_by_offsets(bootstrap, c):
    """Batch planners may trust the offsets: earliest never moves by itself, latest never goes back, all partitions
    come in one answer, a planned range can be read to its end (transaction markers included), and out-of-range
    positions fail at once.

    SOURCES: apache/spark#29729 (SPARK-32032), apache/spark#25135, apache/spark#20836
    """
    topic = w.unique("adm15")
    w.create_topic(c, topic, partitions=20)
    stop = time.monotonic() + 4

    def fill():
        n = 0
        with w.Conn(bootstrap) as d:
            while time.monotonic() < stop:
                got = w.produce_parts(
                    d, topic, {p: w.batch([b"x", b"y"]) for p in range(20)}, acks=1
                )
                assert all(p.error_code == 0 for p in got.values())
                n += 2
        return n

    def ask(ts):
        r = c.send(
            "list_offsets",
            7,
            replica_id=-1,
            isolation_level=0,
            topics=[
                {
                    "name": topic,
                    "partitions": [{"partition_index": p, "timestamp": ts} for p in range(20)],
                }
            ],
        )
        got = {p.partition_index: p for p in r.topics[0].partitions}
        assert len(got) == 20
        assert all(p.error_code == 0 for p in got.values())
        return [got[p].offset for p in range(20)]

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        job = pool.submit(fill)
        last = [0] * 20
        for _ in range(50):
            assert ask(-2) == [0] * 20
            now = ask(-1)
            assert all(x <= y for x, y in zip(last, now))
            last = now
            time.sleep(0.05)
        total = job.result()
    assert ask(-1) == [total] * 20

    from kafka import KafkaConsumer, TopicPartition
    from kafka.errors import OffsetOutOfRangeError

    tp = TopicPartition(topic, 0)
    k = KafkaConsumer(
        bootstrap_servers=bootstrap, auto_offset_reset="none", enable_auto_commit=False
    )
    k.assign([tp])
    k.seek(tp, total + 1000)
    t0 = time.monotonic()
    with pytest.raises(OffsetOutOfRangeError):
        while time.monotonic() - t0 < 8:
            k.poll(500)
    assert time.monotonic() - t0 < 5
    k.close()

    from confluent_kafka import Consumer, Producer
    from confluent_kafka import TopicPartition as CfTP

    txn = w.unique("adm15")
    w.create_topic(c, txn)
    p = Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": w.unique("tx"), "linger.ms": 0}
    )
    p.init_transactions(20)
    for i in range(6):
        p.begin_transaction()
        for _ in range(3):
            p.produce(txn, b"%d" % i)
        p.flush(10)
        (p.abort_transaction if i % 3 == 1 else p.commit_transaction)(20)
    end = time.monotonic() + 10
    while w.latest(c, txn, isolation=1) < 24 and time.monotonic() < end:
        time.sleep(0.1)
    assert w.latest(c, txn, isolation=1) == 24  # 18 records and 6 markers
    for lo, hi in ((0, 24), (10, 20), (3, 4), (23, 24)):
        q = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": w.unique("g"),
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
            }
        )
        q.assign([CfTP(txn, 0, lo)])
        got, done, end = [], False, time.monotonic() + 10
        while not done and time.monotonic() < end:
            for m in q.consume(50, 0.2):
                if m.error():
                    done = True
                elif m.offset() < hi:
                    got.append(m.offset())
                else:
                    done = True
        pos = q.position([CfTP(txn, 0)])[0].offset
        q.close()
        assert done, f"range {lo}-{hi} did not end"
        want = [o for o in range(lo, hi) if o % 4 != 3 and o // 4 % 3 != 1]
        assert got == want
        assert pos >= hi or pos == lo or not want


@pytest.mark.case("ADM-15")
@pytest.mark.slow
@pytest.mark.timeout(60)
def test_adm_15_a_recreated_topic_shows_a_smaller_end(c):
    """After deletion and re-creation the offsets start again from 0, so that readers notice the loss.

    SOURCES: apache/spark#20836 (SPARK-23685)
    """
    topic = w.unique("adm15")
    w.create_topic(c, topic)
    for _ in range(5):
        w.produce(c, topic, [b"x"])
    w.delete_topic(c, topic)
    w.wait_gone(c, topic)
    assert w.list_offset(c, topic, -1).error_code == 3
    w.create_topic(c, topic)
    assert (w.earliest(c, topic), w.latest(c, topic)) == (0, 0)
    assert w.fetch_one(c, topic, 5).error_code == 1
