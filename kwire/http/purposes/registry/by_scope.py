"""/config, /mode and /contexts: what holds for a subject, for a context, for all."""

from __future__ import annotations

import kwire
from kwire.client.errors import ClientError
from kwire.http.purposes.registry.calls import Call
from kwire.http.purposes.registry.service import RegistryService
from kwire.http.purposes.registry.topic import named
from kwire.schemas.registry import deleting, settings
from kwire.schemas.registry.json_values import Json
from kwire.schemas.registry.names import check_context, check_subject, context_of, context_prefix
from kwire.schemas.registry.requests import config_request, mode_request


async def root(service: RegistryService, call: Call) -> Json:
    return {}


async def config(service: RegistryService, call: Call) -> Json:
    registry = await service.fresh(call.cluster)
    return settings.shown_config(registry, call.scope(), effective=call.flag("defaultToGlobal"))


async def set_config(service: RegistryService, call: Call) -> Json:
    changes, scope = config_request(call.body), _checked_scope(call)
    return await service.change(
        call.cluster, lambda registry: settings.set_config(registry, scope, changes)
    )


async def delete_config(service: RegistryService, call: Call) -> Json:
    scope = call.scope()
    return await service.change(
        call.cluster, lambda registry: settings.delete_config(registry, scope)
    )


async def mode(service: RegistryService, call: Call) -> Json:
    registry = await service.fresh(call.cluster)
    return settings.shown_mode(registry, call.scope(), effective=call.flag("defaultToGlobal"))


async def set_mode(service: RegistryService, call: Call) -> Json:
    wanted, scope, force = mode_request(call.body), _checked_scope(call), call.flag("force")
    return await service.change(
        call.cluster, lambda registry: settings.set_mode(registry, scope, wanted, force=force)
    )


async def delete_mode(service: RegistryService, call: Call) -> Json:
    scope, recursive = call.scope(), call.flag("recursive")
    return await service.change(
        call.cluster, lambda registry: settings.delete_mode(registry, scope, recursive=recursive)
    )


async def contexts(service: RegistryService, call: Call) -> Json:
    registry = await service.fresh(call.cluster)
    return call.page(registry.state.contexts())


async def delete_context(service: RegistryService, call: Call) -> Json:
    context = context_of(context_prefix(check_context(call.names["context"])))
    return await service.change(
        call.cluster, lambda registry: deleting.delete_context(registry, context)
    )


async def cluster_id(service: RegistryService, call: Call) -> Json:
    try:
        metadata = await call.cluster.metadata([])
    except ClientError as error:
        raise named(error) from None
    clusters: dict[str, Json] = {
        "kafka-cluster": metadata.cluster_id or "",
        "schema-registry-cluster": service.topic.settings.topic,
    }
    return {"id": "", "scope": {"path": [], "clusters": clusters}}


async def server_version(service: RegistryService, call: Call) -> Json:
    return {"version": kwire.__version__, "commitId": ""}


def _checked_scope(call: Call) -> str:
    scope = call.scope()
    return check_subject(scope, is_scope=True) if scope else scope
