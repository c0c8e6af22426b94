"""A schema registry for tests: answers by path, over HTTP."""

from __future__ import annotations

import contextlib
import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any

NO_SCHEMA = (404, {"error_code": 40403, "message": "Schema not found"})


class FakeRegistry(http.server.HTTPServer):
    """Answers by path: (status, JSON or bytes)."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: dict[str, tuple[int, Any]] = {}
        # What it answers before that, whatever is asked; None: as it should.
        self.troubles: Iterator[tuple[int, Any] | None] = iter(())
        self.asked: list[str] = []
        self.authorizations: set[str | None] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(http.server.BaseHTTPRequestHandler):
    server: FakeRegistry

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self.server.authorizations.add(self.headers["Authorization"])
        status, body = next(self.server.troubles, None) or self.server.answers.get(
            self.path, NO_SCHEMA
        )
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body if isinstance(body, bytes) else json.dumps(body).encode())

    def log_message(self, *_: Any) -> None:
        pass


@contextlib.contextmanager
def running_registry() -> Iterator[FakeRegistry]:
    """A registry that answers while the block runs."""
    with FakeRegistry() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
