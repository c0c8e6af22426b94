"""The HTTP process: what keeps it from starting is tried again."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import subprocess
import sys

import pytest

from kwire.config.broker_config import BrokerConfig
from kwire.http import side as side_module
from kwire.http.link import BrokerLink
from kwire.http.questions import Questions
from kwire.http.settings import HttpSettings
from kwire.http.side import HttpSide, State
from kwire.network.buffers import BufferPool


def test_a_process_that_cannot_be_started_for_want_of_descriptors_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real, failures = socket.socketpair, iter(range(2))

    def scarce() -> tuple[socket.socket, socket.socket]:
        if next(failures, None) is not None:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return real()

    async def inner() -> None:
        config = BrokerConfig.load(overrides={"http.listeners": "http://127.0.0.1:0"})
        settings = HttpSettings(config)
        loop = asyncio.get_running_loop()
        side = HttpSide(
            loop, BufferPool(), settings, Questions(), bootstrap=lambda name: "127.0.0.1:1"
        )
        side.bind()
        side.serve()
        monkeypatch.setattr(side_module.socket, "socketpair", scarce)
        address = side.addresses()[0].removeprefix("http://").split(":")
        with socket.create_connection((address[0], int(address[1]))):
            async with asyncio.timeout(60):
                while not side.pid:
                    await asyncio.sleep(0.01)
        assert side.state is State.STARTED
        assert next(failures, None) is None
        await side.stop()

    asyncio.run(inner())


def test_a_process_whose_broker_is_gone_before_it_said_anything_ends_without_a_word() -> None:
    ours, theirs = socket.socketpair()
    ours.close()
    with theirs:
        theirs.set_inheritable(True)
        ended = subprocess.run(
            [sys.executable, "-m", "kwire.http.child", str(theirs.fileno()), str(os.getpid())],
            pass_fds=[theirs.fileno()],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_a_process_that_cannot_be_killed_does_not_keep_the_broker_from_stopping(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(side_module, "_has_ended", lambda pid: False)
    monkeypatch.setattr(side_module, "STOP_S", 0.05)
    monkeypatch.setattr(side_module, "KILLED_S", 0.05)
    killed: list[int] = []
    monkeypatch.setattr(side_module, "_kill", killed.append)

    async def inner() -> None:
        config = BrokerConfig.load(overrides={"http.listeners": "http://127.0.0.1:0"})
        side = HttpSide(
            asyncio.get_running_loop(),
            BufferPool(),
            HttpSettings(config),
            Questions(),
            bootstrap=lambda name: "127.0.0.1:1",
        )
        side._ending[2**22 + 1] = None
        async with asyncio.timeout(60):
            await side.stop()

    asyncio.run(inner())
    assert killed


def test_a_process_that_has_served_is_back_soon_however_often_it_is_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The third one in a row was waited for for longer than a second; one that never gets ready
    is tried less and less often."""
    monkeypatch.setattr(side_module, "_kill", lambda pid: None)
    monkeypatch.setattr(side_module, "_has_ended", lambda pid: True)

    async def inner() -> None:
        loop = asyncio.get_running_loop()
        config = BrokerConfig.load(overrides={"http.listeners": "http://127.0.0.1:0"})
        side = HttpSide(
            loop,
            BufferPool(),
            HttpSettings(config),
            Questions(),
            bootstrap=lambda name: "127.0.0.1:1",
        )
        for is_ready, longest_s in ((True, 0.4), (False, 30.0)):
            for _ in range(12):
                side._cancel_timer()
                side.state = State.STARTED
                side._started_s = loop.time()
                link = BrokerLink(loop, BufferPool(), Questions(), hello=bytes, lost=side._lost)
                link.is_ready = is_ready
                side._link = link
                side._lost()
            assert side._backoff_s == longest_s
        await side.stop()

    asyncio.run(inner())


def test_a_process_that_a_signal_has_stopped_is_seen_at_once() -> None:
    """It was asked for a sign of life first, and then waited for."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert not side_module._is_stopped(process.pid, is_silent=True)
        os.kill(process.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        assert side_module._is_stopped(process.pid, is_silent=False)
        process.kill()
