"""The tokens of a node: got again while the issuer does not answer, and the log is not filled."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest

from kwire.clock import SeededRandom, SystemClock
from kwire.node.token_source import TokenSource
from kwire.security.sasl.token_settings import RefreshSettings, TokenSettings
from kwire.security.token_login import TokenLogin
from tests.support.token_cases import GOOD
from tests.support.token_endpoint import Asked, Reply, TokenEndpoint

FAILURES = 3


def test_an_issuer_that_does_not_answer_is_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    def answer(asked: Asked) -> Reply:
        if len(issuer.asked) <= FAILURES:
            return Reply(503, "{}")
        return Reply(200, json.dumps({"access_token": GOOD}))

    async def run() -> None:
        settings = TokenSettings(f"{issuer.url}/token", "id", "a-secret", retry_ms=1)
        clock = SystemClock()
        login = TokenLogin(settings, RefreshSettings, SeededRandom(1), clock.wall_ms)
        source = TokenSource(asyncio.get_running_loop(), login, clock)
        await source.open()
        assert login.is_due
        while login.is_due:
            await asyncio.sleep(0)
        login()
        source.close()

    with TokenEndpoint(answer) as issuer, caplog.at_level(logging.WARNING):
        asyncio.run(asyncio.wait_for(run(), 60))
    assert len(issuer.asked) == FAILURES + 1
    (told,) = caplog.messages
    assert told == f"no token from {issuer.url}/token: it answers 503"
