"""The HTTP process of a broker: `python -m kwire.http.child FD PARENT`.

FD is its end of the pair of sockets by which it is told what to serve (`control.py`), PARENT the
process that has started it. It ends when that one is gone, however it went.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import logging
import os
import signal
import socket
import sys
from typing import TYPE_CHECKING, NoReturn, TypedDict

from kwire.clock import SystemRandom
from kwire.http.local import LocalBroker
from kwire.network.loop import new_event_loop

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from kwire.http.callers import Callers
    from kwire.http.serving import Serving
    from kwire.http.tls_listener import TlsListener

logger = logging.getLogger(__name__)

NICE = 10
"""Whoever asks by HTTP is not to take the processor from who asks by Kafka's protocol."""
GC_THRESHOLD = 20_000, 20, 50
"""What an answer is made of makes no cycles: it is not looked for them at every scrape."""
PR_SET_PDEATHSIG = 1
OPEN = "health"
"""For orchestrators, which have no credentials."""
OF_THE_BROKER = ("metrics",)
"""Not asked as the caller but of the broker: for those who may describe the cluster."""


class _Listener(TypedDict):
    fd: int
    name: str
    host: str
    serves: list[str]
    tls: dict[str, str] | None


class _Limits(TypedDict):
    allowed_hosts: list[str]
    cors_origins: list[str]
    connections_max: int
    request_bytes_max: int
    request_timeout_ms: int


class _Login(TypedDict):
    bootstrap: str
    mechanisms: list[str]
    tls_listener: str


class _Hello(TypedDict):
    listeners: list[_Listener]
    anonymous: str
    node_id: int
    logins: dict[str, _Login]
    registry: tuple[str, int]
    limits: _Limits


def main(arguments: list[str]) -> int:
    """Serve until the broker is gone; returns the exit status."""
    fd, parent = int(arguments[0]), int(arguments[1])
    _die_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: the broker hears it, and ends
    logging.basicConfig(
        level=logging.WARNING,
        format="[%(asctime)s] %(levelname)s http: %(message)s",
        datefmt="%Y-%m-%d %H:%M:%S",
    )
    _step_back()
    loop = new_event_loop()
    try:
        loop.run_until_complete(_serve(loop, fd))
    finally:
        loop.close()
    return 0


def _step_back() -> None:
    """Leave the processor to the broker and to its clients."""
    try:
        os.nice(NICE)
        if sys.platform.startswith("linux"):
            # It computes for long: when it wakes up, nobody who has the processor loses it.
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    except OSError:
        pass  # a container may forbid it


def _die_with(parent: int) -> None:
    """Have the kernel end this process with its parent, where it can (Linux)."""
    if sys.platform.startswith("linux"):
        import ctypes

        try:
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        except (AttributeError, OSError):
            pass
    if os.getppid() != parent:
        _end()


def _end() -> NoReturn:
    os._exit(0)


async def _serve(loop: asyncio.AbstractEventLoop, fd: int) -> None:
    gone: asyncio.Future[None] = loop.create_future()

    def ended() -> None:
        if not gone.done():
            gone.set_result(None)

    loop.add_signal_handler(signal.SIGTERM, ended)
    control = socket.socket(fileno=fd)
    control.setblocking(False)
    broker = LocalBroker(loop, ended)
    await loop.create_unix_connection(lambda: broker, sock=control)
    try:
        hello: _Hello = json.loads(await broker.hello)
    except asyncio.CancelledError:  # the broker has gone before it said anything
        _end()

    from kwire.http.app import Bounds, make_app
    from kwire.http.server import ConnectionLimits, listen, protocol_of
    from kwire.http.serving import Serving

    told = hello["limits"]
    timeout_s = told["request_timeout_ms"] / 1000
    limits = ConnectionLimits(told["connections_max"], timeout_s)
    serving = Serving(
        broker,
        hello["anonymous"],
        list(hello["logins"]),
        registry=hello["registry"],
        node_id=hello["node_id"],
    )
    callers = None
    if hello["logins"]:
        from kwire.http.callers import Callers
        from kwire.http.logins import Logins, LoginWay

        ways = {scheme: LoginWay(**login) for scheme, login in hello["logins"].items()}
        callers = Callers(Logins(ways, SystemRandom(), broker), SystemRandom())
    with_tls: list[TlsListener] = []
    for listener in hello["listeners"]:
        bounds = Bounds(
            [*told["allowed_hosts"], *filter(None, [listener["host"]])],
            told["cors_origins"],
            told["request_bytes_max"],
            timeout_s,
        )
        app = make_app(_routes(listener["serves"], serving, callers), bounds)
        protocol = protocol_of(app, limits, loop)
        if listener["tls"] is None:
            await listen(loop, listener["fd"], protocol, None, timeout_s)
        else:
            from kwire.http.tls_listener import TlsListener

            tls = TlsListener(loop, listener["fd"], listener["name"], protocol, timeout_s)
            await tls.open(listener["tls"])
            with_tls.append(tls)
    following = loop.create_task(_follow(broker, with_tls)) if with_tls else None
    broker.ready()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLD)
    await gone
    if following is not None:
        following.cancel()
    _end()


async def _follow(broker: LocalBroker, listeners: list[TlsListener]) -> None:
    """Take over what the broker says of TLS."""
    while True:
        settings: dict[str, dict[str, str]] = json.loads(await broker.tls.get())
        for listener in listeners:
            await listener.change(settings[listener.name])


def _routes(serves: list[str], serving: Serving, callers: Callers | None) -> list[BaseRoute]:
    """With `callers`, only those who have logged in get anything but health."""
    from starlette.routing import Route

    found: list[BaseRoute] = []
    for purpose in serves:
        module = importlib.import_module(f"kwire.http.purposes.{purpose}")
        routes: list[BaseRoute] = module.routes(serving)
        if callers is not None and purpose != OPEN:
            from kwire.http.callers import Protected

            for route in routes:
                assert isinstance(route, Route), f"{purpose} is not made of routes"
                route.app = Protected(route.app, callers, needs_describe=purpose in OF_THE_BROKER)
        found += routes
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
