"""/metrics in the HTTP process: what cannot be written as it is does not cost the whole answer."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import cast

import pytest
from starlette.types import ASGIApp, Message

from kwire.http.app import Bounds, make_app
from kwire.http.local import LocalBroker
from kwire.http.purposes.metrics import QUESTION, _Metrics, routes
from kwire.http.remote_ends import RemoteEnds
from kwire.http.serving import Serving
from kwire.metrics.blocks import decoded, encoded
from kwire.telemetry.kept_pushes import KeptPushes, Push
from tests.support.telemetry.otlp_writer import many, metrics, point, total

BOUNDS = Bounds([], [], 1000, 60.0)


def test_a_directory_whose_path_is_no_utf_8_is_shown() -> None:
    path = os.fsdecode(b"/data/\xff")
    line = encoded(("logDirectory",), ("kafka_log_logmanager_logdirectoryoffline",), [(path, 0)])
    purpose = _Metrics(cast(LocalBroker, None), RemoteEnds(""))
    for as_openmetrics in (False, True):
        text = purpose._body(decoded(line), b"", 0.0, as_openmetrics, {}).decode()
        assert 'logdirectoryoffline{logDirectory="/data/?"} 0\n' in text


def test_a_client_is_not_repeated_by_a_name_of_any_length() -> None:
    """Each of its series has its name as a label: 50,000 of 32 KB were more than a gigabyte."""
    payload = many(f"org.apache.kafka.{number}" for number in range(100))
    kept = KeptPushes()
    kept.add(Push("id", "\x01" * 32_000, "s" * 32_000, "v" * 32_000, 1000, 0, 0, payload))
    purpose = _Metrics(cast(LocalBroker, None), RemoteEnds(""))
    text = purpose._body([], b"".join(kept.read(0, 0)), 0.0, True, {}).decode()
    assert text.count("org_apache_kafka_99{") == 1
    assert len(text) < 200_000


class _Pushed(LocalBroker):
    """A broker to which a client pushes."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop, lambda: None)
        self.kept = KeptPushes()
        self.now_ms = int(loop.time() * 1000)

    def push(self, value: int) -> None:
        payload = metrics(total("org.apache.kafka.sent", point(value)))
        self.kept.add(Push("id", "c", "s", "v", 1000, 0, self.now_ms, payload))

    async def ask(
        self, name: str, arguments: Mapping[str, str] | None = None, timeout_s: float = 0.0
    ) -> bytes:
        if name == QUESTION:
            return b""
        return b"".join(self.kept.read(int((arguments or {})["after"]), self.now_ms))


def test_what_clients_push_is_counted_the_same_at_each_listener() -> None:
    """Each had a count of its own, and missed what the other had read by then."""

    async def inner() -> None:
        broker = _Pushed(asyncio.get_running_loop())
        listeners = [make_app(routes(Serving(broker, "")), BOUNDS) for _ in range(2)]
        for listener, shown in [(0, 1), (0, 2), (1, 3), (0, 4)]:
            broker.push(1)
            body = await _got(listeners[listener])
            (line,) = [x for x in body.splitlines() if x.startswith("org_apache_kafka_sent_total{")]
            assert line.endswith(f" {shown}")

    asyncio.run(inner())


@pytest.mark.parametrize(
    ("accept", "told"),
    [
        (b"", b"text/plain; version=0.0.4; charset=utf-8"),
        (b"text/plain;version=0.0.4", b"text/plain; version=0.0.4; charset=utf-8"),
        (b"Application/OpenMetrics-Text", b"application/openmetrics-text; version=1.0.0;"),
    ],
)
def test_an_answer_is_called_what_it_is(accept: bytes, told: bytes) -> None:
    """Who asked for the older text was told that it was one of another version."""

    async def inner() -> None:
        broker = _Pushed(asyncio.get_running_loop())
        found: dict[bytes, bytes] = {}
        await _got(make_app(routes(Serving(broker, "")), BOUNDS), accept, found)
        assert found[b"content-type"].startswith(told)

    asyncio.run(inner())


async def _got(app: ASGIApp, accept: bytes = b"", found: dict[bytes, bytes] | None = None) -> str:
    """What `/metrics` answers; its headers go to `found`."""
    body = bytearray()

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        body.extend(message.get("body", b""))
        if found is not None:
            found.update(message.get("headers", ()))

    scope = {
        "type": "http",
        "method": "GET",
        "http_version": "1.1",
        "path": "/metrics",
        "raw_path": b"/metrics",
        "query_string": b"",
        "headers": [(b"host", b"localhost"), (b"accept", accept)],
    }
    await app(scope, receive, send)
    return body.decode()
