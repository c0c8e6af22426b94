"""The HTTP side of a node, where its configuration asks for one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from kwire.config.broker_config import BrokerConfig
from kwire.config.dynamic import DynamicConfig
from kwire.config.errors import ConfigError
from kwire.config.values import Value
from kwire.network.buffers import BufferPool
from kwire.node.start_error import StartError

if TYPE_CHECKING:
    from kwire.http.questions import Question
    from kwire.http.side import HttpSide

logger = logging.getLogger(__name__)

PREFIX = "http."
LISTENERS = "http.listeners"
TLS_PREFIXES = ("ssl.", "listener.name.")
NEEDED = ("starlette", "uvicorn", "prometheus_client", "msgspec")
"""What the HTTP process imports; `pip install 'kwire[http]'` has it."""
TAKEN_S = 2.0
TAKEN_PAUSE_S = 0.05


def make_http_side(
    config: BrokerConfig,
    loop: asyncio.AbstractEventLoop,
    pool: BufferPool,
    *,
    by_default: bool,
    bootstrap: Callable[[str], str],
    questions: dict[str, Question],
) -> HttpSide | None:
    """None where nothing is to be served. `by_default`: on loopback, where `http.listeners` is not
    set; one that is set to nothing turns HTTP off, whatever else says what would be served.
    `questions` are what only this node can answer, by name. Raises ConfigError."""
    if not by_default and not any(
        text and name.startswith(PREFIX) for name, text in config.texts.items()
    ):
        return None
    if config.texts.get(LISTENERS, "unset").strip() == "":
        return None
    from kwire.http.questions import Questions
    from kwire.http.settings import HttpSettings
    from kwire.http.side import HttpSide

    settings = HttpSettings(config, by_default=by_default)
    if not settings.listeners:
        return None
    if not _is_installed():
        if not settings.is_default:
            raise ConfigError(
                f"http.listeners={config.texts['http.listeners']} needs packages that are not "
                "installed: pip install 'kwire[http]'"
            )
        logger.info("HTTP is off: pip install 'kwire[http]' has what it needs")
        return None
    asked = Questions()
    for name, question in questions.items():
        asked.register(name, question)
    return HttpSide(loop, pool, settings, asked, bootstrap=bootstrap)


async def bind(http: HttpSide | None, dynamic_config: DynamicConfig) -> None:
    """Take the addresses, before anything is made; StartError when one cannot be had.

    One that is taken is tried for a while: the HTTP process of a broker that was killed ends only
    when the machine has time for it.
    """
    if http is None:
        return
    from kwire.http.side import BindError

    loop = asyncio.get_running_loop()
    end_s = loop.time() + TAKEN_S
    while True:
        try:
            http.bind()
            if http.with_tls:
                _follow_settings(http, dynamic_config)
            return
        except BindError as error:
            if not error.is_taken or loop.time() > end_s:
                raise StartError(str(error)) from None
        await asyncio.sleep(TAKEN_PAUSE_S)


def _follow_settings(http: HttpSide, dynamic_config: DynamicConfig) -> None:
    """Listeners with TLS have the settings that the broker has at the time; what they could not use
    is refused."""

    def changed(settings: Mapping[str, Value]) -> None:
        if any(name.startswith(TLS_PREFIXES) for name in settings):
            http.change_tls(dynamic_config.current().texts)

    def check(candidate: BrokerConfig) -> None:
        from kwire.http.settings import tls_texts
        from kwire.http.tls import check_tls
        from kwire.security.tls.errors import TlsError

        try:
            for name in http.with_tls:
                check_tls(tls_texts(candidate.texts, name))
        except TlsError as error:
            raise ConfigError(error.in_kafkas_words()) from None

    dynamic_config.add_listener(changed)
    dynamic_config.checks.append(check)


def serve(http: HttpSide | None) -> None:
    """From now on connections are served."""
    if http is not None:
        http.serve()


def _is_installed() -> bool:
    from importlib.machinery import PathFinder  # importlib.util would cost the start more

    return all(PathFinder.find_spec(name) is not None for name in NEEDED)
