"""Metadata and what hangs on it."""

import socket
import struct
import time

import pytest

from tests import wire as w


@pytest.mark.case("META-1")
def test_meta_1_empty_and_null_topic_lists(c):
    """In v0 an empty list asks for all topics; from v1 on null does, and an empty list asks for none. Brokers
    are listed in all cases.

    SOURCES: zendesk/ruby-kafka#493, tulios/kafkajs#1184, dpkp/kafka-python#867
    """
    mine = {w.unique("meta1"), w.unique("meta1")}
    for n in mine:
        w.create_topic(c, n)

    def names(r):
        return {t.name for t in r.topics}

    r = c.send("metadata", 0, topics=[])
    assert mine <= names(r)
    assert r.brokers
    r = c.send("metadata", 1, topics=[])
    assert r.topics == []
    assert r.brokers
    assert r.controller_id >= 0
    r = c.send("metadata", 1, topics=None)
    assert mine <= names(r)
    assert r.brokers
    head = struct.pack(">hhih", 3, 9, 77, -1) + b"\0"
    c.send_frame(head + b"\x00" + b"\1\0\0" + b"\0")  # compact null
    corr, r = c.recv_as("metadata", 9)
    assert corr == 77
    assert mine <= names(r)
    assert r.brokers
    c.send_frame(head + b"\x01" + b"\1\0\0" + b"\0")  # compact empty
    corr, r = c.recv_as("metadata", 9)
    assert r.topics == []
    assert r.brokers
    assert r.cluster_id
    for version in range(2, 13):
        r = w.metadata(c, [], version)
        assert r.topics == []
        assert r.brokers
        assert r.cluster_id
        assert r.controller_id >= 0
        r = w.metadata(c, None, version)
        assert mine <= names(r)
        assert all(t.error_code == 0 for t in r.topics if t.name in mine)


@pytest.mark.case("META-5")
def test_meta_5_controller_and_replicas_are_real(bootstrap, c):
    """controller_id names a listed broker that takes admin requests; every healthy partition's leader is among
    its replicas and in-sync replicas; admin clients can create and delete topics.

    SOURCES: streamnative/kop#242, IBM/sarama#1121, aio-libs/aiokafka#995, tchiotludo/akhq#1364
    """
    name = w.unique("meta5")
    w.create_topic(c, name, partitions=3)
    for version in range(1, 13):
        r = w.metadata(c, [name], version)
        ids = {b.node_id for b in r.brokers}
        assert r.controller_id in ids
        if version >= 2:
            assert r.cluster_id
        t = r.topics[0]
        assert len(t.partitions) == 3
        for p in t.partitions:
            assert p.error_code == 0
            assert p.leader_id in p.replica_nodes
            assert p.leader_id in p.isr_nodes
            assert set(p.replica_nodes) <= ids
            if version >= 5:
                assert p.offline_replicas == []
    ctl = {b.node_id: b for b in r.brokers}[w.metadata(c, []).controller_id]
    with w.Conn(f"{ctl.host}:{ctl.port}") as d:
        w.create_topic(d, w.unique("meta5"))

    from confluent_kafka.admin import AdminClient, NewTopic

    a = AdminClient({"bootstrap.servers": bootstrap})
    n = w.unique("meta5")
    a.create_topics([NewTopic(n, 1, 1)])[n].result(15)
    w.wait_topic(c, n)
    a.delete_topics([n])[n].result(15)
    w.wait_gone(c, n)

    from kafka.admin import KafkaAdminClient
    from kafka.admin import NewTopic as KpTopic

    n = w.unique("meta5")
    k = KafkaAdminClient(bootstrap_servers=bootstrap)
    k.create_topics([KpTopic(n, 1, 1)])
    w.wait_topic(c, n)
    k.delete_topics([n])
    k.close()
    w.wait_gone(c, n)

    import asyncio

    from aiokafka.admin import AIOKafkaAdminClient
    from aiokafka.admin import NewTopic as AioTopic

    n = w.unique("meta5")

    async def run():
        adm = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await adm.start()
        try:
            await adm.create_topics([AioTopic(n, 1, 1)])
            w.wait_topic(c, n)
            await adm.delete_topics([n])
        finally:
            await adm.close()

    asyncio.run(run())
    w.wait_gone(c, n)


@pytest.mark.case("META-6")
def test_meta_6_one_leader_epoch_everywhere(c):
    """Metadata, stored batches, ListOffsets and OffsetForLeaderEpoch agree on the leader epoch; a newer one in
    current_leader_epoch gives 75, an older one 74, -1 is not checked; committed epochs come back as committed.

    SOURCES: redpanda-data/redpanda#1181, #3788, #17674, #28618
    """
    name, group = w.unique("meta6"), w.unique("g")
    w.create_topic(c, name)
    w.produce(c, name, [b"1", b"2", b"3"])
    for version in range(7, 13):
        t = w.metadata(c, [name], version).topics[0]
        epoch = t.partitions[0].leader_epoch
        assert epoch >= 0
    assert w.read_log(c, name)[0].leader_epoch == epoch
    for version in (4, 7):
        assert w.list_offset(c, name, -1, version=version).leader_epoch == epoch

    def ofle(current, asked, version=4):
        fields = {
            "topics": [
                {
                    "topic": name,
                    "partitions": [
                        {"partition": 0, "current_leader_epoch": current, "leader_epoch": asked}
                    ],
                }
            ]
        }
        if version >= 3:
            fields["replica_id"] = -1
        p = c.send("offset_for_leader_epoch", version, **fields).topics[0].partitions[0]
        return p.error_code, p.leader_epoch, p.end_offset

    for version in (2, 3, 4):
        assert ofle(epoch, epoch, version) == (0, epoch, 3)
        assert ofle(-1, epoch, version) == (0, epoch, 3)
        assert ofle(epoch, epoch + 5, version) == (0, -1, -1)
        assert ofle(epoch + 1, epoch, version) == (75, -1, -1)
        # an epoch below the current one; -2 where the partition has not had an earlier leader
        assert ofle(epoch - 1 if epoch else -2, epoch, version) == (74, -1, -1)
    for version in (9, 12):
        assert w.fetch_one(c, name, 0, version=version, leader_epoch=-1).error_code == 0
        assert w.fetch_one(c, name, 0, version=version, leader_epoch=epoch).error_code == 0
        p = w.fetch_one(c, name, 0, version=version, leader_epoch=epoch + 1)
        assert (p.error_code, p.high_watermark, p.records or b"") == (75, -1, b"")
        if epoch:
            assert w.fetch_one(c, name, 0, version=version, leader_epoch=epoch - 1).error_code == 74
    for version in (4, 7):
        assert w.list_offset(c, name, -1, version=version, leader_epoch=-1).offset == 3
        assert w.list_offset(c, name, -1, version=version, leader_epoch=epoch).offset == 3
        p = w.list_offset(c, name, -1, version=version, leader_epoch=epoch + 1)
        assert (p.error_code, p.offset, p.timestamp) == (75, -1, -1)
        p = w.list_offset(c, name, -1, version=version, leader_epoch=epoch - 1 if epoch else -2)
        assert (p.error_code, p.offset) == (74, -1)

    end = time.monotonic() + 15
    while True:
        r = c.send("find_coordinator", 3, key=group, key_type=0)
        if r.error_code == 0 or time.monotonic() > end:
            break
        time.sleep(0.2)
    assert r.error_code == 0
    with w.Conn(f"{r.host}:{r.port}") as g:
        while True:
            r = g.send(
                "offset_commit",
                6,
                group_id=group,
                generation_id_or_member_epoch=-1,
                member_id="",
                topics=[
                    {
                        "name": name,
                        "partitions": [
                            {
                                "partition_index": 0,
                                "committed_offset": 2,
                                "committed_leader_epoch": epoch,
                                "committed_metadata": "m",
                            }
                        ],
                    }
                ],
            )
            p = r.topics[0].partitions[0]
            if p.error_code in (14, 15, 16) and time.monotonic() < end:
                time.sleep(0.2)
                continue
            break
        assert p.error_code == 0
        for version in (5, 6, 7):
            r = g.send(
                "offset_fetch",
                version,
                group_id=group,
                topics=[{"name": name, "partition_indexes": [0]}],
            )
            p = r.topics[0].partitions[0]
            assert (p.error_code, p.committed_offset, p.committed_leader_epoch, p.metadata) == (
                0,
                2,
                epoch,
                "m",
            )


@pytest.mark.case("CONN-7")
def test_conn_7_advertised_addresses_are_usable(c):
    """Every id used in metadata is a listed broker whose advertised host resolves to addresses that accept
    connections; coordinators and DescribeCluster name the same nodes at the same addresses.

    SOURCES: streamnative/kop#1567, getsentry/relay#922, tulios/kafkajs#769
    """
    name = w.unique("conn7")
    w.create_topic(c, name, partitions=2)
    r = w.metadata(c, None, 12)
    nodes = {b.node_id: (b.host, b.port) for b in r.brokers}
    assert len(nodes) == len(r.brokers)
    for host, port in nodes.values():
        assert host
        assert host not in ("0.0.0.0", "::", "*")
        assert 0 < port < 65536
        for family, kind, proto, _, addr in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            with socket.socket(family, kind, proto) as s:
                s.settimeout(5)
                s.connect(addr)
    for t in r.topics:
        for p in t.partitions:
            assert {p.leader_id, *p.replica_nodes, *p.isr_nodes} - {-1} <= set(nodes)
    for version in (0, 1, 5, 9):
        v = w.metadata(c, [name], version)
        assert {b.node_id: (b.host, b.port) for b in v.brokers} == nodes
    d = c.send("describe_cluster", 0, include_cluster_authorized_operations=False)
    assert {b.broker_id: (b.host, b.port) for b in d.brokers} == nodes
    assert d.controller_id in nodes
    for kind, key in ((0, w.unique("g")), (1, w.unique("tx"))):
        end = time.monotonic() + 20
        while True:
            f = c.send("find_coordinator", 3, key=key, key_type=kind)
            if f.error_code != 15 or time.monotonic() > end:
                break
            time.sleep(0.2)
        assert f.error_code == 0
        assert nodes[f.node_id] == (f.host, f.port)
        f = c.send("find_coordinator", 4, key_type=kind, coordinator_keys=[key]).coordinators[0]
        assert f.error_code == 0
        assert nodes[f.node_id] == (f.host, f.port)
