"""The broker's side of HTTP: sockets that wait, and the one process that serves what connects.

    state      leaves it when
    CLOSED     the sockets are bound, and the broker serves               -> WAITING
    WAITING    somebody connects                                          -> STARTED
    STARTED    the process is gone, or gives no sign of life              -> PAUSED
    PAUSED     the back-off is over                                       -> STARTED
    any        the broker stops                                           -> CLOSED

The process gets the listening sockets and one end of a pair of sockets (`link.py`). It ends when it
sees the other end close, and the kernel kills it when the broker's process is killed. Connections
that come while there is no process wait in the sockets' backlog.
"""

from __future__ import annotations

import asyncio
import enum
import errno
import json
import logging
import os
import signal
import socket
from collections.abc import Callable, Mapping

from kwire.http.link import BrokerLink
from kwire.http.questions import Questions
from kwire.http.settings import HttpListener, HttpSettings, tls_texts
from kwire.network.buffers import BufferPool
from kwire.python_module import python_module

logger = logging.getLogger(__name__)

BACKLOG = 1024
PING_S = 0.4
UNANSWERED_MAX = 40
"""Pings without an answer, until a process that is not stopped counts as hung."""
READY_S = 120.0
"""For a process to start on a machine that has no time for it."""
BACKOFF_MIN_S = 0.1
BACKOFF_MAX_S = 30.0
BACKOFF_OF_READY_S = 0.4
"""The longest for a process that has served: whoever asks is answered within a second."""
LIVED_S = 10.0
"""A process that lived so long is started again with the least back-off."""
REAP_S = 0.01
STOP_S = 3.0
KILLED_S = 10.0
CHILD = "kwire.http.child"


class BindError(Exception):
    """An address cannot be listened on; one line. `is_taken`: another process has it now."""

    def __init__(self, message: str, *, is_taken: bool) -> None:
        super().__init__(message)
        self.is_taken = is_taken


class State(enum.Enum):
    """See the module."""

    CLOSED = "closed"
    WAITING = "waiting"
    STARTED = "started"
    PAUSED = "paused"


class HttpSide:
    """See the module. `bootstrap(listener)` is the broker's address for the process, which is a
    client: of a listener by name."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        pool: BufferPool,
        settings: HttpSettings,
        questions: Questions,
        *,
        bootstrap: Callable[[str], str],
    ) -> None:
        self.state = State.CLOSED
        self.pid = 0
        """Of the process; 0 while there is none."""
        self._loop = loop
        self._pool = pool
        self._settings = settings
        self._questions = questions
        self._bootstrap = bootstrap
        self._sockets: list[tuple[HttpListener, socket.socket]] = []
        self._link: BrokerLink | None = None
        self._opening: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._started_s = 0.0
        self._backoff_s = 0.0
        self._ending: dict[int, None] = {}  # processes whose status is to be taken

    # -- sockets

    def bind(self) -> None:
        """Take the addresses. BindError when one cannot be had; the default listener is left out
        then."""
        for listener in self._settings.listeners:
            try:
                self._sockets.append((listener, _bound(listener)))
            except OSError as error:
                reason = error.strerror or str(error)
                where = f"{listener.host or '*'}:{listener.ports[0]}"
                if not self._settings.is_default:
                    self._close_sockets()
                    message = f"cannot listen on {where} for HTTP: {reason}"
                    is_taken = error.errno == errno.EADDRINUSE
                    raise BindError(message, is_taken=is_taken) from None
                logger.warning(
                    "HTTP is off: no port from %s to %d is free (http.listeners names another)",
                    where,
                    listener.ports[-1],
                )

    def addresses(self) -> list[str]:
        """The URL of each listener."""
        found = []
        for listener, one in self._sockets:
            host = listener.host or "0.0.0.0"
            shown = f"[{host}]" if ":" in host else host
            scheme = "http" if listener.tls is None else "https"
            found.append(f"{scheme}://{shown}:{one.getsockname()[1]}")
        return found

    @property
    def with_tls(self) -> list[str]:
        """The names of the listeners that have TLS."""
        return [one.name for one in self._settings.listeners if one.tls is not None]

    def change_tls(self, texts: Mapping[str, str]) -> None:
        """The broker's settings are others: connections from now on have their `ssl.*`."""
        told = {}
        for listener in self._settings.listeners:
            if listener.tls is not None:
                told[listener.name] = listener.tls = tls_texts(texts, listener.name)
        if self._link is not None:
            self._link.tell_tls(told)

    def is_told_to_serve(self, purpose: str) -> bool:
        """Whether a listener that the configuration names serves this."""
        is_served = any(purpose in listener.serves for listener, _ in self._sockets)
        return is_served and not self._settings.is_default

    def serve(self) -> None:
        """From now on the first connection starts the process."""
        if self._sockets and self.state is State.CLOSED:
            self._wait()

    def _wait(self) -> None:
        self.state = State.WAITING
        for _, one in self._sockets:
            one.listen(BACKLOG)
            self._loop.add_reader(one.fileno(), self._start)

    def _unwatch(self) -> None:
        for _, one in self._sockets:
            self._loop.remove_reader(one.fileno())

    def _close_sockets(self) -> None:
        for _, one in self._sockets:
            one.close()
        self._sockets.clear()

    # -- the process

    def _start(self) -> None:
        """Start the process; what is connected by then waits for it in the backlog."""
        self._unwatch()
        self._timer = None
        self.state = State.STARTED
        self._started_s = self._loop.time()
        try:
            ours, self.pid = _spawned([one for _, one in self._sockets])
        except OSError as error:
            logger.error("the HTTP process cannot be started: %s", error.strerror or error)
            self._start_again()
            return
        link = self._link = BrokerLink(
            self._loop, self._pool, self._questions, hello=self._hello, lost=self._lost
        )
        self._opening = self._loop.create_task(self._open(link, ours))
        self._timer = self._loop.call_later(PING_S, self._check)

    async def _open(self, link: BrokerLink, ours: socket.socket) -> None:
        try:
            await self._loop.create_unix_connection(lambda: link, sock=ours)
        except OSError:
            ours.close()
            self._lost()

    def _hello(self) -> bytes:
        listeners = [
            {
                "fd": one.fileno(),
                "name": listener.name,
                "host": listener.host,
                "serves": list(listener.serves),
                "tls": listener.tls,
            }
            for listener, one in self._sockets
        ]
        anonymous = self._settings.anonymous
        told = {
            "listeners": listeners,
            "anonymous": self._bootstrap(anonymous) if anonymous else "",
            "node_id": self._settings.node_id,
            "logins": {
                scheme: {
                    "bootstrap": self._bootstrap(login.listener),
                    "mechanisms": login.mechanisms,
                    "tls_listener": login.listener if login.is_tls else "",
                }
                for scheme, login in self._settings.logins.items()
            },
            "registry": self._settings.registry,
            "limits": self._settings.limits,
        }
        return json.dumps(told).encode()

    def _check(self) -> None:
        """A process that is stopped, or gives no sign of life, is ended."""
        link = self._link
        if link is None:
            return
        if _is_stopped(self.pid, is_silent=link.unanswered_pings > 0 or not link.is_ready):
            logger.warning("the HTTP process %d is stopped: it is ended", self.pid)
            self._lost()
        elif link.unanswered_pings >= UNANSWERED_MAX:
            logger.warning("the HTTP process %d gives no sign of life: it is ended", self.pid)
            self._lost()
        else:
            if link.is_ready:
                link.ping()
            elif self._loop.time() - self._started_s > READY_S:
                link.unanswered_pings = UNANSWERED_MAX
            self._timer = self._loop.call_later(PING_S, self._check)

    def _lost(self) -> None:
        """The process is gone, or is to be."""
        link, self._link = self._link, None
        if link is None or self.state is not State.STARTED:
            return
        was_ready = link.is_ready
        self._cancel_timer()
        link.close()
        _kill(self.pid)
        self._ending[self.pid] = None
        self._reap()
        level = logging.WARNING if was_ready else logging.ERROR
        logger.log(level, "the HTTP process %d has ended; starting another", self.pid)
        self.pid = 0
        self._start_again(BACKOFF_OF_READY_S if was_ready else BACKOFF_MAX_S)

    def _start_again(self, backoff_max_s: float = BACKOFF_MAX_S) -> None:
        self.state = State.PAUSED
        if self._loop.time() - self._started_s >= LIVED_S:
            self._backoff_s = 0.0
        self._backoff_s = min(max(self._backoff_s * 2, BACKOFF_MIN_S), backoff_max_s)
        self._timer = self._loop.call_later(self._backoff_s, self._start)

    def _reap(self) -> None:
        """Take the status of what has ended, so that nothing is left of it."""
        for pid in list(self._ending):
            if _has_ended(pid):
                del self._ending[pid]
        if self._ending and self.state is not State.CLOSED:
            self._loop.call_later(REAP_S, self._reap)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # -- the end

    async def stop(self) -> None:
        """No more connections; the process has ended when this returns, or is beyond being killed.
        Nothing raises."""
        if self.state is State.WAITING:
            self._unwatch()
        self.state = State.CLOSED
        self._cancel_timer()
        link, self._link = self._link, None
        if self._opening is not None:
            await self._opening
        self._close_sockets()
        if link is not None:
            link.close()
            self._ending[self.pid] = None
            self.pid = 0
        end_s = self._loop.time() + STOP_S
        while self._ending:
            self._reap()
            if self._loop.time() > end_s:
                for pid in self._ending:
                    _kill(pid)
            if self._loop.time() > end_s + KILLED_S:  # the kernel does not let go of it
                return
            await asyncio.sleep(REAP_S)


def _bound(listener: HttpListener) -> socket.socket:
    """A bound socket of a listener, on the first of its ports that is free; OSError."""
    family = socket.AF_INET6 if ":" in listener.host else socket.AF_INET
    for port in listener.ports:
        one = socket.socket(family, socket.SOCK_STREAM)
        try:
            one.setblocking(False)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            host = "127.0.0.1" if listener.host == "localhost" else listener.host
            one.bind((host, port))
            one.listen(BACKLOG)  # two may be bound to one port, where neither listens
        except OSError as error:
            one.close()
            if error.errno != errno.EADDRINUSE or port == listener.ports[-1]:
                raise
        except (UnicodeError, OverflowError):
            one.close()
            raise OSError(errno.EINVAL, "no address") from None
        else:
            return one
    raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))


def _spawned(sockets: list[socket.socket]) -> tuple[socket.socket, int]:
    """The broker's end of the pair, and the process that has the other one; OSError."""
    ours, theirs = socket.socketpair()
    try:
        ours.setblocking(False)
        return ours, _spawn([theirs, *sockets])
    except OSError:
        ours.close()
        raise
    finally:
        theirs.close()


def _spawn(sockets: list[socket.socket]) -> int:
    """Start the process; `sockets` are its by the same numbers, the first is its end of the pair.

    Without `subprocess`: its import would hold the loop, and copying the process would cost by
    the broker's size. Everything else of the broker is closed on exec, as Python opens files.
    """
    first = sockets[0].fileno()
    line = [*python_module(CHILD), str(first), str(os.getpid())]
    null = os.open(os.devnull, os.O_RDWR)
    try:
        for one in sockets:
            one.set_inheritable(True)
        return os.posix_spawn(
            line[0],
            line,
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, 2, 1)],
            setsigdef=[signal.SIGINT, signal.SIGTERM, signal.SIGPIPE],
            setsigmask=[],
        )
    finally:
        os.close(null)
        for one in sockets:
            one.set_inheritable(False)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _has_ended(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] != 0
    except ChildProcessError:  # somebody else has taken its status
        return True


def _is_stopped(pid: int, *, is_silent: bool) -> bool:
    """Whether a signal has stopped it; only Linux tells. Who looks into a process stops it for a
    moment: that counts where it `is_silent` too."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            state = file.read().rpartition(")")[2].split()[0]
            return state == "T" or (state == "t" and is_silent)
    except OSError:
        return False
