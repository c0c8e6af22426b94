"""Tables made from the code: APIs, configs, developer settings. The README's come from here."""

from __future__ import annotations

from kwire.config.definitions import (
    BROKER,
    CLIENT_METRICS,
    GROUP,
    KWIRE,
    QUOTA,
    TOPIC,
    ConfigDefinition,
    ConfigTable,
)
from kwire.config.developer import DEVELOPER_SETTINGS
from kwire.config.documentation import texts
from kwire.security.acl import ResourceType
from kwire.security.requirements import Requires

SCOPES: dict[str, ConfigTable] = {
    "broker": BROKER,
    "topic": TOPIC,
    "group": GROUP,
    "client-metrics": CLIENT_METRICS,
    "quota": QUOTA,
    "kwire": KWIRE,
}


def developer_rows() -> list[tuple[str, str, str]]:
    """(setting, value, Kafka's default) of the developer table."""
    return [(name, value, _default(BROKER[name])) for name, value in DEVELOPER_SETTINGS.items()]


def _default(definition: ConfigDefinition) -> str:
    if definition.required:
        return "(required)"
    return "null" if definition.default_text is None else definition.default_text


def config_rows(scope: str | None, parts: list[str]) -> list[tuple[str, ...]] | None:
    """Rows of the configs whose names hold one of `parts` (all without); None: no such scope.

    Without a scope they are those of a node, or of the first scope that has such names.
    """
    if scope is None:
        of_node = [row for one in ("broker", "kwire") for row in config_rows(one, parts) or []]
        others = (config_rows(one, parts) for one in SCOPES)
        return of_node or next(filter(None, others), [])
    table = SCOPES.get(scope)
    if table is None:
        return None
    documentation = texts()
    return [
        (
            name,
            definition.type,
            _default(definition),
            definition.accepts,
            definition.update_mode or "-",
            definition.support,
            definition.note,
            documentation.get((scope, name), ""),
        )
        for name, definition in table.items()
        if not parts or any(part in name for part in parts)
    ]


def support_counts() -> list[tuple[str, int, int, int]]:
    """(scope, acts, accepted, refused) of Kafka's configs."""
    counts: list[tuple[str, int, int, int]] = []
    for scope, table in SCOPES.items():
        if len(table):
            marks = [definition.support for definition in table.values()]
            acts, accepted, refused = map(marks.count, ("acts", "accepted", "refused"))
            counts.append((scope, acts, accepted, refused))
    return counts


def api_rows() -> list[tuple[int, str, str]]:
    """(key, name, versions) of the APIs that have a handler and clients may send."""
    from kwire.protocol.api_keys import API_KEYS, UNBUILT
    from kwire.server.dispatch import is_built

    return [
        (int(key), info.name, f"{info.min}-{info.max}")
        for key, info in sorted(API_KEYS.items())
        if "broker" in info.listeners and key not in UNBUILT and is_built(info)
    ]


def authorization_rows(listener: str) -> list[tuple[str, str, str, str, str, str, str]]:
    """What each API of a kind of listener (`broker`, `controller`) requires.

    (API, operation, resource type, where the request names the resources, what is refused, who
    asks, when it is needed). An API that requires nothing has one row with dashes.
    """
    from kwire.protocol.api_keys import API_KEYS, UNBUILT
    from kwire.server.controller_dispatch import authorization_of
    from kwire.server.dispatch import declared_authorization

    rows: list[tuple[str, str, str, str, str, str, str]] = []
    find = declared_authorization if listener == "broker" else authorization_of
    for key, info in sorted(API_KEYS.items()):
        if listener not in info.listeners or key in UNBUILT:
            continue
        required = find(int(key), info.name)
        rows += [(info.name, *_requirement(each)) for each in required]
        if not required:
            rows.append((info.name, "-", "-", "-", "-", "-", "-"))
    return rows


def _requirement(required: Requires) -> tuple[str, str, str, str, str, str]:
    conditions = [required.note] if required.note else []
    if required.unless:
        conditions.append(f"unless there is a {required.unless}")
    for other in required.instead:
        on = other.resource_type
        any_of = "" if on is ResourceType.CLUSTER else "any "
        conditions.append(f"or {other.operation.name} on {any_of}{on.name}")
    return (
        required.operation.name,
        required.resource_type.name,
        required.found_in,
        required.denied.value,
        required.checked.value,
        "; ".join(conditions),
    )
