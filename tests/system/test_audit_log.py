"""The audit log of a broker: who was denied what, who changed what, and nothing that is secret."""

from __future__ import annotations

import contextlib
import json
import pathlib
from typing import Any

import pytest

from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.testing.cluster import Broker, NodeFailed, free_ports, wait_for
from tests.support.sasl import sasl_settings
from tests.support.wire import WireClient, fetch_request

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
EVERYTHING = "denied,authentication_failure,acl_change,config_change,topic_deletion"
TOPIC, LITERAL, READ, DENY = 2, 3, 3, 2


def audited(log: pathlib.Path | str, **options: str) -> Broker:
    settings = {
        "authorizer.class.name": AUTHORIZER,
        "allow.everyone.if.no.acl.found": "true",
        "kwire.audit.log": str(log),
    }
    settings |= {name.replace("_", "."): value for name, value in options.items()}
    return Broker(options=settings)


def deny_reading(client: WireClient, topic: str) -> None:
    acl = m.CreateAclsRequest.AclCreation(
        resource_type=TOPIC,
        resource_name=topic,
        resource_pattern_type=LITERAL,
        principal="User:ANONYMOUS",
        host="*",
        operation=READ,
        permission_type=DENY,
    )
    response = client.call(m.CreateAclsRequest(creations=[acl]), 3)
    assert [result.error_code for result in response.results] == [0]


def fetch(client: WireClient, topic: str) -> int:
    response = client.call(fetch_request(topic, {0: 0}), 12)
    return int(response.responses[0].partitions[0].error_code)


def events(log: pathlib.Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_denials_are_told_with_who_and_what(tmp_path: pathlib.Path) -> None:
    log = tmp_path / "audit.log"
    with audited(log) as broker, WireClient(broker.bootstrap) as client:
        for topic in ("secret", "open"):
            client.create_topic(topic)
        deny_reading(client, "secret")
        wait_for(
            lambda: fetch(client, "secret") == ErrorCode.TOPIC_AUTHORIZATION_FAILED, "denied", 30
        )
        assert fetch(client, "open") == 0
        wait_for(lambda: bool(events(log)), "a line", 30)
        told = events(log)[0]
        assert told.pop("time")
        assert told == {
            "event": "denied",
            "principal": "User:ANONYMOUS",
            "client_host": "127.0.0.1",
            "client_id": "test",
            "listener": "PLAINTEXT",
            "api": "Fetch",
            "operation": "READ",
            "resource_type": "TOPIC",
            "resource": "secret",
        }
        # What is left out of an answer is no denial; nor are changes asked for.
        client.topics()
        log.rename(tmp_path / "audit.1")
        fetch(client, "secret")
        wait_for(log.exists, "the file is opened anew", 30)
        wait_for(lambda: bool(events(log)), "a line in it", 30)
    old = events(tmp_path / "audit.1")
    assert {(one["event"], one.get("resource")) for one in old + events(log)} == {
        ("denied", "secret")
    }


def test_changes_are_told_and_no_values(tmp_path: pathlib.Path) -> None:
    log = tmp_path / "audit.log"
    with contextlib.ExitStack() as stack:
        broker = stack.enter_context(audited(log, kwire_audit_events=EVERYTHING))
        client = stack.enter_context(WireClient(broker.bootstrap))
        client.create_topic("t")
        deny_reading(client, "other")
        shape = m.IncrementalAlterConfigsRequest
        config = shape.AlterableConfig(name="retention.ms", config_operation=0, value="424242")
        resource = shape.AlterConfigsResource(
            resource_type=TOPIC, resource_name="t", configs=[config]
        )
        client.call(shape(resources=[resource]), 1)
        topic = m.DeleteTopicsRequest.DeleteTopicState(name="t")
        client.call(m.DeleteTopicsRequest(topics=[topic], timeout_ms=30_000), 6)
        wait_for(lambda: len(events(log)) == 3, "three changes", 30)
    assert "424242" not in log.read_text()
    assert [(one["event"], one["api"], one["changes"]) for one in events(log)] == [
        (
            "acl_change",
            "CreateAcls",
            ["create DENY User:ANONYMOUS from * READ on TOPIC LITERAL other"],
        ),
        ("config_change", "IncrementalAlterConfigs", ["set retention.ms of topic t"]),
        ("topic_deletion", "DeleteTopics", ["t"]),
    ]


def test_a_flood_of_denials_is_counted(tmp_path: pathlib.Path) -> None:
    log = tmp_path / "audit.log"
    with contextlib.ExitStack() as stack:
        broker = stack.enter_context(audited(log, kwire_audit_lines_per_second="3"))
        client = stack.enter_context(WireClient(broker.bootstrap))
        client.create_topic("t")
        deny_reading(client, "t")
        wait_for(lambda: fetch(client, "t") != 0, "denied", 30)
        client.pipeline([(fetch_request("t", {0: 0}), 12)] * 200)
    told = events(log)
    left_out = sum(one["count"] for one in told if one["event"] == "left_out")
    written = sum(one["event"] == "denied" for one in told)
    assert written + left_out == 201
    assert left_out > 0


def test_a_log_that_cannot_be_opened_ends_the_start(tmp_path: pathlib.Path) -> None:
    with pytest.raises(NodeFailed, match=r"kwire\.audit\.log=.* cannot be opened: No such file"):
        audited(tmp_path / "none" / "audit.log").start()


def test_a_client_that_does_not_prove_who_it_is_is_told_without_its_password(
    tmp_path: pathlib.Path,
) -> None:
    log = tmp_path / "audit.log"
    port, sasl_port = free_ports(2)
    listeners = f"PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:{sasl_port}"
    options = {
        "listeners": listeners,
        "advertised.listeners": listeners,
        "kwire.audit.log": str(log),
        "kwire.audit.events": EVERYTHING,
        **sasl_settings("SASL_PLAINTEXT", mechanisms=("PLAIN",)),
    }
    broker = Broker(port=port, options=options)
    with broker, WireClient(f"127.0.0.1:{sasl_port}") as client:
        client.call(m.SaslHandshakeRequest(mechanism="PLAIN"), 1)
        answer = client.call(m.SaslAuthenticateRequest(auth_bytes=b"\0eve\0her-guess"), 2)
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        wait_for(lambda: bool(events(log)), "a line", 30)
    assert "her-guess" not in log.read_text()
    (told,) = events(log)
    assert told.pop("time")
    assert told == {
        "event": "authentication_failure",
        "client_host": "127.0.0.1",
        "listener": "SASL_PLAINTEXT",
        "mechanism": "PLAIN",
        "reason": "Authentication failed: Invalid username or password",
    }
