"""Asks the control API of faults; it blocks, and imports nothing of the node."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from typing import Any

from kwire.faults.errors import FaultError
from kwire.faults.kinds import Given

TIMEOUT_S = 30.0
PORT_MAX = 65_535
ADDRESS = "HOST:PORT, such as 127.0.0.1:9097"
ANSWER_BYTES_MAX = 16 << 20


class FaultClient:
    """`address` is HOST:PORT. Every method raises FaultError with the broker's own line, and
    OSError where nobody answers."""

    def __init__(self, address: str, token: str | None = None) -> None:
        host, colon, port = address.rpartition(":")
        if token is not None and not (token and token.isprintable() and token.isascii()):
            raise FaultError("the token is no text of printable ASCII; accepted: as in its setting")
        is_number = port.isascii() and port.isdecimal() and len(port) < 6
        if (
            not colon
            or not host.isprintable()
            or not host
            or not is_number
            or not 0 < int(port) <= PORT_MAX
        ):
            raise FaultError(f"{address!r} is no address; accepted: {ADDRESS}")
        self._host = host.strip("[]")
        self._port = int(port)
        self._token = token

    def add(self, given: Mapping[str, Given]) -> dict[str, Given]:
        added: dict[str, Given] = self._ask("POST", "/faults", dict(given))
        return added

    def remove(self, number: int) -> dict[str, Given]:
        removed: dict[str, Given] = self._ask("DELETE", f"/faults/{number}")
        return removed

    def clear(self) -> None:
        self._ask("DELETE", "/faults")

    def standing(self) -> list[dict[str, Given]]:
        found: list[dict[str, Given]] | None = self._ask("GET", "/faults").get("faults")
        if found is None:
            raise FaultError(f"{self._host}:{self._port} is no control API of faults")
        return found

    def _ask(self, method: str, path: str, body: Mapping[str, Given] | None = None) -> Any:
        headers = {} if self._token is None else {"Authorization": f"Bearer {self._token}"}
        text = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            text = json.dumps(body)
        connection = http.client.HTTPConnection(self._host, self._port, timeout=TIMEOUT_S)
        try:
            connection.request(method, path, text, headers)
            answer = connection.getresponse()
            told = json.loads(answer.read(ANSWER_BYTES_MAX) or b"{}")
        except (http.client.HTTPException, ValueError) as error:
            raise FaultError(
                f"{self._host}:{self._port} is no control API of faults ({error})"
            ) from None
        finally:
            connection.close()
        if not isinstance(told, dict):
            raise FaultError(f"{self._host}:{self._port} is no control API of faults")
        if answer.status >= 400:
            raise FaultError(str(told.get("error", f"HTTP {answer.status}")))
        return told
