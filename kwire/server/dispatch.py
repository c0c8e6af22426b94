"""From API key and version to the handler that executes it.

Handlers are modules of `kwire/api`, imported at the first request for them, so that a
broker starts without any. An API that has no module, or a version outside of its range, closes the
connection; ApiVersions is answered at any version (measured on Apache Kafka 4.4).

A module whose requests neither read nor change what a write in front of them does says
`WAITS_FOR_WRITES = False`; all others start behind the replies of those writes
(docs/adr/0007-one-connection-one-order.md).
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
from collections.abc import Callable
from typing import Any, Final

from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.api_keys import API_KEYS
from kwire.protocol.errors import ErrorCode, KafkaError, MalformedError
from kwire.server.context import DISCONNECT, RequestContext

logger = logging.getLogger(__name__)

API_VERSIONS_KEY = 18
API_PACKAGE = "kwire.api"

Decode = Callable[[Any, int, int], tuple[Any, int]]


class Route:
    """How one API is decoded and executed. `decoders` are those made so far, by version."""

    __slots__ = (
        "api_key",
        "decode",
        "decoders",
        "handle",
        "module",
        "name",
        "version_max",
        "version_min",
        "waits_for_writes",
    )

    def __init__(self, api_key: int, name: str, module: Any, request_class: Any) -> None:
        self.api_key = api_key
        self.name = name
        self.module = module
        self.handle = module.handle
        self.decode: Decode = request_class.decode_from
        self.decoders: dict[int, Callable[[memoryview, int], tuple[Any, int]]] = (
            request_class._decoders
        )
        info = API_KEYS[api_key]
        versions: tuple[int, int] = getattr(module, "VERSIONS", (info.min, info.max))
        self.version_min, self.version_max = versions
        self.waits_for_writes: bool = getattr(module, "WAITS_FOR_WRITES", True)

    def execute(self, context: RequestContext, request: Any) -> Any:
        """The handler's outcome; an error it raises becomes the API's error response."""
        try:
            return self.handle(context, request)
        except Exception as error:
            return _error_outcome(self, context, error)


class Dispatcher:
    """The APIs of one listener."""

    def __init__(self, api_keys: dict[int, str]) -> None:
        """`api_keys`: API key -> name in CamelCase, of the APIs this listener offers."""
        self._names = api_keys
        self._routes: dict[int, Route] = {}

    def route(self, api_key: int, api_version: int) -> Route:
        """The route; raises MalformedError for what is answered by closing the connection."""
        route = self._routes.get(api_key)
        if route is None:
            route = self._load(api_key)
        if not route.version_min <= api_version <= route.version_max:
            if api_key == API_VERSIONS_KEY:
                unsupported: Route = _UNSUPPORTED_API_VERSIONS
                return unsupported
            raise MalformedError(f"{route.name} version {api_version} is not supported")
        return route

    def route_local(self, api_key: int) -> Route:
        """The route of a request from within this process."""
        return self._routes.get(api_key) or self._load(api_key)

    def _load(self, api_key: int) -> Route:
        name = self._names.get(api_key)
        if name is None:
            raise MalformedError(f"unknown API key {api_key}")
        module = importlib.import_module(f"{API_PACKAGE}.{self._module_of(api_key, name)}")
        route = Route(api_key, name, module, m.request_class(api_key))
        self._routes[api_key] = route
        return route

    def _module_of(self, api_key: int, name: str) -> str:
        if API_KEYS[api_key].forwardable and not has_module(name):
            return "forwarded"
        return module_name(name)

    def failed(self, context: RequestContext, error: Exception) -> Any:
        """The response for a request whose Pending failed."""
        route = self._routes.get(context.api_key)
        if route is None:
            return DISCONNECT
        return _error_outcome(route, context, error)


class _UnsupportedApiVersions:
    """ApiVersions at a version that is not known: version 0, error 35, its own range."""

    name = "ApiVersions"
    module = None
    waits_for_writes = False
    decoders: Final[dict[int, Any]] = {}

    @staticmethod
    def decode(buffer: Any, offset: int, version: int) -> tuple[Any, int]:
        return None, len(buffer)

    @staticmethod
    def execute(context: RequestContext, request: Any) -> Any:
        from kwire.api import api_versions

        context.api_version = 0
        return api_versions.unsupported_version()


_UNSUPPORTED_API_VERSIONS: Any = _UnsupportedApiVersions()


def module_name(api_name: str) -> str:
    """`OffsetForLeaderEpoch` -> `offset_for_leader_epoch`."""
    letters = []
    for at, letter in enumerate(api_name):
        if letter.isupper() and at and not api_name[at - 1].isupper():
            letters.append("_")
        letters.append(letter.lower())
    return "".join(letters)


def has_module(api_name: str) -> bool:
    """Whether an API is built."""
    return importlib.util.find_spec(f"{API_PACKAGE}.{module_name(api_name)}") is not None


def _error_outcome(route: Route, context: RequestContext, error: Exception) -> Any:
    """What a client gets when a handler raised: its API's shape of the error.

    A handler module may define `error_response(context, error: KafkaError)`; else a response with
    a top-level error code carries it. An API without either loses the connection, which every
    client retries.
    """
    if not isinstance(error, KafkaError):
        logger.error("%s failed", route.name, exc_info=error)
        error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    shape = getattr(route.module, "error_response", None)
    if shape is not None:
        return shape(context, error)
    response = m.response_class(route.api_key)()
    if not hasattr(response, "error_code"):
        logger.info("%s failed: %s", route.name, error)
        return DISCONNECT
    response.error_code = int(error.code)
    if hasattr(response, "error_message"):
        response.error_message = error.message
    return response


__all__ = ["Dispatcher", "Pending", "Route", "has_module", "module_name"]
