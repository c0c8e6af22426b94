"""A request's answer when all of it fails: Kafka's place for the error in each response."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kwire.kraft.controller.results import text_of
from kwire.protocol import messages as m
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.errors import KafkaError
from kwire.protocol.structs import Message, Request, Response
from kwire.security.authorizer import ANONYMOUS


def error_response(
    request: Request[Response],
    error: KafkaError,
    api_version: int = 0,
    principal: str = ANONYMOUS,
) -> Response:
    """The response of `request` that says `error`; `principal` is who asked.

    Where the response has no error of its own, every topic, resource or filter of the request
    gets it, as Kafka does.
    """
    response: Response = _failed(request, error, api_version, principal)
    return response


def _failed(request: Request[Any], error: KafkaError, api_version: int, principal: str) -> Any:
    code, text = int(error.code), text_of(error)
    if isinstance(request, m.CreateDelegationTokenRequest):
        from kwire.kraft.controller.requests.tokens import creation_failed

        return creation_failed(request, code, api_version, principal)
    if isinstance(request, m.ElectLeadersRequest):
        return _elect_leaders(request, code, text, has_own_error=api_version >= 1)
    builder = _BUILDERS.get(request.API_KEY)
    if builder is not None:
        return builder(request, code, text)
    response = m.response_class(request.API_KEY)()
    response.error_code = code
    if hasattr(response, "error_message"):
        response.error_message = text
    return response


def _create_topics(
    request: m.CreateTopicsRequest, code: int, text: str | None
) -> m.CreateTopicsResponse:
    result = m.CreateTopicsResponse.CreatableTopicResult
    return m.CreateTopicsResponse(
        topics=[
            result(name=topic.name, error_code=code, error_message=text) for topic in request.topics
        ]
    )


def _delete_topics(
    request: m.DeleteTopicsRequest, code: int, text: str | None
) -> m.DeleteTopicsResponse:
    result = m.DeleteTopicsResponse.DeletableTopicResult
    responses = [
        result(name=topic.name, topic_id=topic.topic_id, error_code=code, error_message=None)
        for topic in request.topics or ()
    ]
    responses += [
        result(name=name, error_code=code, error_message=None) for name in request.topic_names or ()
    ]
    return m.DeleteTopicsResponse(responses=responses)


def _create_partitions(
    request: m.CreatePartitionsRequest, code: int, text: str | None
) -> m.CreatePartitionsResponse:
    result = m.CreatePartitionsResponse.CreatePartitionsTopicResult
    return m.CreatePartitionsResponse(
        results=[
            result(name=topic.name, error_code=code, error_message=text) for topic in request.topics
        ]
    )


def _incremental_alter_configs(
    request: m.IncrementalAlterConfigsRequest, code: int, text: str | None
) -> m.IncrementalAlterConfigsResponse:
    answer = m.IncrementalAlterConfigsResponse
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


def _alter_configs(
    request: m.AlterConfigsRequest, code: int, text: str | None
) -> m.AlterConfigsResponse:
    answer = m.AlterConfigsResponse
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


def _renew_token(
    request: m.RenewDelegationTokenRequest, code: int, text: str | None
) -> m.RenewDelegationTokenResponse:
    return m.RenewDelegationTokenResponse(error_code=code, expiry_timestamp_ms=-1)


def _expire_token(
    request: m.ExpireDelegationTokenRequest, code: int, text: str | None
) -> m.ExpireDelegationTokenResponse:
    return m.ExpireDelegationTokenResponse(error_code=code, expiry_timestamp_ms=-1)


def _create_acls(request: m.CreateAclsRequest, code: int, text: str | None) -> m.CreateAclsResponse:
    result = m.CreateAclsResponse.AclCreationResult
    return m.CreateAclsResponse(
        results=[result(error_code=code, error_message=text) for _ in request.creations]
    )


def _delete_acls(request: m.DeleteAclsRequest, code: int, text: str | None) -> m.DeleteAclsResponse:
    result = m.DeleteAclsResponse.DeleteAclsFilterResult
    return m.DeleteAclsResponse(
        filter_results=[result(error_code=code, error_message=text) for _ in request.filters]
    )


def _list_reassignments(
    request: m.ListPartitionReassignmentsRequest, code: int, text: str | None
) -> m.ListPartitionReassignmentsResponse:
    answer = m.ListPartitionReassignmentsResponse
    return answer(
        error_code=code,
        error_message=text,
        topics=[
            answer.OngoingTopicReassignment(
                name=topic.name,
                partitions=[
                    answer.OngoingPartitionReassignment(partition_index=index)
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics or ()
        ],
    )


def _quotas(
    request: m.AlterClientQuotasRequest, code: int, text: str | None
) -> m.AlterClientQuotasResponse:
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


def _scram(
    request: m.AlterUserScramCredentialsRequest, code: int, text: str | None
) -> m.AlterUserScramCredentialsResponse:
    answer = m.AlterUserScramCredentialsResponse
    users = dict.fromkeys(
        [deletion.name for deletion in request.deletions]
        + [upsertion.name for upsertion in request.upsertions]
    )
    return answer(
        results=[
            answer.AlterUserScramCredentialsResult(user=user, error_code=code, error_message=text)
            for user in users
        ]
    )


def _reassignments(
    request: m.AlterPartitionReassignmentsRequest, code: int, text: str | None
) -> m.AlterPartitionReassignmentsResponse:
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


def _elect_leaders(
    request: m.ElectLeadersRequest, code: int, text: str | None, has_own_error: bool
) -> m.ElectLeadersResponse:
    answer = m.ElectLeadersResponse
    return answer(
        error_code=code if has_own_error else 0,
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


# A builder takes the request of its API and returns the response.
_BUILDERS: dict[int, Callable[[Any, int, str | None], Message]] = {
    ApiKey.CREATE_TOPICS: _create_topics,
    ApiKey.DELETE_TOPICS: _delete_topics,
    ApiKey.CREATE_PARTITIONS: _create_partitions,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _incremental_alter_configs,
    ApiKey.ALTER_CONFIGS: _alter_configs,
    ApiKey.CREATE_ACLS: _create_acls,
    ApiKey.DELETE_ACLS: _delete_acls,
    ApiKey.ALTER_CLIENT_QUOTAS: _quotas,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _scram,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _reassignments,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _list_reassignments,
    ApiKey.RENEW_DELEGATION_TOKEN: _renew_token,
    ApiKey.EXPIRE_DELEGATION_TOKEN: _expire_token,
}
