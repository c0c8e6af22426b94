"""Every path of the registry with whatever comes: a status and one JSON error, never a fault."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import TypeVar
from urllib.parse import quote

import pytest

pytest.importorskip("starlette")
pytest.importorskip("avro")

from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import Message

from kwire.client.cluster import Cluster
from kwire.client.settings import ConnectionSettings
from kwire.clock import SystemRandom
from kwire.http.purposes.registry import ENDPOINTS, ROOTS, Application, Tree
from kwire.http.purposes.registry.calls import place_of
from kwire.http.purposes.registry.service import RegistryService
from kwire.http.purposes.registry.topic import RegistrySettings
from kwire.http.purposes.registry.writer import Decide
from kwire.schemas.registry.errors import RegistryError
from kwire.schemas.registry.json_values import Json
from kwire.schemas.registry.machine import Registry
from tests.support.schema_log import SchemaLog

T = TypeVar("T")
RECORD = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'


class InMemory(RegistryService):
    """Over a log in memory; whoever asks may."""

    def __init__(self) -> None:
        super().__init__(RegistrySettings(), "127.0.0.1:1", SystemRandom())
        self.log = SchemaLog()
        for subject, schema in (("s", RECORD), ("s", '"int"'), (":.c:s", '"int"'), ("d", '"int"')):
            self.log.register(subject, schema)
            if subject == "s":
                self.log.do(_any_may_follow)

    async def fresh(self, cluster: Cluster) -> Registry:
        return self.log.registry

    async def found(self, cluster: Cluster, look: Callable[[Registry], T]) -> T:
        return look(self.log.registry)

    async def change(self, cluster: Cluster, decide: Decide) -> Json:
        return self.log.do(decide)

    def nobody(self) -> Cluster:
        return Cluster(ConnectionSettings("127.0.0.1:1", retry_timeout_s=0.0))


def _any_may_follow(registry: Registry):  # type: ignore[no-untyped-def]
    from kwire.schemas.registry.settings import set_config

    return set_config(registry, "s", {"compatibilityLevel": "NONE"})


async def answered(
    service: InMemory, method: str, path: str, query: str, body: bytes
) -> tuple[int, bytes]:
    application = Application(service)
    app = Starlette(routes=[Route("/", application), *(Tree(r, application) for r in ROOTS)])
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": quote(path, safe="/:").encode(),
        "query_string": query.encode(),
        "headers": [(b"content-type", b"application/json")],
        "root_path": "",
    }
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent[0]["status"], b"".join(one.get("body", b"") for one in sent[1:])


NAMES = st.one_of(
    st.sampled_from(
        ["s", "d", "1", "2", "latest", ":.c:s", ":.c:", ":.:", ":*:", "0", "-1", "s\n"]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8),
)
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**40), 2**40),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    st.sampled_from(
        ["NONE", "IMPORT", "AVRO", "JSON", "PROTOBUF", RECORD, '{"type":"object"}', "s"]
    ),
)
FIELDS = (
    *("schema", "schemaType", "references", "metadata", "ruleSet", "version", "id"),
    *("compatibility", "normalize", "alias", "compatibilityGroup", "defaultMetadata", "mode"),
    *("defaultRuleSet", "name", "subject", "properties", "tags", "domainRules", "params", "type"),
)
BODIES = st.recursive(
    VALUES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4)
    ),
    max_leaves=8,
)
PARAMETERS = (
    *("deleted", "deletedOnly", "subjectPrefix", "offset", "limit", "normalize", "verbose"),
    *("permanent", "force", "fetchMaxId", "format", "latestOnly", "subject", "recursive"),
    *("defaultToGlobal", "deletedAsNegative", "aliases", "ruleType", "key", "value"),
)


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, str, str, bytes]:
    template = draw(st.sampled_from(sorted(ENDPOINTS)))
    method = draw(st.sampled_from([*ENDPOINTS[template], *ENDPOINTS[template], "GET", "PATCH"]))
    parts = [draw(NAMES) if part.startswith("{") else part for part in template.split("/")]
    if draw(st.integers(0, 4)) == 0:
        parts = ["contexts", draw(NAMES), *parts]
    query = draw(st.dictionaries(st.sampled_from(PARAMETERS), st.one_of(NAMES, st.just("true"))))
    body = draw(BODIES)
    if draw(st.integers(0, 1)):
        known = {"schema": RECORD, "compatibility": "FULL", "mode": "IMPORT"}
        body = {name: draw(BODIES) for name in draw(st.lists(st.sampled_from(FIELDS), max_size=4))}
        name = draw(st.sampled_from(sorted(known)))
        body[name] = known[name]
    return (
        method,
        "/" + "/".join(part.replace("/", "%2F") for part in parts),
        "&".join(f"{name}={quote(value)}" for name, value in query.items()),
        json.dumps(body).encode(),
    )


@settings(max_examples=150, deadline=None)
@given(st.lists(requests(), min_size=1, max_size=4))
def test_whatever_comes_is_answered(asked: list[tuple[str, str, str, bytes]]) -> None:
    async def inner() -> None:
        service = InMemory()
        for method, path, query, body in asked:
            if "v1/metadata/id" in path:
                continue  # asks the cluster
            status, answer = await answered(service, method, path, query, body)
            assert status < 500, answer
            if status >= 400 and answer[:1] == b"{":
                told = json.loads(answer)
                assert str(told["error_code"]).startswith(str(status))
                assert told["message"]
                assert "\n" not in told["message"]

    asyncio.run(inner())


@pytest.mark.parametrize(
    ("path", "parts", "context"),
    [
        (b"/subjects/a%2Fb/versions", ("subjects", "a/b", "versions"), ""),
        (b"/contexts/lab/subjects", ("subjects",), ":.lab:"),
        (b"/contexts/:.lab:/subjects/s", ("subjects", "s"), ":.lab:"),
        (b"/contexts/.", ("contexts", "."), ""),
        (b"/contexts/./subjects/s", ("subjects", "s"), ""),
        (b"/subjects/s/", ("subjects", "s"), ""),
        (b"/", (), ""),
    ],
)
def test_places(path: bytes, parts: tuple[str, ...], context: str) -> None:
    assert place_of(path) == (parts, context)


@pytest.mark.parametrize(
    ("path", "code"),
    [
        (b"/subjects//versions", 404),
        (b"/subjects//", 404),
        (b"//subjects", 404),
        (b"/config//", 404),
        (b"/contexts//subjects", 404),
        (b"/contexts/a%3Ab/subjects", 42208),
        (b"/contexts/a%0A/subjects", 42208),
    ],
)
def test_a_path_that_would_lead_to_something_else_is_refused(path: bytes, code: int) -> None:
    """An empty name of a script: DELETE /subjects//versions is not of the subject `versions`."""
    with pytest.raises(RegistryError) as refused:
        place_of(path)
    assert refused.value.code == code


def ask(method: str, path: str, body: Json = None) -> tuple[int, Json]:
    async def inner() -> tuple[int, Json]:
        data = json.dumps(body).encode()
        status, answer = await answered(InMemory(), method, path, "", data)
        return status, json.loads(answer)

    return asyncio.run(inner())


@pytest.mark.parametrize("path", ["/subjects/:*:s/versions", "/contexts/c/subjects/:*:s/versions"])
def test_a_subject_is_not_called_like_a_prefix_of_every_context(path: str) -> None:
    """It could not be listed, and would be in the default context whatever the path says."""
    status, told = ask("POST", path, {"schema": '"int"'})
    assert (status, told["error_code"]) == (422, 42208)  # type: ignore[index,call-overload]


def test_a_list_of_references_names_the_wrong_one() -> None:
    good: Json = {"name": "R", "subject": "s", "version": 1}
    _, told = ask("POST", "/subjects/n/versions", {"schema": '"int"', "references": [good, 1]})
    assert told == {"error_code": 422, "message": "references[1]: expected an object"}


def test_what_may_be_read_may_be_asked_for_its_head() -> None:
    assert ask("HEAD", "/subjects") == ask("GET", "/subjects")


def test_every_context_is_none_that_can_be_deleted() -> None:
    """`:*:` stands for all of them, where subjects are listed."""
    status, body = asyncio.run(answered(InMemory(), "DELETE", "/contexts/:*:", "", b""))
    told = json.loads(body)
    assert (status, told["error_code"]) == (422, 42208)
    assert told["message"] == "The context ':*:' is not valid"


@pytest.mark.parametrize("path", ["//subjects", "/subjects//versions", "///contexts/c"])
def test_an_empty_name_is_refused_by_the_registry_wherever_it_is(path: str) -> None:
    status, body = asyncio.run(answered(InMemory(), "GET", path, "", b""))
    assert (status, json.loads(body)["message"]) == (404, "a name in the path is empty")
