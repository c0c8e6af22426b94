"""A schema registry as the commands ask it, kwire's or another: one request at a time."""

from __future__ import annotations

import base64
import http.client
import json
import urllib.parse

from kwire.cli.output import Json
from kwire.client.errors import ClientError
from kwire.urls import refused_url

TIMEOUT_S = 30.0
ANSWER_BYTES_MAX = 64 << 20
MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
EXPECTED = "http://[USER:PASSWORD@]HOST:PORT, such as http://localhost:8080"


class RegistryRefused(ClientError):
    """The registry's own word: `code` is its error code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Registry:
    """See the module. ClientError, one line, from everything that asks."""

    def __init__(self, url: str) -> None:
        refused = f"{refused_url(url)} is no address of a registry: expected {EXPECTED}"
        try:
            parts = urllib.parse.urlsplit(url)
            port = parts.port
        except ValueError:
            raise ClientError(refused) from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ClientError(refused)
        kind = (
            http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        )
        self._kind, self._host, self._port = kind, parts.hostname, port
        self._path = parts.path.rstrip("/")
        self._headers = {"Accept": MEDIA_TYPE, "Content-Type": MEDIA_TYPE}
        self.shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{self._path}"
        if parts.username is not None:
            user = urllib.parse.unquote(parts.username)
            password = urllib.parse.unquote(parts.password or "")
            token = base64.b64encode(f"{user}:{password}".encode()).decode()
            self._headers["Authorization"] = f"Basic {token}"

    def get(self, *parts: str, **query: str) -> Json:
        """What a path says; its parts are quoted here."""
        return self._ask("GET", parts, query, None)

    def post(self, *parts: str, body: Json, **query: str) -> Json:
        return self._ask("POST", parts, query, body)

    def _ask(self, method: str, parts: tuple[str, ...], query: dict[str, str], body: Json) -> Json:
        path = "".join("/" + urllib.parse.quote(part, safe="") for part in parts)
        path = f"{self._path}{path}"
        if query:
            path += "?" + urllib.parse.urlencode(query)
        connection = self._kind(self._host, self._port, timeout=TIMEOUT_S)
        try:
            connection.request(
                method, path, None if body is None else json.dumps(body).encode(), self._headers
            )
            answer = connection.getresponse()
            data = answer.read(ANSWER_BYTES_MAX)
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "strerror", None) or error or type(error).__name__
            raise ClientError(f"{self.shown}: {reason}") from None
        finally:
            connection.close()
        try:
            told: Json = json.loads(data) if data else None
        except (ValueError, RecursionError):
            raise ClientError(
                f"{self.shown}: status {answer.status}, and no answer of a schema registry"
            ) from None
        if answer.status >= 400:
            code, message = _refusal(told)
            raise RegistryRefused(
                code or answer.status, message or f"{self.shown}: status {answer.status}"
            )
        return told


def _refusal(told: Json) -> tuple[int, str]:
    if not isinstance(told, dict):
        return 0, ""
    code, message = told.get("error_code"), told.get("message")
    return code if isinstance(code, int) else 0, message if isinstance(message, str) else ""
