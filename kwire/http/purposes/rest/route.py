"""A call of the API as data: what it is asked with, what it answers, and who answers it.

    ROUTES = [
        Route("GET", "/topics/{topic}/metadata", metadata, parameters=OfTopic, tag="topics",
              summary="...", answers={200: Answered(Metadata, "...")}, refusals=(403, 404)),
    ]

`parameters` is a frozen Struct that forbids unknown fields: fields that the path names are taken of
it, those in `headers` of a header, all others of the query. `body` is a Struct out of JSON; bytes
in it are base64. What is not accepted is refused before the handler is called, with the name of it.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeAlias, TypeVar

from msgspec import Struct

if TYPE_CHECKING:
    from kwire.http.purposes.rest.clients import Client

JSON = "application/json"
_NAMED = re.compile(r"\{(\w+)\}")


class Nothing(Struct, frozen=True, forbid_unknown_fields=True):
    """No parameters, or no body."""


class Documents(Struct, frozen=True):
    """A body of any number of JSON documents, as it came: the handler reads them."""

    raw: bytes


P = TypeVar("P", bound=Struct)
B = TypeVar("B", bound=Struct)


class Call(Generic[P, B]):
    """One request: who asks (`client`), for what. `url` is where the request was sent to, without
    its query."""

    __slots__ = ("body", "client", "parameters", "url")

    def __init__(self, client: Client, parameters: P, body: B, url: str = "") -> None:
        self.client = client
        self.parameters = parameters
        self.body = body
        self.url = url


class Reply(NamedTuple):
    """An answer: no body where `body` is None, the bytes themselves, or a Struct as JSON."""

    status: int
    body: Struct | bytes | None = None
    headers: Mapping[str, str] = {}


class Streamed(NamedTuple):
    """An answer of status 200 piece by piece, until there is no more or the client has left. An
    error before the first piece is answered as any other."""

    pieces: AsyncGenerator[bytes, None]
    media_type: str


class Answered(NamedTuple):
    """What a status means, for the documentation; `body` is None where there is none."""

    body: type[Struct] | None
    words: str
    media_type: str = JSON


Handler: TypeAlias = Callable[[Call[P, B]], Awaitable[Reply | Streamed]]


class AnyRoute(ABC):
    """A route, whatever its types are."""

    def __init__(
        self,
        method: str,
        path: str,
        parameters: type[Struct],
        body: type[Struct],
        answers: Mapping[int, Answered],
    ) -> None:
        self.method = method
        self.path = path
        self.parameters = parameters
        self.body = body
        self.answers = answers
        self.summary = self.description = self.tag = ""
        self.headers: Mapping[str, str] = {}
        """Field of `parameters` -> name of the header."""
        self.refusals: Sequence[int] = ()
        self.waits = False
        self.document: type[Struct] = body
        """What the documentation shows of the body."""
        self.in_path = frozenset(_NAMED.findall(path))

    @property
    def has_body(self) -> bool:
        """Whether JSON is sent with it."""
        return self.body is not Nothing

    @abstractmethod
    async def run(
        self, client: Client, parameters: Struct, body: Struct, url: str = ""
    ) -> Reply | Streamed:
        """The handler's answer; what it gets was made by these types."""


class Route(AnyRoute, Generic[P, B]):
    """See the module. With `waits` the handler is cancelled when the client leaves. `refusals` are
    the statuses, beside 400, 401, 413 and 503, that it may be refused with."""

    def __init__(
        self,
        method: str,
        path: str,
        handler: Handler[P, B],
        *,
        summary: str,
        tag: str,
        answers: Mapping[int, Answered],
        parameters: type[P],
        body: type[B],
        headers: Mapping[str, str] | None = None,
        refusals: Sequence[int] = (),
        waits: bool = False,
        description: str = "",
        document: type[Struct] | None = None,
    ) -> None:
        super().__init__(method, path, parameters, body, answers)
        self.summary = summary
        self.description = description
        self.document = document or body
        self.tag = tag
        self.headers = dict(headers or {})
        self.refusals = tuple(refusals)
        self.waits = waits
        self._handler = handler
        self._kinds = parameters, body

    async def run(
        self, client: Client, parameters: Struct, body: Struct, url: str = ""
    ) -> Reply | Streamed:
        of_parameters, of_body = self._kinds
        assert isinstance(parameters, of_parameters)
        assert isinstance(body, of_body)
        return await self._handler(Call(client, parameters, body, url))
