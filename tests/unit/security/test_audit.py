"""What an audit log says, and how much of it."""

from __future__ import annotations

import json

import pytest

from kwire.protocol import messages as m
from kwire.protocol.structs import Message
from kwire.security import audit
from kwire.security.audit_changes import Change, change_of


def test_a_line_is_one_json_object_whatever_stands_in_it() -> None:
    line = audit.line(
        audit.DENIED,
        {
            "principal": 'User:a"\n{"event":"forged"}\x1b[2J',
            "client_id": None,
            "resource": "x" * 1000,
            "changes": ["n"] * 150,
        },
        1_700_000_000_123,
    )
    assert line.count("\n") == 1
    assert line.endswith("\n")
    assert "\x1b" not in line
    told = json.loads(line)
    assert (told["time"], told["event"]) == ("2023-11-14T22:13:20.123Z", "denied")
    assert told["principal"].startswith('User:a"\n')
    assert "client_id" not in told
    assert len(told["resource"]) == audit.TEXT_MAX
    assert (len(told["changes"]), told["count"]) == (audit.NAMES_MAX, 150)


def test_lines_of_a_second_are_bounded_and_the_others_counted() -> None:
    rate = audit.LineRate(2)
    admitted = [rate.admits(audit.DENIED, 1000) for _ in range(5)]
    assert admitted == [True, True, False, False, False]
    assert not rate.admits(audit.AUTHENTICATION_FAILURE, 1999)
    assert rate.admits(audit.DENIED, 2000)
    assert rate.take_left_out() == {"denied": 3, "authentication_failure": 1}
    assert not rate.has_left_out


def test_nobody_hides_a_change_behind_what_he_is_denied() -> None:
    rate = audit.LineRate(2)
    for _ in range(5):
        rate.admits(audit.DENIED, 1000)
    admitted = [rate.admits(event, 1999) for event in audit.CHANGES]
    assert admitted == [True, True, False]
    assert rate.take_left_out() == {"denied": 3, "topic_deletion": 1}


DELETE = m.DeleteTopicsResponse.DeletableTopicResult
ALTER = m.IncrementalAlterConfigsRequest
ALTERED = m.IncrementalAlterConfigsResponse
REPLACE = m.AlterConfigsRequest
REPLACED = m.AlterConfigsResponse
QUOTAS = m.AlterClientQuotasRequest
QUOTAS_ANSWER = m.AlterClientQuotasResponse
SCRAM_ANSWER = m.AlterUserScramCredentialsResponse

CASES: list[tuple[Message, Message, Change | None]] = [
    (
        m.DeleteTopicsRequest(),
        m.DeleteTopicsResponse(
            responses=[DELETE(name="a"), DELETE(name="b", error_code=29), DELETE(name=None)]
        ),
        Change("topic_deletion", ["a", "id AAAAAAAAAAAAAAAAAAAAAA"]),
    ),
    (
        ALTER(
            resources=[
                ALTER.AlterConfigsResource(
                    resource_type=4,
                    resource_name="",
                    configs=[
                        ALTER.AlterableConfig(
                            name="listener.name.x.ssl.keystore.password",
                            config_operation=0,
                            value="hidden-secret",
                        ),
                        ALTER.AlterableConfig(name="y", config_operation=1, value=None),
                    ],
                ),
                ALTER.AlterConfigsResource(resource_type=2, resource_name="refused"),
            ]
        ),
        ALTERED(
            responses=[
                ALTERED.AlterConfigsResourceResponse(resource_type=4, resource_name=""),
                ALTERED.AlterConfigsResourceResponse(
                    resource_type=2, resource_name="refused", error_code=29
                ),
            ]
        ),
        Change(
            "config_change",
            [
                "set listener.name.x.ssl.keystore.password of broker (default)",
                "delete y of broker (default)",
            ],
        ),
    ),
    (ALTER(validate_only=True), ALTERED(), None),
    (
        REPLACE(
            resources=[
                REPLACE.AlterConfigsResource(
                    resource_type=2,
                    resource_name="t",
                    configs=[REPLACE.AlterableConfig(name="retention.ms", value="1")],
                )
            ]
        ),
        REPLACED(
            responses=[REPLACED.AlterConfigsResourceResponse(resource_type=2, resource_name="t")]
        ),
        Change("config_change", ["replace all of topic t by retention.ms"]),
    ),
    (
        QUOTAS(
            entries=[
                QUOTAS.EntryData(
                    entity=[QUOTAS.EntityData(entity_type="user", entity_name=name)],
                    ops=[QUOTAS.OpData(key="producer_byte_rate", value=1.0)],
                )
                for name in ("a", None)
            ]
        ),
        QUOTAS_ANSWER(
            entries=[
                QUOTAS_ANSWER.EntryData(
                    error_code=code,
                    entity=[QUOTAS_ANSWER.EntityData(entity_type="user", entity_name=name)],
                )
                for name, code in (("a", 42), (None, 0))
            ]
        ),
        Change("config_change", ["set producer_byte_rate of user (default)"]),
    ),
    (
        m.AlterUserScramCredentialsRequest(),
        SCRAM_ANSWER(
            results=[SCRAM_ANSWER.AlterUserScramCredentialsResult(user="eve", error_code=0)]
        ),
        Change("config_change", ["credentials of user eve"]),
    ),
    (
        m.CreateAclsRequest(
            creations=[
                m.CreateAclsRequest.AclCreation(
                    resource_type=2,
                    resource_name="t",
                    resource_pattern_type=4,
                    principal="User:a",
                    host="*",
                    operation=3,
                    permission_type=2,
                )
            ]
        ),
        m.CreateAclsResponse(results=[m.CreateAclsResponse.AclCreationResult()]),
        Change("acl_change", ["create DENY User:a from * READ on TOPIC PREFIXED t"]),
    ),
    (
        m.DeleteAclsRequest(),
        m.DeleteAclsResponse(
            filter_results=[
                m.DeleteAclsResponse.DeleteAclsFilterResult(
                    matching_acls=[
                        m.DeleteAclsResponse.DeleteAclsMatchingAcl(
                            resource_type=4,
                            resource_name="kafka-cluster",
                            pattern_type=3,
                            principal="User:a",
                            host="10.0.0.1",
                            operation=99,
                            permission_type=3,
                        )
                    ]
                )
            ]
            * 2
        ),
        Change(
            "acl_change", ["delete ALLOW User:a from 10.0.0.1 99 on CLUSTER LITERAL kafka-cluster"]
        ),
    ),
]


@pytest.mark.parametrize(("request_", "response", "expected"), CASES)
def test_what_was_changed_is_named_without_values(
    request_: Message, response: Message, expected: Change | None
) -> None:
    assert change_of(request_, response) == expected
