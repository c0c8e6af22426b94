"""/subjects and /compatibility: registered, looked up, compared, deleted."""

from __future__ import annotations

from kwire.http.purposes.registry.calls import Call
from kwire.http.purposes.registry.formatting import formatted
from kwire.http.purposes.registry.service import RegistryService
from kwire.schemas.registry import deleting, queries
from kwire.schemas.registry.checks import check_compatibility
from kwire.schemas.registry.errors import RegistryError
from kwire.schemas.registry.json_values import Json
from kwire.schemas.registry.machine import Decision, Registry, shown
from kwire.schemas.registry.names import EVERY, check_subject
from kwire.schemas.registry.queries import Wanted
from kwire.schemas.registry.registering import existing, register
from kwire.schemas.registry.requests import schema_request, version_number


async def subjects(service: RegistryService, call: Call) -> Json:
    registry = await service.fresh(call.cluster)
    prefix = call.text("subjectPrefix", "" if call.context else EVERY)
    return call.page(queries.subjects(registry, call.qualified(prefix), _wanted(call)))


async def look_up(service: RegistryService, call: Call) -> Json:
    request = schema_request(call.body)
    normalize, deleted = call.flag("normalize"), call.flag("deleted")

    def look(registry: Registry) -> Json:
        subject = queries.real_subject(registry, call.subject())
        version = queries.looked_up(
            registry, subject, request, normalize=normalize, deleted=deleted
        )
        return shown(version, schema=formatted(registry, version, call.text("format")))

    return await service.asked(call.cluster, look)


async def delete_subject(service: RegistryService, call: Call) -> Json:
    permanent = call.flag("permanent")

    def decide(registry: Registry) -> Decision:
        subject = queries.real_subject(registry, call.subject())
        return deleting.delete_subject(registry, subject, permanent=permanent)

    return await service.change(call.cluster, decide)


async def with_metadata(service: RegistryService, call: Call) -> Json:
    properties = dict(zip(call.query.get("key", ()), call.query.get("value", ()), strict=False))
    deleted = call.flag("deleted")

    def look(registry: Registry) -> Json:
        subject = queries.real_subject(registry, call.subject())
        version = queries.latest_with_metadata(registry, subject, properties, deleted=deleted)
        return shown(version, schema=formatted(registry, version, call.text("format")))

    return await service.asked(call.cluster, look)


async def versions(service: RegistryService, call: Call) -> Json:
    registry = await service.fresh(call.cluster)
    numbers = queries.version_numbers(
        registry,
        queries.real_subject(registry, call.subject()),
        _wanted(call),
        as_negative=call.flag("deletedAsNegative"),
    )
    return call.page(numbers)


async def register_schema(service: RegistryService, call: Call) -> Json:
    request = schema_request(call.body)
    normalize, force = call.flag("normalize"), call.flag("force")
    subject = check_subject(call.subject())

    def look(registry: Registry) -> Json:
        real = queries.real_subject(registry, subject)
        return existing(registry, real, request, normalize=normalize)

    there = await service.asked(call.cluster, look)
    if there is not None:
        return there

    def decide(registry: Registry) -> Decision:
        real = queries.real_subject(registry, subject)
        return register(registry, real, request, normalize=normalize, force=force)

    return await service.change(call.cluster, decide)


async def version(service: RegistryService, call: Call) -> Json:
    number = version_number(call.names["version"])
    deleted = call.flag("deleted")

    def look(registry: Registry) -> Json:
        subject = queries.real_subject(registry, call.subject())
        found = queries.version_of(registry, subject, number, deleted=deleted)
        return shown(found, schema=formatted(registry, found, call.text("format")))

    return await service.asked(call.cluster, look)


async def version_text(service: RegistryService, call: Call) -> str:
    found = await version(service, call)
    assert isinstance(found, dict), "a version is an object"
    return str(found["schema"])


async def referenced_by(service: RegistryService, call: Call) -> Json:
    number = version_number(call.names["version"])
    registry = await service.fresh(call.cluster)
    subject = queries.real_subject(registry, call.subject())
    return call.page(queries.referenced_by(registry, subject, number, deleted=call.flag("deleted")))


async def delete_version(service: RegistryService, call: Call) -> Json:
    number, permanent = version_number(call.names["version"]), call.flag("permanent")

    def decide(registry: Registry) -> Decision:
        subject = queries.real_subject(registry, call.subject())
        return deleting.delete_version(registry, subject, number, permanent=permanent)

    return await service.change(call.cluster, decide)


async def compatibility(service: RegistryService, call: Call) -> Json:
    verbose, text = call.flag("verbose"), call.names.get("version")
    number = None if text is None else version_number(text)
    try:
        request = schema_request(call.body)
    except RegistryError as error:
        if not verbose or error.status != 422:
            raise
        return {"is_compatible": False, "messages": [str(error)]}
    normalize = call.flag("normalize")

    def look(registry: Registry) -> Json:
        subject = queries.real_subject(registry, call.subject())
        return check_compatibility(
            registry, subject, number, request, normalize=normalize, verbose=verbose
        )

    return await service.asked(call.cluster, look)


def _wanted(call: Call) -> Wanted:
    if call.flag("deletedOnly"):
        return Wanted.DELETED
    return Wanted.ALL if call.flag("deleted") else Wanted.LIVE
