"""Whether a node answers HTTP: what it needs may be missing, and nobody may have asked for it."""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import cast

import pytest

from kwire.config.broker_config import BrokerConfig
from kwire.config.dynamic import DynamicConfig
from kwire.config.errors import ConfigError
from kwire.http.side import HttpSide
from kwire.network.buffers import BufferPool
from kwire.node import http_side
from kwire.node.http_side import bind, make_http_side


def made(by_default: bool = False, **texts: str) -> object:
    loop = asyncio.new_event_loop()
    try:
        return make_http_side(
            BrokerConfig.load(overrides=texts),
            loop,
            BufferPool(),
            by_default=by_default,
            bootstrap=lambda name: "localhost:9092",
            questions={},
        )
    finally:
        loop.close()


def test_nobody_has_asked_for_it() -> None:
    assert made() is None


def test_no_listeners_by_default_are_none_where_told_so() -> None:
    assert made(**{"http.listeners": ""}) is None


@pytest.mark.parametrize("by_default", [True, False])
def test_what_would_be_served_is_not_looked_at_where_http_is_turned_off(by_default: bool) -> None:
    """As by `--no-http` beside a configuration that names its listeners."""
    turned_off = {"http.listeners": "", "http.listener.probes.serves": "health"}
    assert made(by_default, **turned_off) is None


def test_without_what_it_needs_there_is_a_line_and_no_http(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(http_side, "NEEDED", ("a_library_that_is_not_installed",))
    with caplog.at_level(logging.INFO):
        assert made(by_default=True) is None
    assert caplog.messages == ["HTTP is off: pip install 'kwire[http]' has what it needs"]


def test_listeners_that_were_asked_for_are_never_left_out_silently(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_side, "NEEDED", ("a_library_that_is_not_installed",))
    with pytest.raises(ConfigError, match=r"http://127.0.0.1:8080 needs .*kwire\[http\]"):
        made(**{"http.listeners": "http://127.0.0.1:8080"})


def test_what_it_needs_is_looked_for_and_not_imported() -> None:
    pytest.importorskip("uvicorn")
    assert made(by_default=True) is not None


def test_an_address_that_is_taken_is_tried_until_it_is_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As by the HTTP process of a broker that was killed."""
    monkeypatch.setattr(http_side, "TAKEN_S", 60.0)

    async def inner() -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            settings = {"http.listeners": f"http://127.0.0.1:{port}"}
            side = cast(HttpSide, made(**settings))
            config = DynamicConfig(BrokerConfig.load(overrides=settings))
            binding = asyncio.ensure_future(bind(side, config))
            await asyncio.sleep(0)
            assert not binding.done()
            taken.close()
            await asyncio.wait_for(binding, 60)
        assert side.addresses() == [f"http://127.0.0.1:{port}"]
        await side.stop()

    asyncio.run(inner())
