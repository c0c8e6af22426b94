"""Delegation tokens in the metadata log (KIP-48, KIP-900).

A token's HMAC is HMAC-SHA-512 of its id with the cluster's secret; it is never stored, so tokens
are found by computing it for each.
"""

from __future__ import annotations

import hashlib
import hmac

from kwire.kraft.controller.context import ControllerContext
from kwire.kraft.controller.results import Records, Result
from kwire.kraft.controller.state import ControllerState
from kwire.kraft.images.security import DelegationTokenImage, token_record
from kwire.protocol import messages as m
from kwire.protocol import uuids
from kwire.protocol.errors import ErrorCode
from kwire.security.acl import Operation, ResourceType
from kwire.security.authorizer import ANONYMOUS

USER_TYPE = "User"
REQUESTER_FROM = 3
"""CreateDelegationTokenResponse names the requester from this version on (KIP-373)."""
_MAX = (1 << 63) - 1


def token_hmac(secret: str, token_id: str) -> bytes:
    """What its owner authenticates with."""
    return hmac.new(secret.encode(), token_id.encode(), hashlib.sha512).digest()


def split_principal(principal: str) -> tuple[str, str]:
    """(type, name) of `User:alice`."""
    kind, _, name = principal.partition(":")
    return kind, name


def may_request_tokens(context: ControllerContext) -> bool:
    """Not over a connection that was authenticated by a token or not at all."""
    if context.token_authenticated:
        return False
    if context.forwarded:
        return True
    plaintext = context.security_protocol == "PLAINTEXT"
    is_tls = context.security_protocol == "SSL"
    anonymous_tls = is_tls and context.principal == ANONYMOUS
    return not plaintext and not anonymous_tls


def _owner(request: m.CreateDelegationTokenRequest, principal: str) -> str:
    if request.owner_principal_name:
        return f"{request.owner_principal_type}:{request.owner_principal_name}"
    return principal


def _creation_response(
    request: m.CreateDelegationTokenRequest, api_version: int, principal: str
) -> m.CreateDelegationTokenResponse:
    owner_type, owner_name = split_principal(_owner(request, principal))
    response = m.CreateDelegationTokenResponse(
        principal_type=owner_type,
        principal_name=owner_name,
        issue_timestamp_ms=-1,
        expiry_timestamp_ms=-1,
        max_timestamp_ms=-1,
    )
    if api_version >= REQUESTER_FROM:
        requester_type, requester_name = split_principal(principal)
        response.token_requester_principal_type = requester_type
        response.token_requester_principal_name = requester_name
    return response


def creation_failed(
    request: m.CreateDelegationTokenRequest, code: int, api_version: int, principal: str
) -> m.CreateDelegationTokenResponse:
    """The answer to a request for a token that fails as a whole."""
    response = _creation_response(request, api_version, principal)
    response.error_code = code
    return response


def _refusal(state: ControllerState, context: ControllerContext) -> ErrorCode:
    if not may_request_tokens(context):
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    if state.config.token_secret is None:
        return ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    if not state.gates.delegation_token:
        return ErrorCode.UNSUPPORTED_VERSION
    return ErrorCode.NONE


def create(
    state: ControllerState,
    request: m.CreateDelegationTokenRequest,
    context: ControllerContext,
    now_ms: int,
) -> Result[m.CreateDelegationTokenResponse]:
    """Answer a CreateDelegationTokenRequest (versions 1-3)."""
    owner = _owner(request, context.principal)
    response = _creation_response(request, context.api_version, context.principal)
    code = _refusal(state, context)
    allowed = owner == context.principal or context.authorize(
        Operation.CREATE_TOKENS, ResourceType.USER, owner
    )
    if code == ErrorCode.NONE and not allowed:
        code = ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    if code == ErrorCode.NONE and any(r.principal_type != USER_TYPE for r in request.renewers):
        code = ErrorCode.INVALID_PRINCIPAL_TYPE
    if code != ErrorCode.NONE:
        response.error_code = int(code)
        return [], response
    secret = state.config.token_secret
    assert secret is not None
    now = context.wall_ms
    lifetime_ms = state.config.token_max_lifetime_ms
    if request.max_lifetime_ms > 0:
        lifetime_ms = min(lifetime_ms, request.max_lifetime_ms)
    max_ms = min(now + lifetime_ms, _MAX)
    token = DelegationTokenImage(
        token_id=uuids.to_text(state.random_uuid()),
        owner=owner,
        requester=context.principal,
        renewers=tuple(f"{r.principal_type}:{r.principal_name}" for r in request.renewers),
        issue_ms=now,
        max_ms=max_ms,
        expiration_ms=min(max_ms, now + state.config.token_expiry_ms),
    )
    response.issue_timestamp_ms = token.issue_ms
    response.expiry_timestamp_ms = token.expiration_ms
    response.max_timestamp_ms = token.max_ms
    response.token_id = token.token_id
    response.hmac = token_hmac(secret, token.token_id)
    return [(token_record(token), 0)], response


def _find(
    state: ControllerState, wanted: bytes, principal: str
) -> tuple[ErrorCode, DelegationTokenImage | None]:
    secret = state.config.token_secret or ""
    for token in state.image.delegation_tokens.values():
        if hmac.compare_digest(token_hmac(secret, token.token_id), bytes(wanted)):
            if principal != token.owner and principal not in token.renewers:
                return ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, token
            return ErrorCode.NONE, token
    return ErrorCode.DELEGATION_TOKEN_NOT_FOUND, None


def is_expired(token: DelegationTokenImage, wall_ms: int) -> bool:
    """Whether a token no longer counts."""
    return token.max_ms < wall_ms or token.expiration_ms < wall_ms


def renew(
    state: ControllerState,
    request: m.RenewDelegationTokenRequest,
    context: ControllerContext,
    now_ms: int,
) -> Result[m.RenewDelegationTokenResponse]:
    """Answer a RenewDelegationTokenRequest (versions 1-2)."""
    response = m.RenewDelegationTokenResponse(expiry_timestamp_ms=-1)
    code = _refusal(state, context)
    token = None
    if code == ErrorCode.NONE:
        code, token = _find(state, request.hmac, context.principal)
        if token is not None and is_expired(token, context.wall_ms):
            code = ErrorCode.DELEGATION_TOKEN_EXPIRED
    if code != ErrorCode.NONE or token is None:
        response.error_code = int(code)
        return [], response
    period_ms = state.config.token_expiry_ms
    if request.renew_period_ms > 0:
        period_ms = min(period_ms, request.renew_period_ms)
    renewed = token._replace(expiration_ms=min(token.max_ms, context.wall_ms + period_ms))
    response.expiry_timestamp_ms = renewed.expiration_ms
    return [(token_record(renewed), 0)], response


def expire(
    state: ControllerState,
    request: m.ExpireDelegationTokenRequest,
    context: ControllerContext,
    now_ms: int,
) -> Result[m.ExpireDelegationTokenResponse]:
    """Answer an ExpireDelegationTokenRequest (versions 1-2); a negative period expires at once."""
    response = m.ExpireDelegationTokenResponse(expiry_timestamp_ms=-1)
    code = _refusal(state, context)
    token = None
    if code == ErrorCode.NONE:
        code, token = _find(state, request.hmac, context.principal)
    now = context.wall_ms
    at_once = request.expiry_time_period_ms < 0
    if code == ErrorCode.NONE and token is not None and not at_once and is_expired(token, now):
        code = ErrorCode.DELEGATION_TOKEN_EXPIRED
    if code != ErrorCode.NONE or token is None:
        response.error_code = int(code)
        return [], response
    if at_once:
        response.expiry_timestamp_ms = now
        return [(m.RemoveDelegationTokenRecord(token_id=token.token_id), 0)], response
    until_ms = min(token.max_ms, now + request.expiry_time_period_ms)
    response.expiry_timestamp_ms = until_ms
    return [(token_record(token._replace(expiration_ms=until_ms)), 0)], response


def sweep(state: ControllerState, wall_ms: int) -> Records:
    """Records that remove the tokens whose time is over."""
    tokens = state.image.delegation_tokens
    return [
        (m.RemoveDelegationTokenRecord(token_id=token_id), 0)
        for token_id in sorted(tokens)
        if is_expired(tokens[token_id], wall_ms)
    ]
