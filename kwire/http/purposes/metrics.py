"""What the broker counts, for Prometheus: `/metrics`.

OpenMetrics where the scraper accepts it, else Prometheus' older text. The broker gives its numbers
in slices; naming and writing them is this process' work, beside its loop. What groups read
elsewhere other nodes are asked for (`remote_ends.py`).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from functools import cache

from prometheus_client import ProcessCollector
from prometheus_client.exposition import generate_latest as text_latest
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST as OPENMETRICS
from prometheus_client.openmetrics.exposition import generate_latest as openmetrics_latest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from kwire.http.app import refusal
from kwire.http.local import LocalBroker, Refused
from kwire.http.remote_ends import Ends, RemoteEnds
from kwire.http.serving import Serving
from kwire.metrics.blocks import Block, decoded, label
from kwire.metrics.client_pushes import block_of_series
from kwire.metrics.exposition import Exposition, client_text, without_end
from kwire.telemetry.kept_pushes import decoded as decoded_pushes
from kwire.telemetry.series import AllSeries

QUESTION = "metrics"
PUSHES = "pushes"
MS_PER_S = 1000
ACCEPTED = "application/openmetrics-text"
TEXT = "text/plain; version=0.0.4; charset=utf-8"
"""What the older text is; the library's newest one has names that are no identifiers."""


def routes(serving: Serving) -> list[BaseRoute]:
    """See the module."""
    return [Route("/metrics", _metrics(serving.broker, serving.anonymous).get, methods=["GET"])]


@cache
def _metrics(broker: LocalBroker, anonymous: str) -> _Metrics:
    """One for all listeners: what clients push is told once, and counts are the same at each."""
    return _Metrics(broker, RemoteEnds(anonymous))


class _Metrics:
    def __init__(self, broker: LocalBroker, ends: RemoteEnds) -> None:
        self._broker = broker
        self._ends = ends
        self._exposition = Exposition()
        self._series = AllSeries()
        self._pushes_read = 0
        """The number of the last push that was read."""
        self._process = ProcessCollector(pid=os.getppid, registry=None)
        self._one_scrape = asyncio.Lock()

    async def get(self, request: Request) -> Response:
        as_openmetrics = ACCEPTED in request.headers.get("accept", "").lower()
        async with self._one_scrape:
            try:
                told, pushes = await asyncio.gather(
                    self._broker.ask(QUESTION),
                    self._broker.ask(PUSHES, {"after": str(self._pushes_read)}),
                )
            except Refused as refused:
                return refusal(503, str(refused))
            blocks = await asyncio.to_thread(lambda: list(decoded(told)))
            caller = request.scope.get("state", {}).get("caller")
            ends = await self._ends.of(without_end(blocks), caller)
            now_s = asyncio.get_running_loop().time()
            body = await asyncio.to_thread(self._body, blocks, pushes, now_s, as_openmetrics, ends)
        return Response(body, media_type=OPENMETRICS if as_openmetrics else TEXT)

    def _body(
        self,
        blocks: Iterable[Block],
        pushes: bytes,
        now_s: float,
        as_openmetrics: bool,
        ends: Ends,
    ) -> bytes:
        for number, push in decoded_pushes(pushes):
            self._series.add(
                push._replace(
                    client_id=label(push.client_id),
                    software_name=label(push.software_name),
                    software_version=label(push.software_version),
                )
            )
            self._pushes_read = number
        self._series.expire(int(now_s * MS_PER_S))  # both processes go by the machine's clock
        blocks = [*blocks, block_of_series(self._series)]
        text = self._exposition.text(blocks, now_s, as_openmetrics=as_openmetrics, ends=ends)
        text += "".join(client_text(self._series.families(), as_openmetrics=as_openmetrics))
        # What the library writes ends an answer in OpenMetrics.
        write = openmetrics_latest if as_openmetrics else text_latest
        # The path of a directory need not be UTF-8.
        return text.encode(errors="replace") + write(self._process)
