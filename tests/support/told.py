"""What a run of the tests is told, searched for the secrets that its tests use: logs and standard
output of every node, every response that a test's client receives, by HTTP too, what a test prints
or logs, what Kafka's tools write.

A secret of a test is recognisable: `NAME-secret` of `tests/support/sasl.py` and of the users that
Kafka's tools make, `the-secret-of-...`, or `hunter` with a digit.
"""

from __future__ import annotations

import http.client
import re
import weakref
from typing import Any

from tests.support import sasl

MADE_BY_TOOLS = ("carol", "dave", "erin", "grace", "another")
SECRETS = re.compile(
    "|".join(
        [
            *map(re.escape, sasl.USERS.values()),
            *(f"{name}-secret" for name in MADE_BY_TOOLS),
            *("the-secret-of-[a-z-]+", "hunter[0-9]"),
        ]
    )
)
EXCERPT_CHARACTERS = 60

_read_bytes: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
_found: list[str] = []


def search(text: str | bytes, what: str) -> None:
    """Note the secrets in it: `found` tells."""
    if isinstance(text, bytes):
        text = text.decode("latin-1")
    for match in SECRETS.finditer(text):
        start = max(0, match.start() - EXCERPT_CHARACTERS)
        _found.append(f"{match.group()!r} in {what}: ...{text[start : match.start()]}")


def found() -> list[str]:
    """What has been found since the last time."""
    told, _found[:] = list(_found), []
    return told


def watch(harness: Any) -> None:
    """Look at the logs of processes also when they are closed, before their files are gone."""
    process_type = harness.ServeProcess
    if getattr(process_type.close, "is_watched", False):
        return
    original = process_type.close

    def close(process: Any) -> None:
        look(process)
        original(process)

    close.is_watched = True  # type: ignore[attr-defined]
    process_type.close = close


def watch_http() -> None:
    """Search what a test reads of HTTP: metrics, health, what else there is."""
    original = http.client.HTTPResponse.read
    if getattr(original, "is_watched", False):
        return

    def read(response: http.client.HTTPResponse, *arguments: Any) -> bytes:
        content = original(response, *arguments)
        search(content, "an answer by HTTP")
        return content

    read.is_watched = True  # type: ignore[attr-defined]
    http.client.HTTPResponse.read = read  # type: ignore[method-assign, assignment]


def look(process: Any) -> None:
    """Search what a process has written since the last time."""
    try:
        with process.log_path.open("rb") as log:
            log.seek(_read_bytes.get(process, 0))
            text = log.read()
            _read_bytes[process] = log.tell()
    except OSError:
        return
    search(text, f"the log of {process.name}")
