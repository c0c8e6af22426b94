"""Health by HTTP, with many who ask at once."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("starlette")

from starlette.requests import Request

from kwire.http.local import Refused
from kwire.http.purposes.health import routes
from kwire.http.serving import Serving


class OneAtATime:
    """A broker that answers one question, and refuses others meanwhile."""

    def __init__(self) -> None:
        self.is_asked = False
        self.fails = False

    async def ask(self, name: str, *, timeout_s: float) -> bytes:
        if self.is_asked:
            raise Refused("too many questions at once")
        self.is_asked = True
        await asyncio.sleep(0)
        self.is_asked = False
        if self.fails:
            raise Refused("the broker does not answer")
        return b'{"reasons": []}'


def test_many_probes_at_once_all_hear_that_the_broker_lives() -> None:
    """Beyond sixteen questions the broker refuses more: orchestrators were told that it is down."""
    broker = OneAtATime()
    live, ready = routes(Serving(broker, ""))  # type: ignore[arg-type]
    request = Request({"type": "http"})

    async def ask_all() -> list[int]:
        answers = [route.endpoint(request) for route in (live, ready) * 20]
        return [answer.status_code for answer in await asyncio.gather(*answers)]

    assert asyncio.run(ask_all()) == [200] * 40
    broker.fails = True
    assert asyncio.run(ask_all()) == [503] * 40
    broker.fails = False
    assert asyncio.run(ask_all()) == [200] * 40
