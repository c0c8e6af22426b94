"""/schemas: by id, by GUID, all of them."""

from __future__ import annotations

from kwire.http.purposes.registry.calls import Call
from kwire.http.purposes.registry.formatting import formatted
from kwire.http.purposes.registry.service import RegistryService
from kwire.schemas.formats import SCHEMA_TYPES
from kwire.schemas.registry import queries
from kwire.schemas.registry.errors import Code, RegistryError
from kwire.schemas.registry.json_values import Json, JsonObject
from kwire.schemas.registry.machine import Registry
from kwire.schemas.registry.names import DEFAULT, context_of
from kwire.schemas.registry.queries import Wanted


async def types(service: RegistryService, call: Call) -> Json:
    return list(SCHEMA_TYPES)


async def schemas(service: RegistryService, call: Call) -> Json:
    registry = await service.fresh(call.cluster)
    wanted = Wanted.ALL if call.flag("deleted") else Wanted.LIVE
    found = queries.schemas(
        registry,
        call.qualified(call.text("subjectPrefix")),
        wanted,
        latest_only=call.flag("latestOnly"),
        aliases=call.flag("aliases"),
        rule_type=call.text("ruleType"),
    )
    return call.page(found)


async def of_id(service: RegistryService, call: Call) -> Json:
    schema_id, scope = _id(call), _scope(call)
    has_max, form = call.flag("fetchMaxId"), call.text("format")

    def look(registry: Registry) -> JsonObject:
        version = queries.version_of_id(registry, schema_id, _real(registry, scope))
        answer = queries.schema_of_id(
            registry,
            schema_id,
            _real(registry, scope),
            max_id=has_max,
            with_subject="subject" in call.query,
        )
        answer["schema"] = formatted(registry, version, form)
        if call.text("referenceFormat") == "qualified":
            _qualify(answer, version.subject)
        return answer

    if has_max:
        return await service.asked(call.cluster, look)
    return await service.found(call.cluster, look)


async def text_of_id(service: RegistryService, call: Call) -> str:
    schema_id, scope = _id(call), _scope(call)
    form = call.text("format")

    def look(registry: Registry) -> str:
        version = queries.version_of_id(registry, schema_id, _real(registry, scope))
        return formatted(registry, version, form)

    return await service.found(call.cluster, look)


async def subjects_of_id(service: RegistryService, call: Call) -> Json:
    registry = await service.fresh(call.cluster)
    scope = _real(registry, _scope(call))
    return call.page(
        queries.subjects_of_id(registry, _id(call), scope, deleted=call.flag("deleted"))
    )


async def versions_of_id(service: RegistryService, call: Call) -> Json:
    registry = await service.fresh(call.cluster)
    scope = _real(registry, _scope(call))
    return call.page(
        queries.versions_of_id(registry, _id(call), scope, deleted=call.flag("deleted"))
    )


async def of_guid(service: RegistryService, call: Call) -> Json:
    form = call.text("format")

    def look(registry: Registry) -> JsonObject:
        answer = queries.schema_of_guid(registry, call.names["guid"])
        version = queries.version_of_guid(registry, call.names["guid"])
        return {**answer, "schema": formatted(registry, version, form)}

    return await service.found(call.cluster, look)


async def ids_of_guid(service: RegistryService, call: Call) -> Json:
    registry = await service.fresh(call.cluster)
    return [*queries.ids_of_guid(registry, call.names["guid"])]


def _id(call: Call) -> int:
    text = call.names["id"]
    if not (text.isdecimal() and text.isascii() and len(text) <= 10):
        raise RegistryError(Code.NOT_FOUND, f"'{text[:100]}' is no id of a schema: a number")
    return int(text)


def _scope(call: Call) -> str:
    """The subject that an id is asked of, in its context; only the context without one."""
    return call.qualified(call.text("subject"))


def _real(registry: Registry, scope: str) -> str:
    return queries.real_subject(registry, scope) if scope else scope


def _qualify(answer: JsonObject, subject: str) -> None:
    """Give the subjects of references the context that they are in."""
    context = context_of(subject)
    references = answer.get("references")
    if context == DEFAULT or not isinstance(references, list):
        return
    for reference in references:
        if isinstance(reference, dict) and not str(reference["subject"]).startswith(":."):
            reference["subject"] = f":{context}:{reference['subject']}"
