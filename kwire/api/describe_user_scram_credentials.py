"""DescribeUserScramCredentials, version 0: which SCRAM mechanisms users have, never the keys.

No users named means all. Source: KIP-554; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from kwire.pending import Answer
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Checked, Requires
from kwire.server.context import RequestContext

VERSIONS = (0, 0)
AUTHORIZATION = (Requires(Operation.DESCRIBE, ResourceType.CLUSTER, checked=Checked.BEFORE),)


def handle(
    context: RequestContext, request: m.DescribeUserScramCredentialsRequest
) -> Answer[m.DescribeUserScramCredentialsResponse]:
    """See the module."""
    scram = context.parts.metadata.image.scram
    counts: dict[str, int] = {}
    if request.users:
        for asked in request.users:
            counts[asked.name] = counts.get(asked.name, 0) + 1
    else:
        counts = dict.fromkeys((user for _, user in sorted(scram)), 1)
    answer = m.DescribeUserScramCredentialsResponse
    credentials: dict[str, list[m.DescribeUserScramCredentialsResponse.CredentialInfo]] = {}
    for (mechanism, user), credential in sorted(scram.items()):
        if user in counts:
            credentials.setdefault(user, []).append(
                answer.CredentialInfo(mechanism=mechanism, iterations=credential.iterations)
            )
    results = []
    for user, count in counts.items():
        result = answer.DescribeUserScramCredentialsResult(user=user)
        infos = credentials.get(user)
        if count > 1:
            result.error_code = int(ErrorCode.DUPLICATE_RESOURCE)
            result.error_message = (
                "Cannot describe SCRAM credentials for the same user twice in a single request: "
                f"{user}"
            )
        elif not infos:
            result.error_code = int(ErrorCode.RESOURCE_NOT_FOUND)
            result.error_message = (
                f"Attempt to describe a user credential that does not exist: {user}"
            )
        else:
            result.credential_infos = infos
        results.append(result)
    return answer(results=results)


def denied_response(
    context: RequestContext, request: m.DescribeUserScramCredentialsRequest, error: KafkaError
) -> m.DescribeUserScramCredentialsResponse:
    """The code at the top, and once for each user that is named, whose name is not repeated."""
    answer = m.DescribeUserScramCredentialsResponse
    result = answer.DescribeUserScramCredentialsResult
    return answer(
        error_code=int(error.code),
        error_message=None,
        results=[
            result(error_code=int(error.code), error_message=None) for _ in request.users or ()
        ],
    )
