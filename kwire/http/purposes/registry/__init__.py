"""A schema registry: the REST API that Confluent's clients speak, over a topic of this cluster.

calls.py                               a request with types: path, context, parameters
by_id.py, by_subject.py, by_scope.py   what is asked, one function an endpoint
formatting.py                          a schema in another form
service.py, access.py                  who asks, and what they may
topic.py, writer.py                    the topic: read when somebody asks, written by one at a time
reading.py                             large schemas, read by a process beside this one

What a request means is decided in `kwire/schemas/registry`, which is pure (ADR 44).
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from kwire.client.cluster import Cluster
from kwire.clock import SystemRandom
from kwire.http.callers import Caller
from kwire.http.purposes.registry import by_id, by_scope, by_subject
from kwire.http.purposes.registry.calls import Call, place_of, query_of
from kwire.http.purposes.registry.service import RegistryService
from kwire.http.purposes.registry.topic import RegistrySettings
from kwire.http.serving import Serving
from kwire.schemas.registry.errors import Code, RegistryError
from kwire.schemas.registry.json_values import Json, JsonObject, read_json, written

BODY_BYTES_MAX = 4 << 20
MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
MEDIA_TYPES = (
    MEDIA_TYPE,
    "application/vnd.schemaregistry+json",
    "application/json",
    "application/octet-stream",
)
Handler: TypeAlias = Callable[[RegistryService, Call], Awaitable[Json]]

SUBJECT, VERSION = "subjects/{subject}", "subjects/{subject}/versions/{version}"
ENDPOINTS: dict[str, Mapping[str, Handler]] = {
    "": {"GET": by_scope.root},
    "schemas": {"GET": by_id.schemas},
    "schemas/types": {"GET": by_id.types},
    "schemas/ids/{id}": {"GET": by_id.of_id},
    "schemas/ids/{id}/schema": {"GET": by_id.text_of_id},
    "schemas/ids/{id}/subjects": {"GET": by_id.subjects_of_id},
    "schemas/ids/{id}/versions": {"GET": by_id.versions_of_id},
    "schemas/guids/{guid}": {"GET": by_id.of_guid},
    "schemas/guids/{guid}/ids": {"GET": by_id.ids_of_guid},
    "subjects": {"GET": by_subject.subjects},
    SUBJECT: {"POST": by_subject.look_up, "DELETE": by_subject.delete_subject},
    f"{SUBJECT}/metadata": {"GET": by_subject.with_metadata},
    f"{SUBJECT}/versions": {"GET": by_subject.versions, "POST": by_subject.register_schema},
    VERSION: {"GET": by_subject.version, "DELETE": by_subject.delete_version},
    f"{VERSION}/schema": {"GET": by_subject.version_text},
    f"{VERSION}/referencedby": {"GET": by_subject.referenced_by},
    f"compatibility/{SUBJECT}/versions": {"POST": by_subject.compatibility},
    f"compatibility/{VERSION}": {"POST": by_subject.compatibility},
    "config": {
        "GET": by_scope.config,
        "PUT": by_scope.set_config,
        "DELETE": by_scope.delete_config,
    },
    "mode": {"GET": by_scope.mode, "PUT": by_scope.set_mode, "DELETE": by_scope.delete_mode},
    "contexts": {"GET": by_scope.contexts},
    "contexts/{context}": {"DELETE": by_scope.delete_context},
    "v1/metadata/id": {"GET": by_scope.cluster_id},
    "v1/metadata/version": {"GET": by_scope.server_version},
}
ENDPOINTS["config/{subject}"] = ENDPOINTS["config"]
ENDPOINTS["mode/{subject}"] = ENDPOINTS["mode"]
TEXTS = (by_id.text_of_id, by_subject.version_text)
"""Answered by a schema as it is, not by a JSON text of it."""
ROOTS = ("schemas", "subjects", "compatibility", "config", "mode", "contexts", "v1/metadata")


def routes(serving: Serving) -> list[BaseRoute]:
    """See the module."""
    settings = RegistrySettings(*serving.registry)
    application = Application(RegistryService(settings, serving.anonymous, SystemRandom()))
    return [Route("/", application), *(Tree(root, application) for root in ROOTS)]


class Tree(Route):
    """A path and all below it, whatever is in that: names of subjects may have line feeds, and an
    empty name in front is refused as one behind is."""

    def __init__(self, root: str, application: Application) -> None:
        super().__init__(f"/{root}", application)
        self.path_regex = re.compile(rf"^/+{root}(/.*)?$", re.DOTALL)


class Application:
    """Every path of the registry."""

    def __init__(self, service: RegistryService) -> None:
        self._service = service
        self._templates = [
            (tuple(template.split("/")) if template else (), handlers)
            for template, handlers in ENDPOINTS.items()
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            response = await self._answered(request)
        except RegistryError as error:
            answer: JsonObject = {"error_code": int(error.code), "message": str(error)}
            response = _response(request, answer, error.status)
        await response(scope, receive, send)

    async def _answered(self, request: Request) -> Response:
        place = place_of(request.scope["raw_path"])
        names, handlers = self._found(place.parts)
        handler = handlers.get("GET" if request.method == "HEAD" else request.method)
        if handler is None:
            answer: JsonObject = {
                "error_code": 405,
                "message": f"{request.url.path}: the method is one of {', '.join(handlers)}",
            }
            response = _response(request, answer, 405)
            response.headers["allow"] = ", ".join(handlers)
            return response
        body: Json = None
        if request.method in ("POST", "PUT"):
            body = await _body(request)
        query = query_of(request.scope["query_string"])
        call = Call(self._cluster(request), names, query, place.context, body)
        told = await handler(self._service, call)
        if handler in TEXTS:
            return Response(str(told).encode(), media_type=_media_type(request))
        return _response(request, told, 200)

    def _found(self, parts: tuple[str, ...]) -> tuple[dict[str, str], Mapping[str, Handler]]:
        for template, handlers in self._templates:
            if len(template) != len(parts):
                continue
            names: dict[str, str] = {}
            for expected, part in zip(template, parts, strict=True):
                if expected.startswith("{"):
                    names[expected[1:-1]] = part
                elif expected != part:
                    break
            else:
                return names, handlers
        raise RegistryError(Code.NOT_FOUND, "the registry has no such path")

    def _cluster(self, request: Request) -> Cluster:
        caller = request.scope.get("state", {}).get("caller")
        if isinstance(caller, Caller):
            return caller.cluster
        return self._service.nobody()


async def _body(request: Request) -> Json:
    """The JSON of a request; RegistryError 400, 42209."""
    given = request.headers.get("content-type", MEDIA_TYPE).partition(";")[0].strip().lower()
    if given not in MEDIA_TYPES:
        raise RegistryError(
            Code.UNSUPPORTED_MEDIA_TYPE,
            f"Content-Type {given[:100]}: expected one of {', '.join(MEDIA_TYPES)}",
        )
    data = await request.body()
    if len(data) > BODY_BYTES_MAX:
        raise RegistryError(Code.TOO_LARGE, f"The body is over {BODY_BYTES_MAX} bytes")
    try:
        return read_json(data)
    except ValueError as error:
        raise RegistryError(Code.BAD_REQUEST, f"The body is no JSON: {error}") from None


def _media_type(request: Request) -> str:
    accepted = request.headers.get("accept", "")
    is_plain = "application/json" in accepted and "schemaregistry" not in accepted
    return "application/json" if is_plain else MEDIA_TYPE


def _response(request: Request, answer: Json, status: int) -> Response:
    if answer is None and status == 200:
        return Response(status_code=204)
    return Response(written(answer), status, media_type=_media_type(request))
