"""Calls of the REST API, as a program without a Kafka client makes them."""

from __future__ import annotations

import base64
import http.client
import json
from typing import Any, NamedTuple

WAIT_S = 60.0


def text64(text: str) -> str:
    """A value as the API takes it."""
    return base64.b64encode(text.encode()).decode()


class Answer(NamedTuple):
    """What was answered; `told` is the JSON of the body, None where there is none."""

    status: int
    told: Any
    headers: dict[str, str]


class Rest:
    """One caller; `headers` go with each call."""

    def __init__(self, port: int, headers: dict[str, str] | None = None) -> None:
        self.port = port
        self.headers = headers or {}

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """A body that is not bytes goes as JSON."""
        sent = dict(self.headers)
        raw = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        if raw is not None:
            sent["Content-Type"] = "application/json"
        sent.update(headers or {})
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)
        try:
            connection.request(method, path, raw, sent)
            response = connection.getresponse()
            answered = response.read()
            is_json = (response.getheader("content-type") or "").startswith("application/json")
            return Answer(
                response.status,
                json.loads(answered) if answered and is_json else answered or None,
                {name.lower(): value for name, value in response.getheaders()},
            )
        finally:
            connection.close()

    def publish(self, topic: str, *messages: dict[str, Any], acks: str = "all") -> Answer:
        """POST messages."""
        body = {"messages": list(messages), "acks": acks}
        return self.ask("POST", f"/topics/{topic}/messages", body)

    def read(self, topic: str, partition: int, offset: int, **parameters: object) -> Answer:
        """GET messages."""
        query = "".join(f"&{name}={value}" for name, value in parameters.items())
        where = f"partition={partition}&offset={offset}{query}"
        return self.ask("GET", f"/topics/{topic}/messages?{where}")
