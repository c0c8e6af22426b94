"""What jobs ask a cluster for, and the settings of its clients."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kwire.spark.client_settings import (
    check_settings,
    client_config,
    connector_options,
    parse_jaas,
    read_settings,
)
from kwire.spark.usage import JobError, UsageError
from kwire.testing.cluster.ports import free_ports


def test_a_cluster_that_does_not_answer_is_an_error_of_the_job(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Found in a fail-over: a wait for librdkafka that ended was a TimeoutError without a word."""
    pytest.importorskip("confluent_kafka")
    from concurrent.futures import Future

    from kwire.spark import cluster

    monkeypatch.setattr(cluster, "FUTURE_TIMEOUT_S", 0.01)
    lost = cluster.Cluster("127.0.0.1:1")

    class Silent:
        def list_consumer_groups(self, **_: Any) -> Future[None]:
            return Future()

        def list_consumer_group_offsets(self, request: Any, **_: Any) -> dict[str, Future[None]]:
            return {"g": Future()}

        def poll(self, seconds: float) -> None:
            pass

    lost._admin = Silent()  # type: ignore[assignment]
    for call in (lambda: lost.groups(".*"), lambda: lost.group_offsets("g")):
        with pytest.raises(JobError, match="no answer in 0 s"):
            call()


@pytest.mark.parametrize(
    ("host", "why"), [("127.0.0.1", "connection refused"), ("no.such.host.invalid", "is unknown")]
)
def test_an_address_where_nobody_listens_is_told_within_seconds(
    host: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It took half a minute and told librdkafka's sentence."""
    pytest.importorskip("confluent_kafka")
    from kwire.spark import cluster

    monkeypatch.setattr(cluster, "FIRST_ANSWER_S", 0.2)
    monkeypatch.setattr(cluster, "FUTURE_TIMEOUT_S", 20.0)
    at = f"{host}:{free_ports(1)[0]}"
    for call in (cluster.Cluster(at).topic_names, lambda: cluster.Cluster(at).describe(["t"])):
        with pytest.raises(JobError, match=f"no broker at {at}: .*{why}"):
            call()


def test_a_word_on_a_connection_is_told_without_its_states() -> None:
    from kwire.spark.cluster import unreached_text

    trouble = "sasl_plaintext://h:1/bootstrap: SASL authentication error: no (after 3ms in state X)"
    assert unreached_text("h:1", trouble) == "no broker at h:1: SASL authentication error: no"


def test_a_new_topic_is_there_when_it_has_leaders(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker may not know it yet, or a partition have no leader: offsets could not be asked."""
    pytest.importorskip("confluent_kafka")
    from concurrent.futures import Future
    from types import SimpleNamespace

    from confluent_kafka import KafkaException

    from kwire.spark import cluster

    monkeypatch.setattr(cluster, "LEADERS_PAUSE_S", 0)
    answers: list[Any] = [KafkaException("unknown"), [None, 1], [2, 1]]

    class Admin:
        def create_topics(self, topics: Any, **_: Any) -> dict[str, Future[None]]:
            done: Future[None] = Future()
            done.set_result(None)
            return {"t": done}

        def describe_topics(self, topics: Any, **_: Any) -> dict[str, Future[Any]]:
            found: Future[Any] = Future()
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                found.set_exception(answer)
            else:
                partitions = [SimpleNamespace(leader=leader) for leader in answer]
                found.set_result(SimpleNamespace(partitions=partitions))
            return {"t": found}

    made = cluster.Cluster("127.0.0.1:1")
    made._admin = Admin()  # type: ignore[assignment]
    made.create_topic("t", 2)
    assert answers == []


def test_who_moves_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Apache Kafka answers so for a moment after a topic's creation, and while a coordinator
    loads, of all or of one partition: a replay ended there, and a mirror left groups out and
    took what was refused for done."""
    pytest.importorskip("confluent_kafka")
    from concurrent.futures import Future
    from types import SimpleNamespace

    from confluent_kafka import ConsumerGroupState, KafkaError, KafkaException

    from kwire.spark import cluster

    monkeypatch.setattr(cluster, "LEADERS_PAUSE_S", 0)
    group = SimpleNamespace(group_id="g", state=ConsumerGroupState.EMPTY)
    loading = KafkaError(KafkaError.COORDINATOR_LOAD_IN_PROGRESS)
    away = KafkaException(KafkaError(KafkaError.NOT_COORDINATOR))
    place = SimpleNamespace(topic="t", partition=0, offset=7, error=None)
    not_yet = SimpleNamespace(topic="t", partition=0, offset=-1001, error=loading)
    answers: list[Any] = []

    def answer(*_: Any, **__: Any) -> Any:
        result: Future[Any] = Future()
        found = answers.pop(0)
        if isinstance(found, Exception):
            result.set_exception(found)
        else:
            result.set_result(found)
        return result

    class Admin:
        list_consumer_groups = staticmethod(answer)

        def list_offsets(self, request: Any, **_: Any) -> dict[Any, Any]:
            return {partition: answer() for partition in request}

        def list_consumer_group_offsets(self, request: Any, **_: Any) -> dict[str, Any]:
            return {"g": answer()}

        alter_consumer_group_offsets = list_consumer_group_offsets

    moving = cluster.Cluster("127.0.0.1:1")
    moving._admin = Admin()  # type: ignore[assignment]
    answers = [
        *(SimpleNamespace(valid=[], errors=[loading]), SimpleNamespace(valid=[group], errors=[])),
        *(away, SimpleNamespace(topic_partitions=[place])),
        *(SimpleNamespace(topic_partitions=[found]) for found in (not_yet, place)),
        SimpleNamespace(offset=3),
        KafkaException(KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION)),
        SimpleNamespace(offset=4),
    ]
    assert moving.groups(".*") == {"g": False}
    assert moving.group_offsets("g") == {("t", 0): 7}
    assert moving.set_group_offsets("g", {("t", 0): 7}) is None
    assert moving.offsets([("t", 0), ("t", 1)], cluster.LATEST) == {("t", 0): 3, ("t", 1): 4}
    assert answers == []


def test_client_settings_by_kafkas_names() -> None:
    settings = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": 'org.ScramLoginModule required username="a\\"b" password=secret;',
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "/ca.pem",
        "ssl.endpoint.identification.algorithm": "",
        "linger.ms": "5",
        "fetch.max.bytes": "1000",
    }
    check_settings(settings)
    assert client_config("h:1", settings, producer=True) == {
        "bootstrap.servers": "h:1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanisms": "SCRAM-SHA-256",
        "sasl.username": 'a"b',
        "sasl.password": "secret",
        "ssl.ca.location": "/ca.pem",
        "ssl.endpoint.identification.algorithm": "none",
        "linger.ms": "5",
    }
    options = connector_options("h:1", settings)
    assert options["kafka.sasl.jaas.config"] == settings["sasl.jaas.config"]
    assert options["kafka.fetch.max.bytes"] == "1000"
    assert "kafka.linger.ms" not in options


def test_client_settings_of_a_file_and_of_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nclient.id=file\n")
    found = read_settings(str(path), ["client.id=line"], "--kafka-option")
    assert found == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "client.id": "line",
    }
    assert read_settings(None, ["client.id=line"], "-o") == {"client.id": "line"}
    with pytest.raises(UsageError, match=r"none: No such file"):
        read_settings(str(tmp_path / "none"), [], "-o")
    path.write_text("group.id=g\n")
    with pytest.raises(UsageError, match=r"group\.id: the job sets this itself"):
        read_settings(str(path), [], "-o")


@pytest.mark.parametrize(
    "settings",
    [
        {"group.id": "x"},
        {"kafka.isolation.level": "read_uncommitted"},
        {"security.protocol": "TLS"},
        {"security.protocol": "SASL_SSL"},
    ],
)
def test_settings_that_are_refused(settings: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        check_settings(settings)


def test_jaas_of_other_modules_is_refused() -> None:
    for text in ("Krb5LoginModule required;", "PlainLoginModule required username=a;"):
        with pytest.raises(UsageError):
            parse_jaas(text)


def test_a_wait_for_a_broker_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job was silent until it gave up."""
    pytest.importorskip("confluent_kafka")
    import threading

    from confluent_kafka import KafkaException

    from kwire.spark import cluster

    told = threading.Event()
    lines: list[str] = []

    def say(line: str) -> None:
        lines.append(line)
        told.set()

    class Silent:
        def list_topics(self, timeout: float) -> None:
            assert told.wait(60)
            raise KafkaException("no answer")

        def poll(self, seconds: float) -> None:
            pass

    monkeypatch.setattr(cluster, "TELL_AFTER_S", 0)
    silent = cluster.Cluster("127.0.0.1:1", say=say)
    silent._admin = Silent()  # type: ignore[assignment]
    with pytest.raises(JobError):
        silent.topic_names()
    assert lines == ["no answer of 127.0.0.1:1 yet, waiting for 30 s at most"]
