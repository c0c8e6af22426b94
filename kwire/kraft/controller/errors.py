"""A request's answer when all of it fails: Kafka's place for the error in each response."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kwire.kraft.controller.results import text_of
from kwire.protocol import messages as m
from kwire.protocol.errors import KafkaError


def error_response(
    request: Any, error: KafkaError, api_version: int = 0, principal: str = "User:ANONYMOUS"
) -> Any:
    """The response of `request` that says `error`; `principal` is who asked.

    Where the response has no error of its own, every topic, resource or filter of the request
    gets it, as Kafka does.
    """
    name = type(request).NAME
    if name in _TOKEN_REQUESTS:
        from kwire.kraft.controller.tokens import failed

        return failed(request, error.code, api_version, principal)
    builder = _BUILDERS.get(name)
    if builder is not None:
        response = builder(request, int(error.code), text_of(error))
        if name == "ElectLeadersRequest" and api_version >= 1:
            response.error_code = int(error.code)
        return response
    response = getattr(m, name.removesuffix("Request") + "Response")()
    response.error_code = int(error.code)
    if hasattr(response, "error_message"):
        response.error_message = text_of(error)
    return response


def _create_topics(request: Any, code: int, text: str | None) -> Any:
    result = m.CreateTopicsResponse.CreatableTopicResult
    return m.CreateTopicsResponse(
        topics=[
            result(name=topic.name, error_code=code, error_message=text) for topic in request.topics
        ]
    )


def _delete_topics(request: Any, code: int, text: str | None) -> Any:
    result = m.DeleteTopicsResponse.DeletableTopicResult
    responses = [
        result(name=topic.name, topic_id=topic.topic_id, error_code=code, error_message=None)
        for topic in request.topics or ()
    ]
    responses += [
        result(name=name, error_code=code, error_message=None) for name in request.topic_names or ()
    ]
    return m.DeleteTopicsResponse(responses=responses)


def _create_partitions(request: Any, code: int, text: str | None) -> Any:
    result = m.CreatePartitionsResponse.CreatePartitionsTopicResult
    return m.CreatePartitionsResponse(
        results=[
            result(name=topic.name, error_code=code, error_message=text) for topic in request.topics
        ]
    )


def _configs(response: str) -> Callable[[Any, int, str | None], Any]:
    def build(request: Any, code: int, text: str | None) -> Any:
        answer = getattr(m, response)
        return answer(
            responses=[
                answer.AlterConfigsResourceResponse(
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                    error_code=code,
                    error_message=text,
                )
                for resource in request.resources
            ]
        )

    return build


def _create_acls(request: Any, code: int, text: str | None) -> Any:
    result = m.CreateAclsResponse.AclCreationResult
    return m.CreateAclsResponse(
        results=[result(error_code=code, error_message=text) for _ in request.creations]
    )


def _delete_acls(request: Any, code: int, text: str | None) -> Any:
    result = m.DeleteAclsResponse.DeleteAclsFilterResult
    return m.DeleteAclsResponse(
        filter_results=[result(error_code=code, error_message=text) for _ in request.filters]
    )


def _quotas(request: Any, code: int, text: str | None) -> Any:
    answer = m.AlterClientQuotasResponse
    return answer(
        entries=[
            answer.EntryData(
                error_code=code,
                error_message=text,
                entity=[
                    answer.EntityData(entity_type=e.entity_type, entity_name=e.entity_name)
                    for e in entry.entity
                ],
            )
            for entry in request.entries
        ]
    )


def _scram(request: Any, code: int, text: str | None) -> Any:
    answer = m.AlterUserScramCredentialsResponse
    users = dict.fromkeys(item.name for item in (*request.deletions, *request.upsertions))
    return answer(
        results=[
            answer.AlterUserScramCredentialsResult(user=user, error_code=code, error_message=text)
            for user in users
        ]
    )


def _reassignments(request: Any, code: int, text: str | None) -> Any:
    answer = m.AlterPartitionReassignmentsResponse
    return answer(
        error_code=code,
        error_message=text,
        responses=[
            answer.ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    answer.ReassignablePartitionResponse(
                        partition_index=p.partition_index, error_code=code, error_message=text
                    )
                    for p in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


def _elect_leaders(request: Any, code: int, text: str | None) -> Any:
    answer = m.ElectLeadersResponse
    return answer(
        replica_election_results=[
            answer.ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[
                    answer.PartitionResult(partition_id=index, error_code=code, error_message=text)
                    for index in topic.partitions
                ],
            )
            for topic in request.topic_partitions or ()
        ],
    )


_TOKEN_REQUESTS = (
    "CreateDelegationTokenRequest",
    "RenewDelegationTokenRequest",
    "ExpireDelegationTokenRequest",
)

_BUILDERS: dict[str, Callable[[Any, int, str | None], Any]] = {
    "CreateTopicsRequest": _create_topics,
    "DeleteTopicsRequest": _delete_topics,
    "CreatePartitionsRequest": _create_partitions,
    "IncrementalAlterConfigsRequest": _configs("IncrementalAlterConfigsResponse"),
    "AlterConfigsRequest": _configs("AlterConfigsResponse"),
    "CreateAclsRequest": _create_acls,
    "DeleteAclsRequest": _delete_acls,
    "AlterClientQuotasRequest": _quotas,
    "AlterUserScramCredentialsRequest": _scram,
    "AlterPartitionReassignmentsRequest": _reassignments,
    "ElectLeadersRequest": _elect_leaders,
}
