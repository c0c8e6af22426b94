"""CreateAcls and DeleteAcls in the metadata log (KIP-801)."""

from __future__ import annotations

from kwire.kraft.controller.context import ControllerContext
from kwire.kraft.controller.results import Records, Result, put_error
from kwire.kraft.controller.state import MAX_RECORDS_PER_USER_OPERATION, ControllerState
from kwire.kraft.images.security import acl_record
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.acl import CLUSTER_NAME, ResourceType
from kwire.security.acls.binding import AclBinding, AclFilter, PatternType, matches_filter
from kwire.security.acls.hosts import RANGE_MARK, parse_range

UNKNOWN, ANY = 0, 1
MATCH, LITERAL, PREFIXED = PatternType.MATCH, PatternType.LITERAL, PatternType.PREFIXED
_RESOURCE_TYPES = (2, 3, 4, 5, 6, 7)
_OPERATIONS = tuple(range(2, 16))
_PERMISSIONS = (2, 3)
_NAMES = {UNKNOWN: "UNKNOWN", ANY: "ANY", MATCH: "MATCH"}


def create_acls(
    state: ControllerState, request: m.CreateAclsRequest, context: ControllerContext, now_ms: int
) -> Result[m.CreateAclsResponse]:
    """Answer a CreateAclsRequest (versions 1-3); an ACL that exists already is a success."""
    check_authorizer(state)
    answer = m.CreateAclsResponse
    existing = dict.fromkeys(state.image.acls.values())
    records: Records = []
    results = []
    for creation in request.creations:
        result = answer.AclCreationResult()
        acl = AclBinding(
            resource_type=creation.resource_type,
            resource_name=creation.resource_name,
            pattern_type=creation.resource_pattern_type,
            principal=creation.principal,
            host=creation.host,
            operation=creation.operation,
            permission_type=creation.permission_type,
        )
        try:
            _check_new(state, acl)
            if acl not in existing:
                existing[acl] = None
                records.append((acl_record(_new_id(state), acl), 0))
        except KafkaError as error:
            put_error(result, error)
        results.append(result)
    return records, answer(results=results)


def check_authorizer(state: ControllerState) -> None:
    """Raise KafkaError(SECURITY_DISABLED) in a cluster without an authorizer."""
    if not state.config.has_authorizer:
        raise KafkaError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")


def _new_id(state: ControllerState) -> bytes:
    while True:
        acl_id = state.random_uuid()
        if acl_id not in state.image.acls:
            return acl_id


def _shown(number: int) -> str:
    return _NAMES.get(number, "UNKNOWN")


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def _check_new(state: ControllerState, acl: AclBinding) -> None:
    if acl.resource_type == ResourceType.CLUSTER and acl.resource_name != CLUSTER_NAME:
        raise _invalid(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not acl.resource_name:
        raise _invalid("Invalid empty resource name")
    if acl.resource_type not in _RESOURCE_TYPES:
        raise _invalid(f"Invalid resourceType {_shown(acl.resource_type)}")
    if acl.pattern_type not in (LITERAL, PREFIXED):
        raise _invalid(f"Invalid patternType {_shown(acl.pattern_type)}")
    if acl.operation not in _OPERATIONS:
        raise _invalid(f"Invalid operation {_shown(acl.operation)}")
    if acl.permission_type not in _PERMISSIONS:
        raise _invalid(f"Invalid permissionType {_shown(acl.permission_type)}")
    if ":" not in acl.principal:
        raise _invalid(
            f"Could not parse principal from `{acl.principal}` (no colon is present separating "
            "the principal type from the principal name)"
        )
    _check_host(state, acl.host)


def _check_host(state: ControllerState, host: str) -> None:
    if not host:
        raise _invalid("Host pattern cannot be null or empty")
    if RANGE_MARK not in host:
        return
    if not state.gates.cidr_acl:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            "CIDR-based ACL host patterns require metadata version 4.4-IV1 or higher.",
        )
    parsed = parse_range(host)
    if isinstance(parsed, str):
        raise _invalid(f"Invalid CIDR notation '{host}': {parsed}")


def delete_acls(
    state: ControllerState, request: m.DeleteAclsRequest, context: ControllerContext, now_ms: int
) -> Result[m.DeleteAclsResponse]:
    """Answer a DeleteAclsRequest (versions 1-3); where it would delete too many, nothing is
    deleted (KafkaError INVALID_REQUEST)."""
    check_authorizer(state)
    answer = m.DeleteAclsResponse
    acls = sorted(state.image.acls.items())
    removed: dict[bytes, None] = {}
    results = []
    for wanted in request.filters:
        result = answer.DeleteAclsFilterResult(error_message=None)
        results.append(result)
        try:
            check_filter(wanted)
        except KafkaError as error:
            put_error(result, error)
            continue
        for acl_id, acl in acls:
            if matches_filter(wanted, acl):
                if len(removed) >= MAX_RECORDS_PER_USER_OPERATION:
                    raise _invalid(
                        f"Cannot remove more than {MAX_RECORDS_PER_USER_OPERATION} acls in a "
                        "single delete operation."
                    )
                removed[acl_id] = None
                result.matching_acls.append(
                    answer.DeleteAclsMatchingAcl(error_message=None, **acl._asdict())
                )
    records: Records = [(m.RemoveAccessControlEntryRecord(id=acl_id), 0) for acl_id in removed]
    return records, answer(filter_results=results)


def check_filter(wanted: AclFilter) -> None:
    """Raise KafkaError(INVALID_REQUEST) for a filter that names what does not exist."""
    known_pattern = wanted.pattern_type_filter in (ANY, MATCH, LITERAL, PREFIXED)
    if wanted.resource_type_filter not in (ANY, *_RESOURCE_TYPES) or not known_pattern:
        raise _invalid("Unknown patternFilter.")
    known_operation = wanted.operation in (ANY, *_OPERATIONS)
    if not known_operation or wanted.permission_type not in (ANY, *_PERMISSIONS):
        raise _invalid("Unknown entryFilter.")
