"""DescribeClientQuotas, versions 0-1: quotas of the entities that fit a filter.

Not strict: entities may have more types than the filter names. Source: KIP-546, KIP-612.
"""

from __future__ import annotations

from kwire.pending import Answer
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Checked, Requires
from kwire.server.context import RequestContext

VERSIONS = (0, 1)
AUTHORIZATION = (
    Requires(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, checked=Checked.BEFORE),
)
EXACT, DEFAULT, ANY = 0, 1, 2
_TYPES = ("user", "client-id", "ip")
_MATCH_NAMES = {EXACT: "EXACT", DEFAULT: "DEFAULT", ANY: "SPECIFIED"}


def handle(
    context: RequestContext, request: m.DescribeClientQuotasRequest
) -> Answer[m.DescribeClientQuotasResponse]:
    """See the module."""
    exact, any_of = _read(request)
    answer = m.DescribeClientQuotasResponse
    entries = []
    for entity, quotas in context.parts.metadata.image.client_quotas.items():
        kinds = dict(entity)
        if request.strict and len(kinds) != len(exact) + len(any_of):
            continue
        if any(kind not in kinds or kinds[kind] != name for kind, name in exact.items()):
            continue
        if any(kind not in kinds for kind in any_of):
            continue
        entries.append(
            answer.EntryData(
                entity=[
                    answer.EntityData(entity_type=kind, entity_name=name) for kind, name in entity
                ],
                values=[answer.ValueData(key=key, value=quotas[key]) for key in sorted(quotas)],
            )
        )
    return answer(entries=entries)


def error_response(context: RequestContext, error: KafkaError) -> m.DescribeClientQuotasResponse:
    """An error has no entries, not an empty list of them."""
    return m.DescribeClientQuotasResponse(
        error_code=int(error.code), error_message=error.message, entries=None
    )


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def _read(request: m.DescribeClientQuotasRequest) -> tuple[dict[str, str | None], list[str]]:
    """(types with the name they must have, types that must be there)."""
    exact: dict[str, str | None] = {}
    any_of: list[str] = []
    for component in request.components:
        kind, match_type = component.entity_type, component.match_type
        if not kind:
            raise _invalid("Invalid empty entity type.")
        if kind in exact or kind in any_of:
            raise _invalid(f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in _TYPES:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        if match_type not in _MATCH_NAMES:
            raise _invalid(f"Unknown match type {match_type}")
        if match_type == EXACT:
            if component.match is None:
                raise _invalid("Request specified MATCH_TYPE_EXACT, but set match string to null.")
            exact[kind] = component.match
            continue
        if component.match is not None:
            raise _invalid(
                f"Request specified MATCH_TYPE_{_MATCH_NAMES[match_type]}, but also specified a "
                "match string."
            )
        if match_type == DEFAULT:
            exact[kind] = None
        else:
            any_of.append(kind)
    named = [*exact, *any_of]
    if "ip" in named and len(named) > 1:
        raise _invalid(
            "Invalid entity filter component combination. IP filter component should not be used "
            "with user or clientId filter component."
        )
    return exact, any_of
