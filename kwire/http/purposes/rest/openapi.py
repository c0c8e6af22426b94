"""The OpenAPI 3.1 document of the routes, and the page that shows it."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import msgspec
from msgspec import Struct

from kwire import __version__
from kwire.http.purposes.rest.problems import Told
from kwire.http.purposes.rest.route import JSON, Answered, AnyRoute

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
Schema: TypeAlias = "dict[str, Json]"

REF = "#/components/schemas/"
TITLE = "kwire REST API"
ABOUT = (
    "Kafka by HTTP and JSON. Message values are base64 of their bytes, keys and headers text. "
    "What is refused is answered with one JSON object that names what is wrong."
)
ALWAYS = (400, 401, 403, 413, 503)
WITH_BODY = (408, 415)
RETRIED = (429, 503)
WORDS = {
    400: "Something of the request is wrong; the body names it.",
    401: "The credentials are missing, or the broker does not take them.",
    403: "The caller has no right to this.",
    404: "There is no such thing.",
    408: "The body did not come in time.",
    409: "What is there does not allow it.",
    413: "The body is over `http.request.max.bytes`.",
    415: "The body is not `application/json`.",
    416: "The partition has no such offset.",
    422: "The idempotency key was used with another body.",
    429: "The quota is exceeded, or too much is open: again after `Retry-After` seconds.",
    501: "The cluster does not offer this.",
    502: "The broker failed with an error that no client can mend.",
    503: "It may succeed later, such as when more replicas are in sync.",
}


def document(routes: Sequence[AnyRoute], schemes: Sequence[str] = ()) -> bytes:
    """The document as JSON."""
    return json.dumps(described(routes, schemes), separators=(",", ":")).encode()


def described(routes: Sequence[AnyRoute], schemes: Sequence[str] = ()) -> Schema:
    """The document; `schemes` are those that callers may log in by."""
    kinds: dict[type[Struct], None] = {Told: None}
    for route in routes:
        if route.has_body:
            kinds[route.document] = None
        kinds.update((told.body, None) for told in route.answers.values() if told.body)
    _, components = msgspec.json.schema_components(list(kinds), ref_template=REF + "{name}")
    paths: dict[str, Json] = {}
    for route in routes:
        at = paths.setdefault(route.path, {})
        assert isinstance(at, dict)
        at[route.method.lower()] = _operation(route)
    security: Schema = {
        scheme: {"type": "http", "scheme": scheme, "description": "A login at the broker."}
        for scheme in schemes
    }
    found: Schema = {
        "openapi": "3.1.0",
        "info": {"title": TITLE, "version": __version__, "description": ABOUT},
        "paths": paths,
        "components": {"schemas": dict(components), "securitySchemes": security},
    }
    if schemes:
        found["security"] = [{scheme: []} for scheme in schemes]
    return found


def _operation(route: AnyRoute) -> Schema:
    responses: dict[str, Json] = {
        str(status): _response(told, status) for status, told in route.answers.items()
    }
    refusals = {*ALWAYS, *route.refusals, *(WITH_BODY if route.has_body else ())}
    for status in sorted(refusals):
        responses.setdefault(str(status), _response(Answered(Told, WORDS[status]), status))
    found: Schema = {
        "operationId": operation_id(route),
        "summary": route.summary,
        "tags": [route.tag],
        "responses": responses,
    }
    if route.description:
        found["description"] = route.description
    parameters = _parameters(route)
    if parameters:
        found["parameters"] = parameters
    if route.has_body:
        found["requestBody"] = {
            "required": True,
            "content": {JSON: {"schema": {"$ref": REF + route.document.__name__}}},
        }
    return found


def operation_id(route: AnyRoute) -> str:
    """Its name, out of method and path."""
    words = [word.strip("{}") for word in route.path.split("/") if word]
    return "_".join([route.method.lower(), *words]).replace("-", "_").replace(".", "_")


def _response(told: Answered, status: int) -> Schema:
    found: Schema = {"description": told.words}
    if told.body is not None:
        found["content"] = {told.media_type: {"schema": {"$ref": REF + told.body.__name__}}}
    elif told.media_type != JSON:
        found["content"] = {told.media_type: {"schema": {"type": "string"}}}
    if status in RETRIED:
        found["headers"] = {
            "Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}
        }
    return found


def _parameters(route: AnyRoute) -> list[Json]:
    _, components = msgspec.json.schema_components([route.parameters], ref_template=REF + "{name}")
    told = components[route.parameters.__name__]
    needed = told.get("required", [])
    found: list[Json] = []
    for name, schema in told["properties"].items():
        where = "query"
        if name in route.in_path:
            where = "path"
        elif name in route.headers:
            where = "header"
        shown = _without_null(schema)
        entry: Schema = {
            "name": route.headers.get(name, name),
            "in": where,
            "required": name in needed,
            "schema": shown,
        }
        words = shown.pop("description", None)
        if words is not None:
            entry["description"] = words
        found.append(entry)
    return found


def _without_null(schema: Mapping[str, Json]) -> Schema:
    """A parameter that is not there is left out, not null."""
    found = dict(schema)
    either = found.pop("anyOf", None)
    if isinstance(either, list):
        for one in either:
            if isinstance(one, dict) and one.get("type") != "null":
                found.update(one)
    if found.get("default", 0) is None:
        del found["default"]
    return found


# -- the page

STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;"
    "color:#222;background:#fff}h1,h2{font-weight:600}h2{margin-top:2.5rem}"
    "details{border:1px solid #ccc;border-radius:6px;margin:.5rem 0;padding:.4rem .8rem}"
    "summary{cursor:pointer}code,pre{font:14px/1.45 ui-monospace,monospace}"
    "pre{background:#f4f4f4;padding:.6rem;overflow:auto;border-radius:4px}"
    "table{border-collapse:collapse}td,th{text-align:left;padding:.15rem .8rem .15rem 0;"
    "vertical-align:top}b.method{display:inline-block;min-width:4.5rem}"
    "@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}"
    "pre{background:#262626}details{border-color:#444}a{color:#8bf}}"
)


def page(routes: Sequence[AnyRoute]) -> bytes:
    """The same to read, in one HTML file that fetches nothing."""
    told = described(routes)
    paths, components = told["paths"], told["components"]
    assert isinstance(paths, dict)
    assert isinstance(components, dict)
    tags: dict[str, list[str]] = {}
    for route in routes:
        at = paths[route.path]
        assert isinstance(at, dict)
        operation = at[route.method.lower()]
        assert isinstance(operation, dict)
        tags.setdefault(route.tag, []).append(_shown(route, operation))
    schemas = components["schemas"]
    assert isinstance(schemas, dict)
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width'>",
        f"<title>{TITLE}</title><style>{STYLE}</style></head><body><h1>{TITLE}</h1>",
        f"<p>{html.escape(ABOUT)} <a href='openapi.json'>openapi.json</a></p>",
    ]
    for tag, shown in tags.items():
        parts += [f"<h2>{html.escape(tag)}</h2>", *shown]
    parts.append("<h2>Shapes</h2>")
    for name in sorted(schemas):
        text = html.escape(json.dumps(schemas[name], indent=1))
        parts.append(f"<details id='{name}'><summary><code>{name}</code></summary>")
        parts.append(f"<pre>{text}</pre></details>")
    parts.append("</body></html>")
    return "".join(parts).encode()


def _shown(route: AnyRoute, operation: Mapping[str, Json]) -> str:
    parts = [
        f"<details><summary><b class='method'>{route.method}</b>",
        f"<code>{html.escape(route.path)}</code> {html.escape(route.summary)}</summary>",
    ]
    if route.description:
        parts.append(f"<p>{html.escape(route.description)}</p>")
    rows = []
    parameters = operation.get("parameters", [])
    assert isinstance(parameters, list)
    for one in parameters:
        assert isinstance(one, dict)
        needed = "" if one["required"] else "optional"
        schema = html.escape(json.dumps(one["schema"]))
        words = html.escape(str(one.get("description", "")))
        rows.append(
            f"<tr><td><code>{one['name']}</code></td><td>{one['in']} {needed}</td>"
            f"<td><code>{schema}</code> {words}</td></tr>"
        )
    if route.has_body:
        rows.append(_row("body", "JSON", route.body))
    for status, told in route.answers.items():
        rows.append(_row(str(status), html.escape(told.words), told.body))
    responses = operation["responses"]
    assert isinstance(responses, dict)
    others = [status for status in responses if int(status) not in route.answers]
    rows.append(_row(", ".join(others), "refused", Told))
    parts.append(f"<table>{''.join(rows)}</table></details>")
    return "".join(parts)


def _row(name: str, words: str, kind: type[Struct] | None) -> str:
    link = "" if kind is None else f"<a href='#{kind.__name__}'><code>{kind.__name__}</code></a>"
    return f"<tr><td><code>{name}</code></td><td>{words}</td><td>{link}</td></tr>"
