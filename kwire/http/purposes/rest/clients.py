"""Who asks, as a client of the cluster that outlives the request: its connections and what it has.

A caller is known by its credentials (`kwire/http/callers.py`); without authentication there is one,
anonymous, at a listener that takes such. What a caller has beyond a request (a producer, members of
groups, transactions) is a `Part` of its client, made when it is first asked for.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Protocol, TypeVar

from kwire.client.cluster import Cluster
from kwire.client.settings import ConnectionSettings
from kwire.clock import Random, SystemRandom
from kwire.http.callers import CALLERS_MAX, Caller
from kwire.http.logins import CLIENT_ID
from kwire.http.purposes.rest.problems import Problem

CLIENTS_MAX = CALLERS_MAX
IDLE_S = 600.0
RESTED_S = 15.0
"""No request that goes by a client's own connections takes longer."""
CHECK_S = 10.0
READERS_KEPT = 8
READERS_MAX = 256
"""Of all callers: requests that wait for messages, each on connections of its own."""
RETRY_TIMEOUT_S = 10.0
ANONYMOUS = b""
ANONYMOUS_NAME = "ANONYMOUS"


class Part(Protocol):
    """What a client has beyond a request."""

    @property
    def is_busy(self) -> bool:
        """Whether the client is to be kept for it, though nobody asks."""
        ...

    def check(self, now_s: float) -> None:
        """Give up what nobody has used for too long; called every `CHECK_S`."""
        ...

    async def close(self) -> None:
        """Let everything go; nothing raises."""
        ...


T = TypeVar("T", bound=Part)


class Client:
    """One caller's: `key` is of these credentials here, `login` on every node; `name` is what
    every node calls the caller, `node_id` the node that serves it.
    `cluster` is for what is answered at once: whatever waits for messages would hold up all behind
    it, and has a cluster of its own by `reader`."""

    def __init__(
        self,
        settings: ConnectionSettings,
        random: Random,
        pool: ReaderCount,
        *,
        key: bytes = ANONYMOUS,
        name: str = ANONYMOUS_NAME,
        login: str = "",
        node_id: int = -1,
    ) -> None:
        self.key = key
        self.name = name
        self.login = login
        self.node_id = node_id
        self._tls = settings.tls
        if settings.tls is not None:
            settings = settings._replace(tls=self._newest_tls)
        self.settings = settings
        self.cluster = Cluster(settings, random=random)
        self.used_s = self.cluster.loop.time()
        self._random = random
        self._count = pool
        self._idle: list[Cluster] = []
        self._parts: dict[type[Part], Part] = {}
        self._is_closed = False

    def follow(self, settings: ConnectionSettings) -> None:
        """The caller may have logged in anew: what connects from now on trusts the certificates
        that the broker had then."""
        self._tls = settings.tls

    def _newest_tls(self) -> ssl.SSLContext:
        assert self._tls is not None
        return self._tls()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The one that serves it."""
        return self.cluster.loop

    def part(self, kind: type[T], make: Callable[[Client], T]) -> T:
        """The one part of this kind, made where there is none."""
        found = self._parts.get(kind)
        if found is None:
            found = self._parts[kind] = make(self)
        assert isinstance(found, kind)
        return found

    def new_cluster(self) -> Cluster:
        """Connections of their own; whoever asked closes them."""
        return Cluster(self.settings, random=self._random)

    @asynccontextmanager
    async def reader(self) -> AsyncIterator[Cluster]:
        """Connections for a request that waits. One that is cancelled ends its connections: the
        broker waits for nobody then. Problem 503 beyond READERS_MAX."""
        self._count.take()
        cluster = self._idle.pop() if self._idle else self.new_cluster()
        try:
            yield cluster
        except Problem:
            self._give_back(cluster)
            raise
        except BaseException:
            closing = self.loop.create_task(cluster.close())
            await asyncio.shield(closing)
            raise
        else:
            self._give_back(cluster)
        finally:
            self._count.give_back()

    def _give_back(self, cluster: Cluster) -> None:
        if self._is_closed or len(self._idle) >= READERS_KEPT:
            self._count.later(cluster.close())
        else:
            self._idle.append(cluster)

    @property
    def is_busy(self) -> bool:
        """Whether it has something that nobody may lose."""
        return any(part.is_busy for part in self._parts.values())

    @property
    def is_idle(self) -> bool:
        """Whether it may be closed for another caller's."""
        return not self.is_busy and self.loop.time() - self.used_s > RESTED_S

    def check(self, now_s: float) -> None:
        """Have its parts give up what is forgotten."""
        for part in list(self._parts.values()):
            part.check(now_s)

    async def close(self) -> None:
        """End all connections, and what it has."""
        self._is_closed = True
        for part in list(self._parts.values()):
            await part.close()
        for cluster in [self.cluster, *self._idle]:
            await cluster.close()
        self._idle.clear()


class ReaderCount:
    """How many requests wait, of all callers."""

    def __init__(self) -> None:
        self._taken = 0
        self._tasks: dict[asyncio.Task[None], None] = {}

    def take(self) -> None:
        """One more; Problem 503."""
        if self._taken >= READERS_MAX:
            message = f"{READERS_MAX} requests wait for messages already"
            raise Problem(503, "too_many_waiting", message, headers={"retry-after": "1"})
        self._taken += 1

    def give_back(self) -> None:
        """One less."""
        self._taken -= 1

    def later(self, work: Coroutine[None, None, None]) -> None:
        """Do it, and let nobody wait for it."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))


class Clients:
    """See the module. `anonymous` is host:port of a listener without logins, empty where there is
    none; `node_id` is the node that has these."""

    def __init__(self, anonymous: str, node_id: int = -1) -> None:
        self._anonymous = anonymous
        self._node_id = node_id
        self._known: dict[bytes, Client] = {}
        self._random = SystemRandom()
        self._readers = ReaderCount()
        self._checking: asyncio.TimerHandle | None = None

    def of(self, caller: Caller | None) -> Client:
        """The client of whoever asks, None for anybody; Problem 401 where nobody may be that."""
        key = ANONYMOUS if caller is None else caller.key
        client = self._known.get(key)
        if client is None:
            client = self._known[key] = self._made(caller)
        elif caller is not None:
            client.follow(caller.cluster.settings)
        client.used_s = client.loop.time()
        return client

    def _made(self, caller: Caller | None) -> Client:
        if caller is not None:
            settings = caller.cluster.settings
        elif self._anonymous:
            settings = ConnectionSettings(self._anonymous, client_id=CLIENT_ID)
        else:
            message = "no listener of the broker takes clients that do not log in: set "
            raise Problem(401, "unauthorized", message + "http.authentication")
        self._make_room()
        client = Client(
            _bounded(settings),
            self._random,
            self._readers,
            key=ANONYMOUS if caller is None else caller.key,
            name=ANONYMOUS_NAME if caller is None else caller.name,
            login="" if caller is None else caller.login,
            node_id=self._node_id,
        )
        if self._checking is None:
            self._checking = client.loop.call_later(CHECK_S, self._check)
        return client

    def _make_room(self) -> None:
        idle = sorted((client.used_s, key) for key, client in self._known.items() if client.is_idle)
        while len(self._known) >= CLIENTS_MAX:
            if not idle:
                message = f"{CLIENTS_MAX} callers ask now, or have transactions or members open"
                raise Problem(503, "too_many_callers", message, headers={"retry-after": "10"})
            self._drop(idle.pop(0)[1])

    def _check(self) -> None:
        self._checking = None
        for key, client in list(self._known.items()):
            now_s = client.loop.time()
            client.check(now_s)
            if now_s - client.used_s > IDLE_S and not client.is_busy:
                self._drop(key)
        if self._known:
            self._checking = asyncio.get_running_loop().call_later(CHECK_S, self._check)

    def _drop(self, key: bytes) -> None:
        self._readers.later(self._known.pop(key).close())

    async def close(self) -> None:
        """Forget everybody."""
        if self._checking is not None:
            self._checking.cancel()
        for client in self._known.values():
            await client.close()
        self._known.clear()


def _bounded(settings: ConnectionSettings) -> ConnectionSettings:
    return settings._replace(retry_timeout_s=RETRY_TIMEOUT_S)
