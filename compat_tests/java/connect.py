#!/usr/bin/env python3
"""What a broker must do for Kafka Connect (standalone, distributed with exactly-once sources) and MirrorMaker 2.

connect.py BOOTSTRAP CLASSPATH [OUT.tsv] [word that case names must hold]
Workers run as processes of their own with a REST port on 127.0.0.1; RF (1): replication of Connect's topics.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.error
import urllib.request
import uuid

BOOTSTRAP, CLASSPATH = sys.argv[1:3]
OUT = sys.argv[3] if len(sys.argv) > 3 else ""
WORD = sys.argv[4] if len(sys.argv) > 4 else ""
RF = os.environ.get("RF", "1")
STRINGS = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
}
workers = []


def fresh(word):
    return f"cc-{word}-{uuid.uuid4().hex[:8]}"


def port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def properties(folder, name, values):
    path = os.path.join(folder, name)
    with open(path, "w") as file:
        file.writelines(f"{key}={value}\n" for key, value in values.items())
    return path


def start(folder, main, *args):
    log = open(os.path.join(folder, f"worker{len(workers)}.log"), "w")
    child = subprocess.Popen(
        [
            "java",
            "-Xmx400m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            "-cp",
            CLASSPATH,
            main,
            *args,
        ],
        stdout=log,
        stderr=log,
        start_new_session=True,
    )
    workers.append(child)
    return child


def stop(child):
    child.send_signal(signal.SIGTERM)
    try:
        child.wait(40)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def until(what, seconds, condition):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.3)
    raise AssertionError(f"not within {seconds} s: {what}")


def rest(at, method, path, body=None):
    request = urllib.request.Request(
        f"http://127.0.0.1:{at}{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.loads(answer.read() or b"null")
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return None


def lines(path):
    """What a sink wrote, in an order of its own: the topic may have several partitions."""
    try:
        with open(path) as file:
            return sorted(file.read().splitlines())
    except FileNotFoundError:
        return []


def write(path, start_at, end):
    with open(path, "a") as file:
        file.writelines(f"line {i}\n" for i in range(start_at, end))


def source(topic, path):
    return {"connector.class": "FileStreamSource", "tasks.max": "1", "file": path, "topic": topic}


def sink(topic, path):
    return {"connector.class": "FileStreamSink", "tasks.max": "1", "file": path, "topics": topic}


def wanted(count):
    return sorted(f"line {i}" for i in range(count))


def standalone_copies_a_file_and_goes_on_after_a_restart(folder):
    topic, read, written = (
        fresh("file"),
        os.path.join(folder, "in.txt"),
        os.path.join(folder, "out.txt"),
    )
    write(read, 0, 100)
    config = [
        properties(
            folder,
            "worker.properties",
            {
                "bootstrap.servers": BOOTSTRAP,
                **STRINGS,
                "offset.flush.interval.ms": 500,
                "offset.storage.file.filename": os.path.join(folder, "offsets"),
                "listeners": f"http://127.0.0.1:{port()}",
                "plugin.discovery": "service_load",
            },
        ),
        properties(folder, "source.properties", {"name": fresh("source"), **source(topic, read)}),
        properties(folder, "sink.properties", {"name": fresh("sink"), **sink(topic, written)}),
    ]
    main = "org.apache.kafka.connect.cli.ConnectStandalone"
    worker = start(folder, main, *config)
    until("100 lines copied", 120, lambda: lines(written) == wanted(100))
    write(read, 100, 150)
    until("150 lines copied", 60, lambda: lines(written) == wanted(150))
    stop(worker)
    write(read, 150, 200)
    worker = start(folder, main, *config)
    until("200 lines, none of them twice", 120, lambda: lines(written) == wanted(200))
    stop(worker)


def distributed_runs_exactly_once_sources_and_moves_work(folder):
    topic, read, written, group = (
        fresh("file"),
        os.path.join(folder, "in.txt"),
        os.path.join(folder, "out.txt"),
        fresh("connect"),
    )
    write(read, 0, 100)

    def worker(at):
        return start(
            folder,
            "org.apache.kafka.connect.cli.ConnectDistributed",
            properties(
                folder,
                f"worker-{at}.properties",
                {
                    "bootstrap.servers": BOOTSTRAP,
                    "group.id": group,
                    **STRINGS,
                    "exactly.once.source.support": "enabled",
                    "config.storage.topic": group + "-configs",
                    "offset.storage.topic": group + "-offsets",
                    "status.storage.topic": group + "-status",
                    "config.storage.replication.factor": RF,
                    "offset.storage.replication.factor": RF,
                    "status.storage.replication.factor": RF,
                    "offset.storage.partitions": 3,
                    "status.storage.partitions": 2,
                    "scheduled.rebalance.max.delay.ms": 2000,
                    "heartbeat.interval.ms": 1000,
                    "session.timeout.ms": 10000,
                    "offset.flush.interval.ms": 1000,
                    "listeners": f"http://127.0.0.1:{at}",
                    "plugin.discovery": "service_load",
                },
            ),
        )

    a, b = port(), port()
    one = worker(a)
    until("the REST service", 120, lambda: rest(a, "GET", "/connectors") == [])
    until(
        "the source is taken",
        60,
        lambda: rest(a, "PUT", "/connectors/source/config", source(topic, read)),
    )
    until(
        "the sink is taken",
        60,
        lambda: rest(
            a,
            "PUT",
            "/connectors/sink/config",
            {**sink(topic, written), "consumer.override.isolation.level": "read_committed"},
        ),
    )
    until("100 lines copied", 120, lambda: lines(written) == wanted(100))
    two = worker(b)
    until("the second worker", 120, lambda: rest(b, "GET", "/connectors/source/status"))
    write(read, 100, 150)
    until("150 lines copied", 90, lambda: lines(written) == wanted(150))
    stop(one)
    write(read, 150, 200)
    until(
        "everything runs on the second worker",
        120,
        lambda: all(
            (rest(b, "GET", f"/connectors/{name}/status") or {"tasks": [{}]})["tasks"]
            == [{"id": 0, "state": "RUNNING", "worker_id": f"127.0.0.1:{b}", "version": version}]
            for name in ("source", "sink")
            for version in [
                ((rest(b, "GET", f"/connectors/{name}/status") or {}).get("tasks") or [{}])[0].get(
                    "version"
                )
            ]
        ),
    )
    until("200 lines", 90, lambda: sorted(set(lines(written))) == wanted(200))
    assert len(lines(written)) == 200, f"{len(lines(written))} lines in the sink's file"
    stop(two)


def mirror_maker_copies_records_and_group_offsets(folder):
    topic, group = fresh("mm"), fresh("mmg")
    feed = [
        "java",
        "-Xmx256m",
        "-XX:TieredStopAtLevel=1",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
        "-cp",
        CLASSPATH,
    ]
    subprocess.run(
        [
            *feed,
            "org.apache.kafka.tools.ConsoleProducer",
            "--bootstrap-server",
            BOOTSTRAP,
            "--topic",
            topic,
        ],
        input="".join(f"{line}\n" for line in wanted(50)),
        text=True,
        check=True,
        timeout=90,
        capture_output=True,
    )
    read = [
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        "--bootstrap-server",
        BOOTSTRAP,
        "--from-beginning",
        "--max-messages",
        "50",
        "--timeout-ms",
        "20000",
    ]
    subprocess.run(
        [*feed, *read, "--topic", topic, "--group", group],
        check=True,
        timeout=90,
        capture_output=True,
    )
    start(
        folder,
        "org.apache.kafka.connect.mirror.MirrorMaker",
        properties(
            folder,
            "mm2.properties",
            {
                "clusters": "a, b",
                "a.bootstrap.servers": BOOTSTRAP,
                "b.bootstrap.servers": BOOTSTRAP,
                "a->b.enabled": "true",
                "b->a.enabled": "false",
                "a->b.topics": topic,
                "a->b.groups": group,
                "replication.factor": RF,
                "checkpoints.topic.replication.factor": RF,
                "heartbeats.topic.replication.factor": RF,
                "offset-syncs.topic.replication.factor": RF,
                "offset.storage.replication.factor": RF,
                "status.storage.replication.factor": RF,
                "config.storage.replication.factor": RF,
                "refresh.topics.interval.seconds": 5,
                "refresh.groups.interval.seconds": 5,
                "emit.checkpoints.interval.seconds": 2,
                "sync.group.offsets.enabled": "true",
                "sync.group.offsets.interval.seconds": 2,
                "offset.lag.max": 1,
                "tasks.max": 1,
                "plugin.discovery": "service_load",
                "b.consumer.auto.offset.reset": "earliest",
                "a.consumer.auto.offset.reset": "earliest",
            },
        ),
    )

    def copied():
        found = subprocess.run(
            [*feed, *read, "--topic", "a." + topic], text=True, timeout=90, capture_output=True
        ).stdout.splitlines()
        return sorted(found) == wanted(50)

    until("the copy", 180, copied)

    def checkpointed():
        return subprocess.run(
            [
                *feed,
                "org.apache.kafka.tools.GetOffsetShell",
                "--bootstrap-server",
                BOOTSTRAP,
                "--topic",
                "a.checkpoints.internal",
            ],
            text=True,
            timeout=60,
            capture_output=True,
        ).stdout.strip() not in ("", "a.checkpoints.internal:0:0")

    until("a checkpoint", 90, checkpointed)


def main():
    counts, rows = {"pass": 0, "fail": 0}, []
    for case in (
        standalone_copies_a_file_and_goes_on_after_a_restart,
        distributed_runs_exactly_once_sources_and_moves_work,
        mirror_maker_copies_records_and_group_offsets,
    ):
        if WORD not in case.__name__:
            continue
        start_at, why = time.monotonic(), ""
        folder = tempfile.mkdtemp(prefix="kwire-connect-")
        try:
            case(folder)
            outcome = "pass"
        except Exception as error:
            outcome, why = "fail", f"{error} (logs in {folder})"
            if os.environ.get("TRACE"):
                traceback.print_exc()
        finally:
            for child in workers:
                if child.poll() is None:
                    stop(child)
        counts[outcome] += 1
        rows.append(f"{case.__name__}\t{outcome}\t{time.monotonic() - start_at:.2f}\n")
        print(
            f"{outcome.upper()} {case.__name__} {time.monotonic() - start_at:.1f}s {why}",
            flush=True,
        )
    if OUT:
        with open(OUT, "w") as file:
            file.writelines(rows)
    print(f"java-connect: passed {counts['pass']} failed {counts['fail']} skipped 0")
    sys.exit(1 if counts["fail"] else 0)


main()
