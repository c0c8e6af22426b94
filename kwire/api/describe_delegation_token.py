"""DescribeDelegationToken, versions 1-3: the tokens that the principal may know of.

Its own, those it may renew, those of owners whose tokens it may describe and tokens it has DESCRIBE
on; no owners named means all. Source: KIP-48, KIP-373; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from kwire.api.shared.delegation_tokens import may_ask
from kwire.kraft.controller.requests.tokens import split_principal, token_hmac
from kwire.kraft.images.security import DelegationTokenImage
from kwire.pending import Answer
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Denied, Requires
from kwire.server.context import RequestContext

VERSIONS = (1, 3)
DESCRIBE_OWNER = Requires(
    Operation.DESCRIBE_TOKENS,
    ResourceType.USER,
    denied=Denied.LEFT_OUT,
    note="tokens of other owners",
)
DESCRIBE_TOKEN = Requires(
    Operation.DESCRIBE,
    ResourceType.DELEGATION_TOKEN,
    denied=Denied.LEFT_OUT,
    note="instead of the right on the owner",
)
AUTHORIZATION = (DESCRIBE_OWNER, DESCRIBE_TOKEN)


def handle(
    context: RequestContext, request: m.DescribeDelegationTokenRequest
) -> Answer[m.DescribeDelegationTokenResponse]:
    """See the module."""
    secret = context.parts.config["delegation.token.secret.key"]
    if not may_ask(context):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    if secret is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    answer = m.DescribeDelegationTokenResponse
    if request.owners is not None and not request.owners:
        return answer(tokens=[])
    owners = None
    if request.owners is not None:
        owners = {f"{owner.principal_type}:{owner.principal_name}" for owner in request.owners}
    tokens = context.parts.metadata.image.delegation_tokens
    return answer(
        tokens=[
            _described(context, tokens[token_id], secret)
            for token_id in sorted(tokens)
            if (owners is None or _is_of(tokens[token_id], owners))
            and _may_see(context, tokens[token_id])
        ]
    )


def _is_of(token: DelegationTokenImage, principals: set[str]) -> bool:
    """Asked for tokens of principals, one gets also those that they asked for or may renew."""
    return not principals.isdisjoint((token.owner, token.requester, *token.renewers))


def _may_see(context: RequestContext, token: DelegationTokenImage) -> bool:
    principal = context.principal
    if principal in (token.owner, token.requester) or principal in token.renewers:
        return True
    return context.allows(DESCRIBE_OWNER, token.owner) or context.allows(
        DESCRIBE_TOKEN, token.token_id
    )


def _described(
    context: RequestContext, token: DelegationTokenImage, secret: str
) -> m.DescribeDelegationTokenResponse.DescribedDelegationToken:
    answer = m.DescribeDelegationTokenResponse
    owner_type, owner_name = split_principal(token.owner)
    described = answer.DescribedDelegationToken(
        principal_type=owner_type,
        principal_name=owner_name,
        issue_timestamp=token.issue_ms,
        expiry_timestamp=token.expiration_ms,
        max_timestamp=token.max_ms,
        token_id=token.token_id,
        hmac=token_hmac(secret, token.token_id),
        renewers=[],
    )
    if context.api_version >= 3:
        requester_type, requester_name = split_principal(token.requester)
        described.token_requester_principal_type = requester_type
        described.token_requester_principal_name = requester_name
    for renewer in token.renewers:
        kind, name = split_principal(renewer)
        described.renewers.append(
            answer.DescribedDelegationTokenRenewer(principal_type=kind, principal_name=name)
        )
    return described
