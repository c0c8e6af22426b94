"""Whether the broker lives and is ready, for orchestrators: `/health/live`, `/health/ready`.

200 with `{"status": "up", "reasons": []}`, or 503 with `"down"` and the reasons. A broker lives
when its loop answers; it is ready when it serves clients, has caught up with the metadata, is
unfenced, and none of its partitions refuses appends. Whoever asks while the broker is being asked
gets that answer: the broker refuses more than a few questions at once, and is not down for it.
"""

from __future__ import annotations

import asyncio
import json

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Route

from kwire.http.local import LocalBroker, Refused
from kwire.http.serving import Serving

QUESTION = "health"
TIMEOUT_S = 3.0


def routes(serving: Serving) -> list[BaseRoute]:
    """See the module."""
    health = _Health(serving.broker)
    return [
        Route("/health/live", health.live, methods=["GET"]),
        Route("/health/ready", health.ready, methods=["GET"]),
    ]


class _Health:
    def __init__(self, broker: LocalBroker) -> None:
        self._broker = broker
        self._asked: asyncio.Future[bytes] | None = None

    async def _told(self) -> bytes:
        asked = self._asked
        if asked is None:
            asked = self._asked = asyncio.ensure_future(
                self._broker.ask(QUESTION, timeout_s=TIMEOUT_S)
            )
            asked.add_done_callback(self._answered)
        return await asyncio.shield(asked)

    def _answered(self, asked: asyncio.Future[bytes]) -> None:
        self._asked = None
        if not asked.cancelled():
            asked.exception()  # whoever waited for it may be gone

    async def live(self, request: Request) -> JSONResponse:
        try:
            await self._told()
        except Refused as refused:
            return _answer([str(refused)])
        return _answer([])

    async def ready(self, request: Request) -> JSONResponse:
        try:
            told = json.loads(await self._told())
        except Refused as refused:
            return _answer([str(refused)])
        return _answer([str(reason) for reason in told["reasons"]])


def _answer(reasons: list[str]) -> JSONResponse:
    status = "down" if reasons else "up"
    return JSONResponse(
        {"status": status, "reasons": reasons},
        503 if reasons else 200,
        headers={"cache-control": "no-store"},
    )
