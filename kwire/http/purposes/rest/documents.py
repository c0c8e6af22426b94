"""`/openapi.json` and `/docs`, made when they are first asked for."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from kwire.http.purposes.rest.route import JSON, AnyRoute


class Documents:
    """See the module. `schemes` are those that callers may log in by."""

    def __init__(self, routes: Sequence[AnyRoute], schemes: Sequence[str]) -> None:
        self._routes = routes
        self._schemes = schemes

    async def openapi(self, request: Request) -> Response:
        """The document."""
        return Response(self._document, media_type=JSON)

    async def page(self, request: Request) -> Response:
        """The page."""
        policy = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'"}
        return Response(self._page, media_type="text/html", headers=policy)

    @functools.cached_property
    def _document(self) -> bytes:
        from kwire.http.purposes.rest.openapi import document

        return document(self._routes, self._schemes)

    @functools.cached_property
    def _page(self) -> bytes:
        from kwire.http.purposes.rest.openapi import page

        return page(self._routes)
