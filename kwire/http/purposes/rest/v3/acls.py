"""Access control lists: searched, created, deleted."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from kwire.client.acl_requests import AclFilter, delete_request
from kwire.client.acls import Acls
from kwire.client.errors import check
from kwire.http.purposes.rest.problems import Problem
from kwire.http.purposes.rest.route import Answered, AnyRoute, Call, Nothing, Reply, Route
from kwire.http.purposes.rest.v3.failures import BAD_REQUEST, as_v3
from kwire.http.purposes.rest.v3.links import Links, links_of
from kwire.http.purposes.rest.v3.shapes import ClusterId, ListMetadata, OfCluster
from kwire.security.acl import CLUSTER_NAME, Operation, ResourceType
from kwire.security.acls.binding import AclBinding, PatternType, PermissionType

TAG = "v3: ACLs"
LIST_MAX = 1000

Kind: TypeAlias = Literal[
    "TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER"
]
Pattern: TypeAlias = Literal["LITERAL", "PREFIXED"]
Deed: TypeAlias = Literal[
    "ALL",
    "READ",
    "WRITE",
    "CREATE",
    "DELETE",
    "ALTER",
    "DESCRIBE",
    "CLUSTER_ACTION",
    "DESCRIBE_CONFIGS",
    "ALTER_CONFIGS",
    "IDEMPOTENT_WRITE",
    "CREATE_TOKENS",
    "DESCRIBE_TOKENS",
    "TWO_PHASE_COMMIT",
]
Permission: TypeAlias = Literal["DENY", "ALLOW"]
Any: TypeAlias = Literal["ANY"]
Match: TypeAlias = Literal["MATCH"]
Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=249)]
Text: TypeAlias = Annotated[str, Meta(min_length=1, max_length=1024)]


class Search(Struct, frozen=True, forbid_unknown_fields=True):
    """Which ACLs; all where nothing is said."""

    cluster_id: ClusterId
    resource_type: Kind | Any = "ANY"
    resource_name: Name | None = None
    pattern_type: Pattern | Any | Match = "ANY"
    principal: Text | None = None
    host: Text | None = None
    operation: Deed | Any = "ANY"
    permission: Permission | Any = "ANY"


class SearchToDelete(Struct, frozen=True, forbid_unknown_fields=True):
    """Which ACLs; types are to be said."""

    cluster_id: ClusterId
    resource_type: Kind | Any
    pattern_type: Pattern | Any | Match
    operation: Deed | Any
    permission: Permission | Any
    resource_name: Name | None = None
    principal: Text | None = None
    host: Text | None = None


class CreateAclRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """An ACL to be created."""

    resource_type: Kind
    resource_name: Name
    pattern_type: Pattern
    principal: Text
    host: Text
    operation: Deed
    permission: Permission


class CreateAclRequestList(Struct, frozen=True, forbid_unknown_fields=True):
    """ACLs to be created."""

    data: Annotated[list[CreateAclRequest], Meta(min_length=1, max_length=LIST_MAX)]


class AclData(Struct, frozen=True):
    """An ACL."""

    kind: str
    metadata: AclMetadata
    cluster_id: str
    resource_type: str
    resource_name: str
    pattern_type: str
    principal: str
    host: str
    operation: str
    permission: str


class AclMetadata(Struct, frozen=True):
    """Where it is."""

    self: str


class AclDataList(Struct, frozen=True):
    """ACLs that match."""

    kind: str
    metadata: ListMetadata
    data: list[AclData]


class DeletedAcls(Struct, frozen=True):
    """ACLs that were deleted."""

    data: list[AclData]


def _filter(asked: Search | SearchToDelete) -> AclFilter:
    return AclFilter(
        ResourceType[asked.resource_type],
        asked.resource_name,
        PatternType[asked.pattern_type],
        asked.principal,
        asked.host,
        Operation[asked.operation],
        PermissionType[asked.permission],
    )


def _binding(asked: CreateAclRequest) -> AclBinding:
    if asked.resource_type == "CLUSTER" and asked.resource_name != CLUSTER_NAME:
        message = f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
        field = "resource_name"
        raise Problem(400, "invalid_body", message, error_code=BAD_REQUEST, field=field)
    return AclBinding(
        ResourceType[asked.resource_type],
        asked.resource_name,
        PatternType[asked.pattern_type],
        asked.principal,
        asked.host,
        Operation[asked.operation],
        PermissionType[asked.permission],
    )


def _word(kind: type[ResourceType | PatternType | Operation | PermissionType], number: int) -> str:
    try:
        return kind(number).name
    except ValueError:
        return "UNKNOWN"


def _shown(links: Links, acl: AclBinding) -> AclData:
    told = {
        "resource_type": _word(ResourceType, acl.resource_type),
        "resource_name": acl.resource_name,
        "pattern_type": _word(PatternType, acl.pattern_type),
        "principal": acl.principal,
        "host": acl.host,
        "operation": _word(Operation, acl.operation),
        "permission": _word(PermissionType, acl.permission_type),
    }
    metadata = AclMetadata(links.url("acls", query=told))
    return AclData("KafkaAcl", metadata, links.cluster_id, **told)


@as_v3
async def search(call: Call[Search, Nothing]) -> Reply:
    """The ACLs that match."""
    asked = call.parameters
    links = await links_of(call, asked.cluster_id)
    found = await Acls(call.client.cluster).listed(_filter(asked))
    given = {
        "resource_type": asked.resource_type,
        "resource_name": asked.resource_name,
        "pattern_type": asked.pattern_type,
        "principal": asked.principal,
        "host": asked.host,
        "operation": asked.operation,
        "permission": asked.permission,
    }
    query = {name: value for name, value in given.items() if value not in (None, "ANY")}
    at = links.listed("acls", query={name: value or "" for name, value in query.items()})
    return Reply(200, AclDataList("KafkaAclList", at, [_shown(links, acl) for acl in found]))


@as_v3
async def create(call: Call[OfCluster, CreateAclRequest]) -> Reply:
    """Add one."""
    await links_of(call, call.parameters.cluster_id)
    await Acls(call.client.cluster).create([_binding(call.body)])
    return Reply(201)


@as_v3
async def create_batch(call: Call[OfCluster, CreateAclRequestList]) -> Reply:
    """Add some."""
    await links_of(call, call.parameters.cluster_id)
    await Acls(call.client.cluster).create([_binding(one) for one in call.body.data])
    return Reply(201)


@as_v3
async def delete(call: Call[SearchToDelete, Nothing]) -> Reply:
    """Remove those that match."""
    asked = call.parameters
    links = await links_of(call, asked.cluster_id)
    response = await call.client.cluster.call(delete_request(_filter(asked)))
    result = response.filter_results[0]
    check(result.error_code, "ACLs", result.error_message)
    data: list[AclData] = []
    for acl in result.matching_acls:
        check(acl.error_code, f"ACL for {acl.principal}", acl.error_message)
        binding = AclBinding(
            acl.resource_type,
            acl.resource_name,
            acl.pattern_type,
            acl.principal,
            acl.host,
            acl.operation,
            acl.permission_type,
        )
        data.append(_shown(links, binding))
    return Reply(200, DeletedAcls(data))


def routes(prefix: str) -> list[AnyRoute]:
    """See the module."""
    path = f"{prefix}/clusters/{{cluster_id}}/acls"
    return [
        Route(
            "GET",
            path,
            search,
            summary="Search ACLs",
            tag=TAG,
            parameters=Search,
            body=Nothing,
            answers={200: Answered(AclDataList, "The ACLs that match.")},
            refusals=(404,),
        ),
        Route(
            "POST",
            path,
            create,
            summary="Create an ACL",
            tag=TAG,
            parameters=OfCluster,
            body=CreateAclRequest,
            answers={201: Answered(None, "It is there.")},
            refusals=(404,),
        ),
        Route(
            "DELETE",
            path,
            delete,
            summary="Delete ACLs",
            tag=TAG,
            parameters=SearchToDelete,
            body=Nothing,
            answers={200: Answered(DeletedAcls, "Those that were deleted.")},
            refusals=(404,),
        ),
        Route(
            "POST",
            path + ":batch",
            create_batch,
            summary="Create ACLs",
            tag=TAG,
            parameters=OfCluster,
            body=CreateAclRequestList,
            answers={201: Answered(None, "They are there.")},
            refusals=(404,),
        ),
    ]
