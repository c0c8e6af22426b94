"""Requests to a schema registry, as they are: status and JSON."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from typing import NamedTuple

from kwire.schemas.registry.json_values import Json

WAIT_S = 60.0
MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"


class Answer(NamedTuple):
    """`body` is the JSON, or the text where it is none."""

    status: int
    body: Json
    headers: Mapping[str, str]

    @property
    def code(self) -> Json:
        """The registry's error code; the status of an answer that has none."""
        return self.body.get("error_code") if isinstance(self.body, dict) else self.status


class RegistryClient:
    """See the module. `address` is host:port."""

    def __init__(self, address: str, headers: Mapping[str, str] | None = None) -> None:
        self.address = address
        self.headers = {"Content-Type": MEDIA_TYPE, **(headers or {})}

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    def ask(self, method: str, path: str, body: Json | bytes = None) -> Answer:
        """OSError and HTTPException where there is no whole answer."""
        connection = http.client.HTTPConnection(self.address, timeout=WAIT_S)
        try:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            connection.request(method, path, None if body is None else data, self.headers)
            response = connection.getresponse()
            text = response.read().decode()
            headers = {name.lower(): value for name, value in response.getheaders()}
        finally:
            connection.close()
        try:
            return Answer(response.status, json.loads(text) if text else None, headers)
        except ValueError:
            return Answer(response.status, text, headers)

    def get(self, path: str) -> Answer:
        return self.ask("GET", path)

    def register(self, subject: str, schema: str, **fields: Json) -> Answer:
        """Of an Avro schema, or another `schemaType`."""
        return self.ask("POST", f"/subjects/{subject}/versions", {"schema": schema, **fields})
