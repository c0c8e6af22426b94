"""Schemas of a registry that speaks as Confluent's does, with those that they refer to.

    GET /schemas/ids/ID                             {"schema": TEXT, "references": [...]}
    GET /subjects/SUBJECT/versions/VERSION          the same, of a reference

A schema is unknown only where the registry itself says so: status 404 and one of its own error
codes. Any other answer that is none (a proxy's 404, a page of HTML, half of a document) is a
registry that is not there at the moment, which is no property of a record.
"""

from __future__ import annotations

import base64
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from http.client import HTTPException, IncompleteRead, InvalidURL
from typing import Any, NamedTuple

from kwire.spark.usage import JobError, UsageError

TIMEOUT_S = 15.0
FIRST_ANSWER_S = 15.0
ANSWERED, SERVER_ERRORS = 200, 500
ANSWER_BYTES_MAX = 16 << 20
PAUSE_S = 1.0
PIECE_BYTES = 64 << 10
REFERENCES_MAX = 1000
AVRO, JSON, PROTOBUF = "AVRO", "JSON", "PROTOBUF"
KINDS = {AVRO: "Avro", JSON: "JSON Schema", PROTOBUF: "Protobuf"}
# Subject, version and schema that are not known.
_NOT_FOUND = (40401, 40402, 40403)


class SchemaUnavailable(Exception):
    """The registry does not answer: the batch fails and is tried again, nothing is lost.

    `status`: that of an answer that is none of a registry, None where there was none.
    """

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        self.status = status

    @property
    def is_momentary(self) -> bool:
        """Whether it may answer the same question soon."""
        return self.status is None or self.status >= SERVER_ERRORS


class UnknownSchema(Exception):
    """The registry knows of no such schema, or of one of another kind: trying again is no use."""


class Schema(NamedTuple):
    """A schema's text, and those of the schemas that it refers to: each behind what it needs
    itself. `names` are what they are called there (Avro's texts name themselves)."""

    text: str
    references: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    @property
    def named(self) -> dict[str, str]:
        """The references by name."""
        return dict(zip(self.names, self.references, strict=True))


class Registry:
    """A registry by its URL, in which user and password may stand. `timeout_s` is an answer's,
    `kind` what its schemas have to be."""

    def __init__(self, url: str, timeout_s: float = TIMEOUT_S, kind: str = AVRO) -> None:
        self._timeout_s = timeout_s
        self._kind = kind
        parts = urllib.parse.urlsplit(url)
        user, at, place = parts.netloc.rpartition("@")
        self._base = urllib.parse.urlunsplit(parts._replace(netloc=place)).rstrip("/")
        self._headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        if at:
            token = base64.b64encode(urllib.parse.unquote(user).encode()).decode()
            self._headers["Authorization"] = f"Basic {token}"

    def unreached(self) -> str | None:
        """Why it does not answer, None where it does. Raises UsageError for a page of something
        else, and where it does not know who asks.

        Asks for a schema that is none; what it says of that is all the same."""
        request = urllib.request.Request(f"{self._base}/schemas/ids/0", headers=self._headers)
        try:
            with urllib.request.urlopen(request, timeout=self._timeout_s) as response:
                found = self._body(response, request.full_url)
        except urllib.error.HTTPError as error:
            with error:
                if error.code == 401:
                    raise UsageError(
                        f"--registry {self._base}: status 401: it asks for user and password, "
                        "which may stand in the URL"
                    ) from None
                is_there = error.code < SERVER_ERRORS
            return None if is_there else f"--registry {self._base}: status {error.code}"
        except urllib.error.URLError as error:
            return f"--registry {self._base}: {error.reason}"
        except (ValueError, InvalidURL) as error:
            raise UsageError(f"--registry {self._base}: {error}") from None
        except (SchemaUnavailable, OSError, HTTPException) as error:
            return f"--registry {self._base}: {error or type(error).__name__}"
        try:
            json.loads(found)
        except (ValueError, RecursionError):
            raise UsageError(
                f"--registry {self._base}: no schema registry: what it answers is no JSON"
            ) from None
        return None

    def schema(self, schema_id: int) -> Schema:
        """The schema with its references; raises UnknownSchema and SchemaUnavailable."""
        return self._schema(f"schemas/ids/{schema_id}", f"schema {schema_id}")

    def latest(self, subject: str) -> Schema:
        """The newest schema of a subject; raises as `schema`."""
        name = urllib.parse.quote(subject, safe="")
        return self._schema(f"subjects/{name}/versions/latest", f"subject {subject}")

    def _schema(self, path: str, what: str) -> Schema:
        answer = self._get(path, what)
        found: dict[tuple[str, int], tuple[str, str]] = {}
        self._follow(answer, found, what)
        names, texts = (tuple(pair[at] for pair in found.values()) for at in (0, 1))
        return Schema(answer["schema"], texts, names)

    def _follow(
        self, answer: dict[str, Any], found: dict[tuple[str, int], tuple[str, str]], of: str
    ) -> None:
        """Gather what an answer refers to: what a text needs comes before it."""
        under_way: list[tuple[str, int]] = []

        def follow(answer: dict[str, Any]) -> None:
            for entry in answer.get("references") or ():
                try:
                    key = (str(entry["subject"]), int(entry["version"]))
                    name = str(entry.get("name", ""))
                except (AttributeError, KeyError, TypeError, ValueError):
                    raise SchemaUnavailable(
                        f"{self._base}: a reference without a name", ANSWERED
                    ) from None
                if key in found or key in under_way:
                    continue
                if len(found) + len(under_way) >= REFERENCES_MAX:
                    raise UnknownSchema(f"{of} has more than {REFERENCES_MAX} references")
                under_way.append(key)
                subject = urllib.parse.quote(key[0], safe="")
                # Also one that was deleted: values that need it are still there.
                path = f"subjects/{subject}/versions/{key[1]}?deleted=true"
                inner = self._get(path, f"{of} refers to {key[0]} {key[1]}, which")
                follow(inner)
                found[under_way.pop()] = (name, inner["schema"])

        try:
            follow(answer)
        except RecursionError:
            raise UnknownSchema(f"{of} has references without end") from None

    def _get(self, path: str, what: str) -> dict[str, Any]:
        """An answer with a schema of the kind. `what` is asked for, in the words of a reason."""
        url = f"{self._base}/{path}"
        request = urllib.request.Request(url, headers=self._headers)
        try:
            with urllib.request.urlopen(request, timeout=self._timeout_s) as response:
                body = self._body(response, url)
        except urllib.error.HTTPError as error:
            with error:
                if error.code == 404 and self._is_own(error, url):
                    raise UnknownSchema(f"{what} is not known") from None
            raise SchemaUnavailable(f"{url}: status {error.code}", error.code) from None
        except (OSError, ValueError, HTTPException) as error:
            raise SchemaUnavailable(f"{url}: {error or type(error).__name__}") from None
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise SchemaUnavailable(f"{url}: {error}", ANSWERED) from None
        kind = answer.get("schemaType", AVRO) if isinstance(answer, dict) else None
        if isinstance(kind, str) and kind != self._kind:
            raise UnknownSchema(f"{what} is {kind[:40]}, not {KINDS[self._kind]}")
        try:
            if self._kind != PROTOBUF:
                json.loads(answer["schema"])
            elif not isinstance(answer["schema"], str):
                raise TypeError
            if not isinstance(answer.get("references") or [], list):
                raise TypeError
        except (ValueError, KeyError, TypeError):
            raise SchemaUnavailable(f"{url}: the answer holds no schema", ANSWERED) from None
        except RecursionError:  # a schema, though one that cannot be used
            pass
        return dict(answer)

    def _body(self, response: Any, url: str) -> bytes:
        """All of an answer: a socket's time-out is one for each piece of it."""
        deadline_s = time.monotonic() + self._timeout_s
        pieces: list[bytes] = []
        size_bytes = 0
        while piece := response.read1(PIECE_BYTES):
            pieces.append(piece)
            size_bytes += len(piece)
            if size_bytes > ANSWER_BYTES_MAX:
                raise SchemaUnavailable(f"{url}: more than {ANSWER_BYTES_MAX >> 20} MB")
            if time.monotonic() > deadline_s:
                raise SchemaUnavailable(f"{url}: not all of the answer in {self._timeout_s:g} s")
        if response.length:  # said to be longer
            raise IncompleteRead(b"", response.length)
        return b"".join(pieces)

    def _is_own(self, error: urllib.error.HTTPError, url: str) -> bool:
        """Whether a status is the registry's own word, not that of something before it."""
        try:
            answer = json.loads(self._body(error, url))
        except (OSError, ValueError, HTTPException, RecursionError):
            return False
        return isinstance(answer, dict) and answer.get("error_code") in _NOT_FOUND


def wait_for(
    trouble_of: Callable[[], str | None],
    patience_s: float,
    say: Callable[[str], None],
    wait: Callable[[float], None],
) -> None:
    """Ask until there is no trouble with a registry; JobError where there still is one behind the
    patience. One that has never answered is given no more than FIRST_ANSWER_S of it."""
    patience_s = min(patience_s, FIRST_ANSWER_S)
    deadline_s = time.monotonic() + patience_s
    is_told = False
    while (trouble := trouble_of()) is not None:
        if time.monotonic() + PAUSE_S > deadline_s:
            raise JobError(trouble)
        if not is_told:
            say(f"{trouble}; trying again for {patience_s:g} s")
        is_told = True
        wait(PAUSE_S)
