"""AlterClientQuotas (KIP-546)."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from kwire.kraft.controller.context import ControllerContext
from kwire.kraft.controller.results import Records, Result, put_error
from kwire.kraft.controller.state import ControllerState
from kwire.kraft.images.settings import QuotaEntity, quota_entity, quota_record
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.acls.hosts import literal_address

USER, CLIENT_ID, IP = "user", "client-id", "ip"
_LARGEST = {"SHORT": 2**15 - 1, "INT": 2**31 - 1, "LONG": 2**63 - 1}


def alter_client_quotas(
    state: ControllerState,
    request: m.AlterClientQuotasRequest,
    context: ControllerContext,
    now_ms: int,
) -> Result[m.AlterClientQuotasResponse]:
    """Answer an AlterClientQuotasRequest (versions 0-1); entities do not touch each other."""
    answer = m.AlterClientQuotasResponse
    records: Records = []
    results: dict[QuotaEntity, m.AlterClientQuotasResponse.EntryData] = {}
    for entry in request.entries:
        # Measured: of two parts of one type the last counts.
        named = {item.entity_type: item.entity_name for item in entry.entity}
        pairs = list(named.items())
        entity = quota_entity(pairs)
        result = answer.EntryData(
            error_message=None,
            entity=[answer.EntityData(entity_type=kind, entity_name=name) for kind, name in pairs],
        )
        try:
            if entity in results:
                raise _invalid(f"Ignoring duplicate entity {shown(entity)}")
            keys = _keys(state, entity, context.known_hosts)
            records.extend(_alter(state, keys, entity, _ops(entry, entity)))
        except KafkaError as error:
            put_error(result, error)
        results[entity] = result
    response = answer(entries=list(results.values()))
    return ([] if request.validate_only else records), response


def shown(entity: QuotaEntity) -> str:
    """An entity as Kafka writes it in messages."""
    inner = ", ".join(f"{kind}={'null' if name is None else name}" for kind, name in entity)
    return f"ClientQuotaEntity(entries={{{inner}}})"


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def _ops(
    entry: m.AlterClientQuotasRequest.EntryData, entity: QuotaEntity
) -> dict[str, float | None]:
    ops: dict[str, float | None] = {}
    for op in entry.ops:
        if op.key in ops:
            # Not the entity but the key stands twice (measured on Apache Kafka 4.4).
            raise _invalid(f"Ignoring duplicate entity {shown(entity)}")
        ops[op.key] = None if op.remove else op.value
    return ops


def _alter(
    state: ControllerState,
    keys: Mapping[str, str],
    entity: QuotaEntity,
    ops: dict[str, float | None],
) -> Records:
    current = state.image.client_quotas.get(entity, {})
    records: Records = []
    for key, value in ops.items():
        if value is None:
            if key in current:
                records.append((quota_record(entity, key, None), 0))
            continue
        _check_value(keys, key, value)
        if current.get(key) != value:
            records.append((quota_record(entity, key, value), 0))
    return records


def _keys(
    state: ControllerState, entity: QuotaEntity, known_hosts: Collection[str]
) -> Mapping[str, str]:
    if not entity:
        raise _invalid("Invalid empty client quota entity")
    kinds = dict(entity)
    for kind, name in entity:
        if kind not in (USER, CLIENT_ID, IP):
            raise _invalid(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise _invalid(f"Empty {kind} not supported")
    if IP not in kinds:
        return state.config.rules.quota_keys(is_ip=False)
    if len(kinds) > 1:
        raise _invalid(
            "Invalid quota entity combination, IP entity shouldnot be combined with User or "
            "ClientId"
        )
    address = kinds[IP]
    if address is not None and address not in known_hosts and not _is_address(address):
        raise _invalid(f"{address} is not a valid IP or resolvable host.")
    return state.config.rules.quota_keys(is_ip=True)


def _is_address(text: str) -> bool:
    return text == "localhost" or literal_address(text) is not None


def hosts_of(request: m.AlterClientQuotasRequest) -> set[str]:
    """The names of hosts in a request, which have to be looked up: `ControllerContext.known_hosts`
    are those of them that have an address."""
    named = {
        part.entity_name
        for entry in request.entries
        for part in entry.entity
        if part.entity_type == IP and part.entity_name
    }
    return {name for name in named if name is not None and not _is_address(name)}


def _check_value(keys: Mapping[str, str], key: str, value: float) -> None:
    kind = keys.get(key)
    if kind is None:
        raise _invalid(f"Invalid configuration key {key}")
    if not math.isfinite(value):
        raise _invalid(f"Quota {key} must be a finite number")
    if value <= 0.0:
        raise _invalid(f"Quota {key} must be greater than 0")
    largest = _LARGEST.get(kind)
    if largest is None:
        return
    if value > float(largest):  # as Java compares: 2**63 is not above the largest LONG
        article = "an" if kind == "INT" else "a"
        raise _invalid(f"Proposed value for {key} is too large for {article} {kind}.")
    if abs(math.fmod(value, 1.0)) > 1e-6:
        raise _invalid(f"{key} cannot be a fractional value.")
