"""Topics: made, waited for, deleted; their configs and offsets."""

from __future__ import annotations

import os
import random
import string
import time

from tests.wire.connection import Conn
from tests.wire.error_codes import UNKNOWN_TOPIC_OR_PARTITION

SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3


def unique(prefix="t"):
    return f"{prefix}-{os.getpid() % 10000}-" + "".join(
        random.choices(string.ascii_lowercase + string.digits, k=8)
    )


CREATED: list = []  # names made by create_topic, for the clean-up after a test


def drop_created(address):
    names, CREATED[:] = sorted(set(CREATED)), []
    if names:
        try:
            with Conn(address, timeout=15) as conn:
                conn.send("delete_topics", 3, topic_names=names, timeout_ms=10000)
        except Exception:
            pass  # clean-up only; a name may be gone already, or the broker


def create_topic(
    conn, name, partitions=1, replication=1, configs=None, version=5, expect=0, **extra
):
    r = conn.send(
        "create_topics",
        version,
        topics=[
            {
                "name": name,
                "num_partitions": partitions,
                "replication_factor": replication,
                "configs": [{"name": k, "value": v} for k, v in (configs or {}).items()],
            }
        ],
        timeout_ms=15000,
        **extra,
    )
    t = r.topics[0]
    if expect is not None:
        assert t.error_code == expect, t
        if expect == 0:
            CREATED.append(name)
            wait_ready(conn, name, partitions)
    return t


def wait_ready(conn, name, partitions=1, timeout=15.0):
    """Wait until the leaders of all partitions serve (a fresh leader may still answer 3, 5 or 6 for a moment)."""
    t = wait_topic(conn, name, partitions, timeout)
    end = time.monotonic() + timeout
    for p in t.partitions:
        while True:
            r = list_offset(conn, name, -1, p.partition_index)
            if r.error_code not in (3, 5, 6):
                break
            assert time.monotonic() < end, r
            time.sleep(0.02)
    return t


def delete_topic(conn, name, version=3):
    r = conn.send(
        "delete_topics",
        version,
        topic_names=[name],
        timeout_ms=15000,
    )
    assert r.responses[0].error_code == 0, r
    return r.responses[0].error_code


def metadata(conn, topics, version=9, auto=False, **extra):
    """topics: None (all), or names."""
    fields = dict(extra)
    if version >= 4:
        fields["allow_auto_topic_creation"] = auto
    fields["topics"] = None if topics is None else [{"name": n} for n in topics]
    return conn.send("metadata", version, **fields)


def wait_topic(conn, name, partitions=None, timeout=15.0):
    """Wait until the topic has leaders for all its partitions; gives its Metadata entry (v12, with id)."""
    end = time.monotonic() + timeout
    while True:
        t = metadata(conn, [name], 12).topics[0]
        if (
            t.error_code == 0
            and t.partitions
            and all(p.error_code == 0 and p.leader_id >= 0 for p in t.partitions)
            and (partitions in (None, -1) or len(t.partitions) == partitions)
        ):
            return t
        assert time.monotonic() < end, t
        time.sleep(0.05)


def wait_gone(conn, name, timeout=15.0):
    end = time.monotonic() + timeout
    while metadata(conn, [name], 12).topics[0].error_code != UNKNOWN_TOPIC_OR_PARTITION:
        assert time.monotonic() < end
        time.sleep(0.05)


def topic_id(conn, name):
    return wait_topic(conn, name).topic_id


def new_topic(conn, name, partitions=1, configs=None, replication=1) -> str:
    """A topic whose partitions serve; its name."""
    texts = {key: str(value) for key, value in (configs or {}).items()}
    return create_topic(conn, name, partitions, replication, texts).name


def list_offset(conn, topic, timestamp, partition=0, version=7, isolation=0, leader_epoch=None):
    p = {"partition_index": partition, "timestamp": timestamp}
    if leader_epoch is not None:
        p["current_leader_epoch"] = leader_epoch
    fields = {"replica_id": -1, "topics": [{"name": topic, "partitions": [p]}]}
    if version >= 2:
        fields["isolation_level"] = isolation
    return conn.send("list_offsets", version, **fields).topics[0].partitions[0]


def latest(conn, topic, partition=0, isolation=0):
    r = list_offset(conn, topic, -1, partition, isolation=isolation)
    assert r.error_code == 0, r
    return r.offset


def earliest(conn, topic, partition=0):
    r = list_offset(conn, topic, -2, partition)
    assert r.error_code == 0, r
    return r.offset


def delete_records(conn, topic, offset, partition=0, version=2):
    r = conn.send(
        "delete_records",
        version,
        timeout_ms=15000,
        topics=[{"name": topic, "partitions": [{"partition_index": partition, "offset": offset}]}],
    )
    return r.topics[0].partitions[0]


def describe_configs(conn, kind, name, keys=None, version=4, synonyms=False, docs=False):
    fields = {
        "resources": [{"resource_type": kind, "resource_name": name, "configuration_keys": keys}]
    }
    if version >= 1:
        fields["include_synonyms"] = synonyms
    if version >= 3:
        fields["include_documentation"] = docs
    return conn.send("describe_configs", version, **fields).results[0]


def config_of(conn, topic, key):
    r = describe_configs(conn, 2, topic, [key])
    assert r.error_code == 0 and len(r.configs) == 1, r
    return r.configs[0]


def alter(conn, resources, validate_only=False, version=1):
    """Incremental: resources = [(type, name, [(key, op, value), ...])]; gives the responses in request order."""
    r = conn.send(
        "incremental_alter_configs",
        version,
        validate_only=validate_only,
        resources=[
            {
                "resource_type": t,
                "resource_name": n,
                "configs": [{"name": k, "config_operation": o, "value": v} for k, o, v in cs],
            }
            for t, n, cs in resources
        ],
    )
    by = {(x.resource_type, x.resource_name): x for x in r.responses}
    return [by[t, n] for t, n, _ in resources]


def rss_kb(pid):
    with open(f"/proc/{pid}/status") as f:
        for line in f:
            if line.startswith("VmRSS"):
                return int(line.split()[1])


def still_serves(address):
    """A fresh connection gets ApiVersions and Metadata answered."""
    with Conn(address, timeout=10) as c:
        assert (
            c.send(
                "api_versions", 3, client_software_name="x", client_software_version="1"
            ).error_code
            == 0
        )
        assert metadata(c, []).brokers
