"""Who asks by HTTP: their credentials go to the broker by SASL, and what they ask is asked as them.

What a caller brings (`logins.py`) is tried at a listener of the broker that has SASL; nothing here
knows passwords, and nobody is impersonated. The clients of callers are kept for a while, so that
each request does not log in anew: a password that was changed is good for so long, and connections
that are open then go on. Rights are asked for each time.
"""

from __future__ import annotations

import asyncio
import hashlib

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from kwire.client.cluster import Cluster
from kwire.client.errors import ClientError, LoginFailed
from kwire.clock import Random
from kwire.http.app import refusal
from kwire.http.logins import Credentials, Logins, Refused
from kwire.protocol import messages as m
from kwire.security.acl import Operation

__all__ = ["CALLERS_MAX", "Caller", "Callers", "Protected", "Refused"]

CALLERS_MAX = 64
KEPT_S = 300.0
RETIRED_S = 60.0
NOT_TAKEN = "the broker does not take these credentials"


class Caller:
    """Somebody who has logged in, and does so anew after `until_s`. `key` is one of whoever brings
    these credentials; `name` is what every node calls them, `login` what it calls the credentials.
    """

    def __init__(
        self, cluster: Cluster, key: bytes, until_s: float, *, name: str = "", login: str = ""
    ) -> None:
        self.cluster = cluster
        self.key = key
        self.name = name
        self.login = login
        self.until_s = until_s
        self.logging_in = asyncio.Lock()

    async def may_describe(self) -> bool:
        """Whether they have DESCRIBE on the cluster; Refused where the broker does not say."""
        try:
            return await _may_describe(self.cluster)
        except LoginFailed:  # a connection that was lost, and the password is another
            self.until_s = 0.0
            raise Refused(401, NOT_TAKEN) from None
        except ClientError as error:  # it may have another certificate by now
            self.until_s = 0.0
            raise Refused(503, str(error)) from None


class Callers:
    """See the module. `logins` says what is taken, and where it is tried."""

    def __init__(self, logins: Logins, random: Random) -> None:
        self.logins = logins
        self._random = random
        self._key = random.random_bytes(32)
        self._known: dict[bytes, Caller] = {}
        self._retired: dict[Cluster, None] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._logging_in = asyncio.Lock()
        """One at a time: who tries passwords waits for the broker's delays, one after the other.
        Who has logged in before does not wait for those."""

    async def of(self, authorization: str) -> Caller:
        """Whoever has sent this header; Refused."""
        credentials = self.logins.read(authorization)
        text = "\0".join(credentials).encode()
        digest = hashlib.sha256(self._key + text).digest()
        known = self._known.get(digest)
        if known is not None and known.cluster.loop.time() < known.until_s:
            return known
        async with self._logging_in if known is None else known.logging_in:
            newer = self._known.get(digest)
            if newer is not None and newer is not known:
                return newer  # another request of the same caller was in front
            try:
                caller = await self._logged_in(credentials, digest)
            except Refused:
                self._retire(digest)
                raise
            self._retire(digest)
            while len(self._known) >= CALLERS_MAX:
                self._retire(next(iter(self._known)))
            self._known[digest] = caller
        return caller

    def _retire(self, digest: bytes) -> None:
        """Forget a caller; what it has asked already is still answered."""
        caller = self._known.pop(digest, None)
        if caller is not None:
            self._retired[caller.cluster] = None
            caller.cluster.loop.call_later(RETIRED_S, self._close, caller.cluster)

    def _close(self, cluster: Cluster) -> None:
        if self._retired.pop(cluster, self) is self:
            return  # closed with all others
        closing = cluster.loop.create_task(cluster.close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Forget everybody."""
        clusters = [*self._retired, *(caller.cluster for caller in self._known.values())]
        self._known.clear()
        self._retired.clear()
        for cluster in clusters:
            await cluster.close()

    async def _logged_in(self, credentials: Credentials, key: bytes) -> Caller:
        for settings in await self.logins.settings(credentials):
            cluster = Cluster(settings, random=self._random)
            try:
                await _may_describe(cluster)
            except LoginFailed:
                await cluster.close()
                continue
            except ClientError as error:
                await cluster.close()
                raise Refused(503, str(error)) from None
            until_s = cluster.loop.time() + KEPT_S
            name, login = credentials.name, credentials.login
            return Caller(cluster, key, until_s, name=name, login=login)
        raise Refused(401, NOT_TAKEN)


async def _may_describe(cluster: Cluster) -> bool:
    request = m.DescribeClusterRequest(include_cluster_authorized_operations=True)
    response = await cluster.retrying(lambda: cluster.call(request))
    operations = response.cluster_authorized_operations
    return operations >= 0 and bool(operations >> int(Operation.DESCRIBE) & 1)


class Protected:
    """What a purpose serves, for those who have logged in; with `needs_describe` for those of them
    who have DESCRIBE on the cluster. The caller is `scope["state"]["caller"]`."""

    def __init__(self, app: ASGIApp, callers: Callers, *, needs_describe: bool) -> None:
        self._app = app
        self._callers = callers
        self._needs_describe = needs_describe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = HTTPConnection(scope).headers.getlist("authorization")
        try:
            if len(given) != 1:
                raise Refused(401, f"expected {self._callers.logins.expected} authentication")
            caller = await self._callers.of(given[0])
            if self._needs_describe and not await caller.may_describe():
                raise Refused(403, "DESCRIBE on the cluster is needed")
        except Refused as refused:
            answer = refusal(refused.status, str(refused))
            if refused.status == 401:
                answer.headers["www-authenticate"] = self._callers.logins.challenges()
            await answer(scope, receive, send)
            return
        scope["state"]["caller"] = caller
        await self._app(scope, receive, send)
