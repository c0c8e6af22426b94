"""From API key and version to the handler that executes it.

Handlers are modules of `kwire/api`, imported at the first request for them, so that a
broker starts without any. An API that has no module, or a version outside of its range, closes the
connection; ApiVersions is answered at any version (measured on Apache Kafka 4.4).

`AUTHORIZATION` of a module says what its API requires. What is marked `Checked.BEFORE` is asked
here, before the handler; a refused request is answered by the module's `denied_response(context,
request, error)`, or as other errors are.

A module whose requests neither read nor change what a write in front of them does says
`WAITS_FOR_WRITES = False`; all others start behind the replies of those writes
(docs/adr/0007-one-connection-one-order.md). One whose requests come by the thousand says
`TAKES_TURNS = True`: one turn of the loop starts only so many of them (`turns.py`). One with a
shorter way for its usual request has a function `plain_road` (`plain_requests.py`).
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import logging
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, TypeAlias

from kwire.protocol import api_versions
from kwire.protocol import messages as m
from kwire.protocol.api_keys import API_KEYS, MUTATION_APIS, ApiInfo, ApiKey
from kwire.protocol.errors import ErrorCode, KafkaError, MalformedError
from kwire.protocol.structs import Message
from kwire.security.requirements import Authorization, Checked
from kwire.server.arrival import Refusal
from kwire.server.authorization import missing_right
from kwire.server.context import DISCONNECT, Disconnect, Outcome, RequestContext
from kwire.server.plain_requests import PlainRoads
from kwire.server.request_counts import RequestCounts

logger = logging.getLogger(__name__)

API_PACKAGE = "kwire.api"
FORWARDED_MODULE = f"{API_PACKAGE}.forwarded"
"""Handles every API that a broker hands to the controller as it is."""

Decoded: TypeAlias = Any
"""A request as its decoder made it. The one place without a type: a route pairs the decoder of an
API with the handler of the same API, whose parameter names the class."""

Decode: TypeAlias = Callable[[memoryview, int, int], tuple[Decoded, int]]
"""(buffer, position, version) -> (request, position after it)."""
DecodeVersion: TypeAlias = Callable[[memoryview, int], tuple[Decoded, int]]
"""The same for one version."""
Handler: TypeAlias = Callable[[RequestContext, Decoded], Outcome]
ErrorResponse: TypeAlias = Callable[[RequestContext, KafkaError], Message | Disconnect]
DeniedResponse: TypeAlias = Callable[[RequestContext, Decoded, KafkaError], Message | Disconnect]


class Route:
    """How one API is decoded and executed.

    `decoders` are those made so far, by version; `decode` makes and uses the one of a version.
    `counts` is what was asked. `is_charged` says that a quota of bytes or of mutations is asked
    for where its requests arrive. `error_response` gives the API's shape of an error; without it a
    response with a top-level error code carries it, and an API without either loses the connection,
    which every client retries. `denied_response` does the same for a request that is not executed,
    where the shape depends on the request.
    """

    __slots__ = (
        "api_key",
        "authorization",
        "counts",
        "decode",
        "decoders",
        "denied_response",
        "error_response",
        "handle",
        "is_charged",
        "name",
        "plain_road",
        "required",
        "takes_turns",
        "version_max",
        "version_min",
        "waits_for_writes",
    )

    def __init__(
        self,
        api_key: int,
        name: str,
        handle: Handler,
        *,
        decode: Decode,
        decoders: Mapping[int, DecodeVersion],
        versions: tuple[int, int],
        authorization: Authorization,
        waits_for_writes: bool = True,
        takes_turns: bool = False,
        error_response: ErrorResponse | None = None,
        denied_response: DeniedResponse | None = None,
        counts: RequestCounts | None = None,
        plain_road: PlainRoads | None = None,
    ) -> None:
        self.api_key = api_key
        self.counts = counts or RequestCounts(api_key)
        self.name = name
        self.handle = handle
        self.is_charged = api_key == ApiKey.PRODUCE or api_key in MUTATION_APIS
        self.decode = decode
        self.decoders = decoders
        self.version_min, self.version_max = versions
        self.waits_for_writes = waits_for_writes
        self.takes_turns = takes_turns
        self.error_response = error_response
        self.denied_response = denied_response
        self.plain_road = plain_road
        self.authorization = authorization
        self.required = tuple(each for each in authorization if each.checked is Checked.BEFORE)

    @classmethod
    def of_api(
        cls,
        api_key: int,
        handle: Handler,
        authorization: Authorization,
        *,
        versions: tuple[int, int] | None = None,
        waits_for_writes: bool = True,
        takes_turns: bool = False,
        error_response: ErrorResponse | None = None,
        denied_response: DeniedResponse | None = None,
        plain_road: PlainRoads | None = None,
    ) -> Route:
        """The route of an API with its own decoder; all its stable versions if none are given."""
        info = API_KEYS[api_key]
        request_class = m.request_class(api_key)
        return cls(
            api_key,
            info.name,
            handle,
            decode=request_class.decode_from,
            decoders=request_class._decoders,
            versions=versions or (info.min, info.max),
            authorization=authorization,
            waits_for_writes=waits_for_writes,
            takes_turns=takes_turns,
            error_response=error_response,
            denied_response=denied_response,
            plain_road=plain_road,
        )

    @classmethod
    def of_module(cls, api_key: int, module: ModuleType) -> Route:
        """The route of an API that has a module."""
        return cls.of_api(
            api_key,
            module.handle,
            module.AUTHORIZATION,
            versions=getattr(module, "VERSIONS", None),
            waits_for_writes=getattr(module, "WAITS_FOR_WRITES", True),
            takes_turns=getattr(module, "TAKES_TURNS", False),
            error_response=getattr(module, "error_response", None),
            denied_response=getattr(module, "denied_response", None),
            plain_road=getattr(module, "plain_road", None),
        )

    def execute(self, context: RequestContext, request: Decoded) -> Outcome:
        """The handler's outcome; an error it raises becomes the API's error response."""
        try:
            if self.required and context.parts.authorizer is not None:
                missing = missing_right(context, self.required, request)
                if missing is not None:
                    error = KafkaError(missing.refusal, missing.message)
                    return self.refused(context, request, error)
            return self.handle(context, request)
        except Exception as error:
            return self.failed(context, error)

    def refused(
        self, context: RequestContext, request: Decoded, error: KafkaError
    ) -> Message | Disconnect:
        """What a client gets for a request that is not executed."""
        if self.denied_response is not None:
            return self.denied_response(context, request, error)
        return self.failed(context, error)

    def refusal(
        self, context: RequestContext, body: memoryview, offset: int, refusal: Refusal
    ) -> Message | Disconnect:
        """What comes of a request that the arrival step refuses. MalformedError."""
        if refusal.code is None:
            logger.info("a request is refused: %s", refusal.reason)
            return DISCONNECT
        request, _ = self.decode(body, offset, context.api_version)
        return self.refused(context, request, KafkaError(refusal.code, refusal.reason))

    def failed(self, context: RequestContext, error: Exception) -> Message | Disconnect:
        """What a client gets for an error of a handler: its API's shape of it."""
        if not isinstance(error, KafkaError):
            logger.error("%s failed", self.name, exc_info=error)
            error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        if self.error_response is not None:
            return self.error_response(context, error)
        response: Message = m.response_class(self.api_key)()
        if not hasattr(response, "error_code"):
            logger.info("%s failed: %s", self.name, error)
            return DISCONNECT
        response.error_code = int(error.code)
        if hasattr(response, "error_message"):
            response.error_message = error.message
        return response


class Dispatcher:
    """The APIs of one listener."""

    def __init__(self, api_keys: Mapping[int, str]) -> None:
        """`api_keys`: API key -> name in CamelCase, of the APIs this listener offers."""
        self._names = api_keys
        self._routes: dict[int, Route] = {}
        self._unsupported: Route | None = None

    def counts(self) -> list[tuple[str, RequestCounts]]:
        """(name of the API, what was asked) of all that were ever asked here."""
        return [(route.name, route.counts) for route in self._routes.values()]

    def route(self, api_key: int, api_version: int) -> Route:
        """The route; raises MalformedError for what is answered by closing the connection."""
        route = self._routes.get(api_key)
        if route is None:
            route = self.route_local(api_key)
        if not route.version_min <= api_version <= route.version_max:
            if api_key == ApiKey.API_VERSIONS:
                if self._unsupported is None:
                    self._unsupported = unsupported_api_versions(route.counts)
                return self._unsupported
            raise MalformedError(f"{route.name} version {api_version} is not supported")
        return route

    def known_route(self, api_key: int) -> Route | None:
        """The route of an API that was asked for before."""
        return self._routes.get(api_key)

    def route_local(self, api_key: int) -> Route:
        """The route of a request from within this process; MalformedError for an unknown key."""
        route = self._routes.get(api_key)
        if route is None:
            name = self._names.get(api_key)
            if name is None:
                raise MalformedError(f"unknown API key {api_key}")
            route = self._routes[api_key] = self._load(api_key, name)
        return route

    def _load(self, api_key: int, name: str) -> Route:
        if has_module(name):
            module = importlib.import_module(f"{API_PACKAGE}.{module_name(name)}")
            return Route.of_module(api_key, module)
        module = importlib.import_module(FORWARDED_MODULE)
        return Route.of_api(api_key, module.handle, module.AUTHORIZATIONS[api_key])

    def failed(self, context: RequestContext, error: Exception) -> Message | Disconnect:
        """The response for a request whose Pending failed."""
        route = self._routes.get(context.api_key)
        return DISCONNECT if route is None else route.failed(context, error)


def _whole_frame(buffer: memoryview, offset: int, version: int) -> tuple[Decoded, int]:
    """Nothing of a request whose version is not known can be read."""
    return None, len(buffer)


def _unsupported_version(context: RequestContext, request: None) -> m.ApiVersionsResponse:
    """Version 0 of the response, which every client can read: error 35, our own range."""
    context.api_version = 0
    response: m.ApiVersionsResponse = api_versions.unsupported_version()
    return response


def unsupported_api_versions(counts: RequestCounts) -> Route:
    """ApiVersions at a version that is not known."""
    return Route(
        ApiKey.API_VERSIONS,
        "ApiVersions",
        _unsupported_version,
        decode=_whole_frame,
        decoders={},
        versions=(0, 0),
        authorization=(),
        waits_for_writes=False,
        counts=counts,
    )


@functools.cache
def module_name(api_name: str) -> str:
    """`OffsetForLeaderEpoch` -> `offset_for_leader_epoch`."""
    letters = []
    for at, letter in enumerate(api_name):
        if letter.isupper() and at and not api_name[at - 1].isupper():
            letters.append("_")
        letters.append(letter.lower())
    return "".join(letters)


def is_built(info: ApiInfo) -> bool:
    """Whether an API has a handler: one of its own, or the one for all that is only forwarded."""
    return has_module(info.name) or info.key in forwarded_authorizations()


def forwarded_authorizations() -> Mapping[int, Authorization]:
    """What the APIs require that are only forwarded, by API key."""
    found: Mapping[int, Authorization] = importlib.import_module(FORWARDED_MODULE).AUTHORIZATIONS
    return found


def declared_authorization(api_key: int, api_name: str) -> Authorization:
    """What an API of `kwire/api` requires."""
    if not has_module(api_name):
        return forwarded_authorizations()[api_key]
    module = importlib.import_module(f"{API_PACKAGE}.{module_name(api_name)}")
    of_module: Authorization = module.AUTHORIZATION
    return of_module


@functools.cache
def has_module(api_name: str) -> bool:
    """Whether an API has a handler of its own."""
    return importlib.util.find_spec(f"{API_PACKAGE}.{module_name(api_name)}") is not None
