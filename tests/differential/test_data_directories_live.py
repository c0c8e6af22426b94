"""A data directory of Apache Kafka, served by kwire, and given back (needs a JVM).

There: kwire serves copies of the two golden directories as they are, and a Java client finds every
record, offset, look-up, group, transaction, config, quota, SCRAM user and producer that it found
with Kafka. Back: after kwire has written to one and stopped, Kafka's dump tool finds no fault with
any file, Kafka starts on it, logs no error about it, and serves what kwire served.
"""

from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kwire.testing.cluster import free_adjacent_ports
from tests.support import data_directories as golden
from tests.support.kafka import ROOT, kafka_libs

PEERS = ROOT / "compat_tests" / "peers"
# No clock may change what is looked at: the settings that Kafka read the directories with.
KEEP = {
    "log.retention.ms": "-1",
    "log.cleaner.enable": "false",
    "log.initial.task.delay.ms": "2000000000",
    "offsets.retention.minutes": "2147483647",
    "offsets.retention.check.interval.ms": "2000000000",
    "producer.id.expiration.ms": "2147483647",
    "transactional.id.expiration.ms": "2147483647",
    "transaction.max.timeout.ms": "2147483647",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "2000000000",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "2000000000",
    "metadata.log.max.record.bytes.between.snapshots": "2000000000",
    "metadata.log.max.snapshot.interval.ms": "0",
    "log.index.size.max.bytes": "1048576",
    "delegation.token.secret.key": "any",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "allow.everyone.if.no.acl.found": "true",
}


def _peer_tool() -> Any:
    spec = importlib.util.spec_from_file_location("read_by_kafka", PEERS / "read_by_kafka.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def served(data: pathlib.Path) -> Iterator[str]:
    """kwire on a data directory, stopped in order at the end; yields its address."""
    address = f"127.0.0.1:{free_adjacent_ports()}"
    command = [sys.executable, "-m", "kwire", "serve", "--data-dir", str(data), "--listen", address]
    for name, value in KEEP.items():
        command += ["-o", f"{name}={value}"]
    log = data.parent / "kwire.log"
    with log.open("a") as stderr:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=stderr, text=True, cwd=ROOT
        )
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert "ready" in line, log.read_text()
            yield address
        finally:
            process.terminate()
            assert process.wait(60) == 0, log.read_text()
            if process.stdout is not None:
                process.stdout.close()


def facts_of(address: str) -> dict[str, Any]:
    """Everything that a Java client sees."""
    command = ["java", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-cp", f"{kafka_libs()}/*"]
    found = subprocess.run(
        [*command, str(PEERS / "Facts.java"), address],
        check=True,
        stdout=subprocess.PIPE,
        timeout=180,
    )
    facts: dict[str, Any] = json.loads(found.stdout)
    return facts


def differences(expected: Any, found: Any, *, killed: bool) -> list[str]:
    tool = _peer_tool()
    now_ms = int(time.time() * 1000)
    wanted, seen = tool.normal(expected, now_ms), tool.normal(found, now_ms)
    if killed:
        tool.align(wanted, seen)
    return list(tool.differences(wanted, seen))


@pytest.mark.parametrize("name", ["clean", "killed"])
def test_kwire_serves_what_kafka_served(name: str, tmp_path: pathlib.Path) -> None:
    kafka_libs()
    data = golden.unpack(name, tmp_path / "data")
    with served(data) as address:
        facts = facts_of(address)
    assert differences(golden.expected(name), facts, killed=name == "killed") == []


def _write(address: str) -> None:
    """Plain, compressed and transactional records, a group's offset, a new topic, a deleted one."""
    from confluent_kafka import Consumer, Producer, TopicPartition
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": address})
    for done in admin.create_topics([NewTopic("made-by-kwire", 2, 1)]).values():
        done.result(30)
    for done in admin.delete_topics(["untouched"]).values():
        done.result(30)
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        producer = Producer({"bootstrap.servers": address, "compression.type": codec})
        for topic in ("made-by-kwire", "plain", "compacted"):
            for at in range(50):
                producer.produce(topic, b"value-%d" % at, b"key-%d" % (at % 7))
        assert producer.flush(30) == 0
    for commit in (True, False):
        producer = Producer({"bootstrap.servers": address, "transactional.id": "by-kwire"})
        producer.init_transactions(30)
        producer.begin_transaction()
        for at in range(20):
            producer.produce("tx", b"%d" % at, b"key", partition=0)
        producer.flush(30)
        producer.commit_transaction(30) if commit else producer.abort_transaction(30)
    consumer = Consumer({"bootstrap.servers": address, "group.id": "group-of-kwire"})
    consumer.commit(offsets=[TopicPartition("plain", 0, 3)], asynchronous=False)
    consumer.close()


def test_kafka_takes_back_what_kwire_wrote_to(tmp_path: pathlib.Path) -> None:
    libs = kafka_libs()
    data = golden.unpack("clean", tmp_path / "data")
    with served(data) as address:
        _write(address)
        by_kwire = facts_of(address)
    out = tmp_path / "facts.json"
    done = subprocess.run(
        [str(PEERS / "read_by_kafka.sh"), "--libs", str(libs), "--out", str(out), str(data)],
        stderr=subprocess.PIPE,
        text=True,
        timeout=400,
        env={**os.environ, "JIT_LEVEL": "1"},
    )
    assert done.returncode == 0, done.stderr
    by_kafka = json.loads(out.read_text())
    assert differences(by_kwire, by_kafka, killed=False) == []
