"""Calls of the REST API of a broker that runs."""

from __future__ import annotations

import base64
import http.client
import json
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from kwire.testing.cluster import Broker, wait_for

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
TIMEOUT_S = 60.0


class Answer(NamedTuple):
    """What came back; `body` is JSON, None where there is none."""

    status: int
    body: Json
    headers: Mapping[str, str]

    def at(self, *path: str | int) -> Json:
        """What is there in the body."""
        found = self.body
        for step in path:
            if isinstance(step, int):
                assert isinstance(found, list), self
                found = found[step]
            else:
                assert isinstance(found, dict), self
                found = found[step]
        return found

    def text(self, *path: str | int) -> str:
        """A text that is there."""
        found = self.at(*path)
        assert isinstance(found, str), self
        return found

    def items(self, *path: str | int) -> list[Json]:
        """A list that is there."""
        found = self.at(*path)
        assert isinstance(found, list), self
        return found


def basic(user: str, password: str) -> dict[str, str]:
    """The header of a login."""
    text = base64.b64encode(f"{user}:{password}".encode()).decode()
    return {"Authorization": f"Basic {text}"}


def http_port(broker: Broker) -> int:
    """Where a broker listens for HTTP."""

    def lines() -> list[str]:
        text = broker.process.output_text().splitlines()
        return [line for line in text if line.startswith("http on ")]

    return int(wait_for(lines, "an HTTP listener")[0].rpartition(":")[2])


class Rest:
    """One listener; `headers` go with every request."""

    def __init__(self, port: int, headers: Mapping[str, str] | None = None) -> None:
        self.port = port
        self.headers = dict(headers or {})

    def call(
        self,
        method: str,
        path: str,
        body: Json | bytes = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Ask once."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_S)
        sent = {**self.headers, **(headers or {})}
        raw = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        if raw is not None:
            sent.setdefault("Content-Type", "application/json")
        try:
            connection.request(method, path, raw, sent)
            response = connection.getresponse()
            found = response.read()
            told = {name.lower(): value for name, value in response.getheaders()}
            is_json = told.get("content-type", "").startswith("application/json")
            return Answer(response.status, json.loads(found) if found and is_json else None, told)
        finally:
            connection.close()

    def get(self, path: str) -> Answer:
        """GET."""
        return self.call("GET", path)

    def post(self, path: str, body: Json) -> Answer:
        """POST of JSON."""
        return self.call("POST", path, body)
