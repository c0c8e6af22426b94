"""`kwire proxy`, `kwire serve --trace` and `kwire trace`, with real clients and brokers."""

from __future__ import annotations

import json
import socket
import socketserver
import struct
import threading
from pathlib import Path

import confluent_kafka
import pytest

from kwire.protocol.frame import parse_request_header
from kwire.testing import Broker, Cluster
from kwire.testing.cluster import Broker as ServedBroker
from kwire.testing.waiting import wait_until
from kwire.trace.events import OPEN, REQUEST, RESPONSE, Event
from kwire.trace.files import TraceReader
from tests.support.proxies import CLIENTS, VALUES, ProxyProcess, kwire, with_kafka_python
from tests.support.wire import WireClient, produce_values
from tests.system.test_sasl import PASSWORD, SCRAM, SaslBroker, add_scram_user, properties
from tests.system.test_tls import Secure, secure  # noqa: F401


def events_of(path: Path) -> list[Event]:
    reader = TraceReader(str(path))
    found = list(reader)
    assert reader.damage == ""
    return found


def test_clients_get_the_same_through_a_proxy_and_a_replay_of_it_too(tmp_path: Path) -> None:
    path = tmp_path / "all.trace.gz"
    with Broker() as broker, Broker() as beside, Broker() as fresh:
        with ProxyProcess(broker.bootstrap, "--trace", str(path)) as proxy:
            for number, run in enumerate(CLIENTS):
                topic, group = f"orders-{number}", f"group-{number}"
                through = run(proxy.address, topic, group)
                assert through == run(beside.bootstrap, topic, group)
                assert VALUES[0] in str(through).encode() or VALUES[0].decode() in str(through)
        assert proxy.stop() == 0
        events = events_of(path)
        apis = {event.api for event in events if event.kind == REQUEST}
        assert {"JoinGroup", "OffsetCommit", "EndTxn", "Produce", "Fetch"} <= apis
        clients = {event.client_id for event in events if event.kind == REQUEST}
        assert {"kafka-python", "confluent", "aiokafka"} <= {
            (each or "").removesuffix("#producer-1") for each in clients
        }
        again = kwire("trace", "replay", str(path), fresh.bootstrap)
        assert again.returncode == 0, again.stdout + again.stderr
        assert ", 0 differ, " in again.stdout
        twice = kwire("trace", "replay", str(path), fresh.bootstrap)
        assert twice.returncode == 1, "records are appended behind the first ones"
        assert "base_offset: recorded 0, got " in twice.stdout


def test_every_broker_of_a_cluster_is_behind_the_proxy(tmp_path: Path) -> None:
    path = tmp_path / "cluster.trace"
    with Cluster(3) as cluster, ProxyProcess(cluster.bootstrap, "--trace", str(path)) as proxy:
        offsets, found, _ = with_kafka_python(proxy.address, "orders", "g")
        assert offsets == [0, 1, 2, 3]
        assert found == VALUES
        with WireClient(proxy.address) as client:
            ports = {broker.port for broker in client.metadata([]).brokers}
        assert len(ports) == 3
        assert not ports & {int(one.bootstrap.rpartition(":")[2]) for one in cluster}
        proxy.stop()
        brokers = {event.broker for event in events_of(path) if event.kind == OPEN}
        assert {one.bootstrap for one in cluster} & brokers


def test_a_leader_that_dies_is_told_in_words(tmp_path: Path) -> None:
    """The connection that ended with a request on its way, the new leader, the batch sent again."""
    under_way = [0]

    def told(statistics: str) -> None:
        topic = json.loads(statistics)["topics"].get("orders", {"partitions": {}})
        under_way.append(sum(one["msgs_inflight"] for one in topic["partitions"].values()))

    # Who stands still keeps its partitions until it is killed.
    config = {"broker.session.timeout.ms": 60_000}
    with (
        Cluster(3, config=config) as cluster,
        ProxyProcess(cluster.bootstrap, "--explain") as proxy,
    ):
        orders = cluster.topic("orders").create()
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": proxy.address,
                "client.id": "p",
                "enable.idempotence": True,
                "topic.metadata.refresh.interval.ms": 200,
                "statistics.interval.ms": 50,
                "stats_cb": told,
            }
        )
        producer.produce("orders", "before")
        assert producer.flush(60) == 0
        leader = cluster.leader("orders")
        leader.pause()
        producer.poll(0.1)  # what was told before
        under_way.append(0)
        producer.produce("orders", "after")
        wait_until(lambda: producer.poll(0.05) >= 0 and under_way[-1] > 0)
        leader.kill()
        assert producer.flush(60) == 0
        assert orders.values() == [b"before", b"after"]
        proxy.stop()
    assert f"it was broker {leader.node_id}" in proxy.out, proxy.out
    assert f"p: the connection to {leader.bootstrap} ends" in proxy.out, proxy.out


def test_no_secret_of_a_login_is_in_a_trace(tmp_path: Path) -> None:
    import base64

    path = tmp_path / "sasl.trace"
    with SaslBroker() as broker:
        with WireClient(broker.bootstrap) as client:
            add_scram_user(client, "alice", PASSWORD)
        options = ("--trace", str(path), "--records", "100")
        with ProxyProcess(broker.sasl_bootstrap, *options) as proxy:
            for mechanism in ("PLAIN", *SCRAM):
                config = properties(tmp_path / "c.properties", mechanism)
                listed = kwire("topic", "list", "-b", proxy.address, "--command-config", config)
                assert (listed.returncode, listed.stderr) == (0, "")
        second = ProxyProcess(broker.bootstrap, "--trace", str(tmp_path / "scram.trace"))
        with second as plain, WireClient(plain.address) as client:
            add_scram_user(client, "bob", "bobs-password")
    text = path.read_text() + (tmp_path / "scram.trace").read_text()
    assert "SaslAuthenticate" in text
    assert "AlterUserScramCredentials" in text
    for secret in (PASSWORD, "bobs-password"):
        assert secret not in text
        assert base64.b64encode(secret.encode()).decode()[:12] not in text
    assert base64.b64encode(b"a salt").decode() not in text


def test_a_proxy_that_logs_in_for_its_clients(tmp_path: Path) -> None:
    with SaslBroker() as broker:
        with WireClient(broker.bootstrap) as client:
            add_scram_user(client, "alice", PASSWORD)
        for mechanism in ("PLAIN", SCRAM[0]):
            config = properties(tmp_path / "c.properties", mechanism)
            options = ("--trace", str(tmp_path / "a.trace"), "--command-config", config)
            with ProxyProcess(broker.sasl_bootstrap, *options) as proxy:
                assert kwire("topic", "list", "-b", proxy.address).returncode == 0
        wrong = properties(tmp_path / "w.properties", "PLAIN", password="not-it")
        options = ("--trace", str(tmp_path / "b.trace"), "--command-config", wrong)
        with ProxyProcess(broker.sasl_bootstrap, *options) as proxy:
            assert kwire("topic", "list", "-b", proxy.address).returncode == 1
        assert "the login failed: Authentication failed" in (tmp_path / "b.trace").read_text()


def test_a_broker_that_ends_the_login_is_passed_over(tmp_path: Path) -> None:
    """The next address of the target is tried, and the client hears nothing of it."""
    with SaslBroker() as broker:
        config = properties(tmp_path / "c.properties", "PLAIN")
        options = ("--trace", str(tmp_path / "a.trace"), "--command-config", config)
        with socketserver.TCPServer(("127.0.0.1", 0), socketserver.BaseRequestHandler) as ending:
            serving = threading.Thread(target=ending.serve_forever)
            serving.start()
            target = f"127.0.0.1:{ending.server_address[1]},{broker.sasl_bootstrap}"
            try:
                with ProxyProcess(target, *options) as proxy:
                    listed = kwire("topic", "list", "-b", proxy.address)
            finally:
                ending.shutdown()
                serving.join()
    assert (listed.returncode, listed.stderr) == (0, "")


def test_a_target_with_tls(secure: Secure, tmp_path: Path) -> None:  # noqa: F811
    config = tmp_path / "tls.properties"
    config.write_text(
        "security.protocol=SSL\nssl.truststore.type=PEM\n"
        f"ssl.truststore.location={secure.directory}/authority.pem\n"
    )
    options = ("--trace", str(tmp_path / "a.trace"), "--command-config", str(config))
    with ProxyProcess(secure.tls, *options) as proxy:
        listed = kwire("topic", "list", "-b", proxy.address)
        assert (listed.returncode, listed.stderr) == (0, "")


def test_clients_speak_tls_to_the_proxy(secure: Secure, tmp_path: Path) -> None:  # noqa: F811
    """One that does not is told nothing, and others go on."""
    authority, path = secure.directory / "authority.pem", tmp_path / "a.trace"
    key = str(secure.client.write(tmp_path, "proxy"))
    options = ("--tls-cert", key, "--tls-key", key, "--trace", str(path))
    with ProxyProcess(secure.plain, *options) as proxy:
        host, port = proxy.address.split(":")
        with socket.create_connection((host, int(port)), 30) as client:
            client.sendall(bytes(100))
            while client.recv(100):
                pass
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": proxy.address,
                "security.protocol": "SSL",
                "ssl.ca.location": str(authority),
                "ssl.endpoint.identification.algorithm": "none",
                "group.id": "g",
            }
        )
        assert {one.host for one in consumer.list_topics(timeout=60).brokers.values()} == {host}
        consumer.close()
    apis = {event.api for event in events_of(path) if event.kind == REQUEST}
    assert {"ApiVersions", "Metadata"} <= apis


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--tls-cert", "{directory}/none.pem", "--tls-key", "{directory}/none.pem"), "No such"),
        (("--tls-cert", "{directory}/some.pem"), "--tls-key is missing"),
        (("--tls-cert", "{directory}/some.pem", "--tls-key", "{directory}/some.pem"), "some.pem"),
    ],
)
def test_what_is_no_certificate_is_told_in_one_line(
    options: tuple[str, ...], told: str, tmp_path: Path
) -> None:
    (tmp_path / "some.pem").write_text("what is no PEM\n")
    given = [option.format(directory=tmp_path) for option in options]
    refused = kwire("proxy", "127.0.0.1:0", "127.0.0.1:9", *given)
    assert refused.returncode == 1
    assert told in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


def test_a_broker_writes_of_its_traffic_what_is_wanted(tmp_path: Path) -> None:
    path = tmp_path / "served.trace"
    options = ["--trace", str(path), "--trace-api", "produce", "--trace-api", "Metadata"]
    options += ["--trace-client-id", "wanted", "--trace-records", "3"]
    with ServedBroker(arguments=options) as broker:
        for name in ("wanted", "other"):
            with WireClient(broker.bootstrap, client_id=name) as client:
                client.create_topic(name)
                produce_values(client, name, 0, [b"abcdef"])
    events = [event for event in events_of(path) if event.kind in (REQUEST, RESPONSE)]
    assert {event.api for event in events} == {"Produce", "Metadata"}
    assert {event.client_id for event in events if event.kind == REQUEST} == {"wanted"}
    assert '"abc"' in path.read_text()
    assert "abcd" not in path.read_text()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--trace-topic", "t"), "--trace-topic needs --trace FILE"),
        (("--trace", "{path}", "--trace-api", "Produse"), "did you mean Produce?"),
        (("--trace", "{path}", "--trace-slower-than", "soon"), "expected a number from 0 on"),
        (("--trace", "{path}", "--trace-records", "2.5"), "expected 0 to 1048576"),
        (("--trace", "{path}", "--trace-records", "9999999"), "expected 0 to 1048576"),
    ],
)
def test_a_filter_of_a_brokers_trace_that_cannot_be_right_is_refused(
    options: tuple[str, ...], told: str, tmp_path: Path
) -> None:
    given = [option.format(path=tmp_path / "a.trace") for option in options]
    refused = kwire("serve", "--listen", "127.0.0.1:0", "--data-dir", str(tmp_path / "d"), *given)
    assert refused.returncode != 0
    assert told in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


def test_a_version_of_api_versions_that_nobody_knows(tmp_path: Path) -> None:
    """The broker says which it has, as without a proxy; a later one must not slip through, as its
    answer could not be read."""
    with Broker() as broker, ProxyProcess(broker.bootstrap, "--explain") as proxy:
        host, port = proxy.address.split(":")
        with socket.create_connection((host, int(port)), 30) as client:
            frame = b"\x00\x12\x00\x63\x00\x00\x00\x07\x00\x01x\x00"
            client.sendall(len(frame).to_bytes(4, "big") + frame)
            answer = client.recv(4096)
        assert parse_request_header(frame).api_version == 99
        assert answer[4:10] == b"\x00\x00\x00\x07\x00\x23"
    assert "version 99 of ApiVersions is not known" in proxy.out


def test_what_is_no_kafka_request_ends_its_connection_alone(tmp_path: Path) -> None:
    with Broker() as broker, ProxyProcess(broker.bootstrap, "--explain") as proxy:
        host, port = proxy.address.split(":")
        for text in (b"\x16\x03\x01\x02\x00\x01" + bytes(100), b"GET / HTTP/1.1\r\n\r\n"):
            with socket.create_connection((host, int(port)), 30) as client:
                client.sendall(text)
                assert client.recv(100) == b""
        info = kwire("info", "-q", "-b", proxy.address)
        assert info.returncode == 0, info.stderr
    assert "the client sends no Kafka request" in proxy.out


def test_a_client_that_is_gone_before_it_is_accepted_is_no_fault(tmp_path: Path) -> None:
    """It has no address any more when the proxy asks for it."""
    options = ("--trace", str(tmp_path / "a.trace"))
    with Broker() as broker, ProxyProcess(broker.bootstrap, *options) as proxy:
        host, port = proxy.address.split(":")
        with proxy.paused(), socket.create_connection((host, int(port)), 30) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        assert kwire("info", "-q", "-b", proxy.address).returncode == 0
        proxy.stop()
        assert proxy.errors == ""


def test_nobody_at_the_target_is_said(tmp_path: Path) -> None:
    with ProxyProcess("127.0.0.1:1", "--explain") as proxy:
        assert kwire("info", "-q", "-b", proxy.address, "--timeout", "20").returncode == 1
    assert "127.0.0.1:1: " in proxy.out


def test_a_broker_writes_its_own_trace(tmp_path: Path) -> None:
    path = tmp_path / "own.trace.gz"
    with ServedBroker(arguments=["--trace", str(path)]) as broker:
        results = with_kafka_python(broker.bootstrap, "orders", "g")
    events = events_of(path)
    requests = [event for event in events if event.kind == REQUEST]
    replies = [event for event in events if event.kind == RESPONSE]
    assert {event.api for event in requests} >= {"Produce", "Fetch", "JoinGroup", "OffsetCommit"}
    assert len(replies) <= len(requests)
    with Broker() as fresh:
        again = kwire("trace", "replay", str(path), fresh.bootstrap)
        assert again.returncode == 0, again.stdout
    shown = kwire("trace", "show", str(path), "--explain")
    assert "group g rebalances: kafka-python joins" in shown.stdout
    by_client = kwire("trace", "stat", str(path), "--by", "both", "--json")
    rows = [json.loads(line) for line in by_client.stdout.splitlines()]
    produced = next(row for row in rows if row["api"] == "Produce")
    assert produced["requests"] == len(results[0])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["proxy", "127.0.0.1:x", "b:1"], "127.0.0.1:x: expected HOST:PORT"),
        (["proxy", "127.0.0.1:0", "b:99999"], "b:99999: expected HOST:PORT"),
        (["proxy", "127.0.0.1:0", "b:0"], "port 0 is no broker's"),
        (["proxy", "no.such.host.invalid:0", "b:1"], "no.such.host.invalid:0 cannot be served"),
        (["proxy", "127.0.0.1:0", "b:1", "--api", "Fech"], "did you mean Fetch?"),
        (["proxy", "127.0.0.1:0", "b:1", "--trace", "/no/such/x"], "--trace /no/such/x: No such"),
        (["proxy", "127.0.0.1:0", "b:1", "--command-config", "/no/such"], "/no/such"),
        (["serve", "--trace", "/no/such/x", "--ephemeral"], "--trace /no/such/x: No such file"),
        (["serve", "--trace", "x", "--brokers", "3"], "--trace is for one broker"),
        (["trace", "show", "/no/such"], "/no/such: No such file"),
        (["trace", "stat", "pyproject.toml"], "no trace of kwire's"),
        (["trace", "stat", "pyproject.toml", "--by", "moon"], "--by moon: accepted are api"),
        (["trace", "replay", "pyproject.toml", "127.0.0.1:1"], "no trace of kwire's"),
        (["trace", "replay", "pyproject.toml", "x:y"], "x:y: expected HOST:PORT"),
    ],
)
def test_what_cannot_be_is_told_in_one_line(arguments: list[str], told: str) -> None:
    refused = kwire(*arguments)
    assert refused.returncode in (1, 2)
    assert told in refused.stderr
    assert refused.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "request_",
    [
        {"api": "Fetch", "key": 1, "version": 12, "body": {"topics": None}},
        {
            "api": "Metadata",
            "key": 3,
            "version": 9,
            "client_id": "\ud800",
            "body": {"topics": None},
        },
        {"api": "Metadata", "key": 3, "version": 9, "body": {"topics": [{"name": "\ud800"}]}},
    ],
    ids=["no list", "client id", "name"],
)
def test_a_request_that_nobody_can_send_ends_no_replay(
    request_: dict[str, object], tmp_path: Path
) -> None:
    lines = [
        {"event": "trace", "ms": 0, "format": 1, "kept_bytes": 0, "filters": {}},
        {"event": "open", "ms": 0, "connection": 1, "client": "a:1", "broker": "b:1"},
        {"event": "request", "ms": 1, "connection": 1, "id": 1, "bytes": 9, **request_},
    ]
    path = tmp_path / "odd.trace"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    with Broker() as broker:
        played = kwire("trace", "replay", str(path), broker.bootstrap)
    assert played.stderr == ""
    assert "1 requests" in played.stdout or "requests left out" in played.stdout, played.stdout


def test_traces_that_cannot_be_replayed_are_told_in_one_line(tmp_path: Path) -> None:
    head = '{"event":"trace","ms":0,"format":1,"kept_bytes":0,"filters":'
    part = tmp_path / "part.trace"
    part.write_text(f'{head}{{"topic":"t"}}}}\n')
    cut = tmp_path / "cut.trace"
    cut.write_text(f'{head}{{}}}}\n{{"event":"req')
    with Broker() as broker:
        refused = kwire("trace", "replay", str(part), broker.bootstrap)
        assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
        assert "holds a part of the traffic only (topic)" in refused.stderr
        damaged = kwire("trace", "replay", str(cut), broker.bootstrap)
        assert (damaged.returncode, damaged.stderr.count("\n")) == (1, 1)
        assert "read up to line 2 is no line of a trace" in damaged.stderr
