"""The registry as the handlers ask it: as somebody, for what is known, for what is so now, for a
change."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kwire.client.cluster import Cluster
from kwire.client.settings import ConnectionSettings
from kwire.clock import Random
from kwire.http.logins import CLIENT_ID
from kwire.http.purposes.registry.access import Access
from kwire.http.purposes.registry.reading import RegistryReading
from kwire.http.purposes.registry.topic import RegistrySettings, SchemaTopic
from kwire.http.purposes.registry.writer import Decide, SchemaWriter
from kwire.schemas.registry.errors import Code, RegistryError
from kwire.schemas.registry.json_values import Json
from kwire.schemas.registry.machine import Registry
from kwire.security.acl import Operation

T = TypeVar("T")


class RegistryService:
    """See the module; RegistryError from everything that asks. `anonymous` is where those ask who
    need not log in."""

    def __init__(self, settings: RegistrySettings, anonymous: str, random: Random) -> None:
        self.topic = SchemaTopic(settings)
        self.reading = RegistryReading()
        self.writer = SchemaWriter(self.topic, self.reading)
        self._access = Access(settings.topic)
        self._anonymous = anonymous
        self._random = random
        self._nobody: Cluster | None = None

    def nobody(self) -> Cluster:
        """The cluster as it is seen by who has not logged in."""
        if not self._anonymous:
            raise RegistryError(
                Code.FORBIDDEN,
                "there is no listener of the protocol PLAINTEXT to ask without a login; "
                "http.authentication says how callers log in",
            )
        if self._nobody is None:
            settings = ConnectionSettings(self._anonymous, client_id=CLIENT_ID)
            self._nobody = Cluster(settings, random=self._random)
        return self._nobody

    async def fresh(self, cluster: Cluster) -> Registry:
        """With all that is committed."""
        await self._access.check(cluster, Operation.READ)
        await self.topic.caught_up(cluster)
        return self.topic.registry

    async def asked(self, cluster: Cluster, look: Callable[[Registry], T]) -> T:
        """What is so with all that is committed; `look` may need schemas to be read."""
        await self.fresh(cluster)
        return await self.reading.decided(lambda: self.topic.registry, look)

    async def found(self, cluster: Cluster, look: Callable[[Registry], T]) -> T:
        """What never changes while it is there: what is known here is enough; where it is not
        known, what is committed decides. What is gone for good is known for `UNREAD_MS_MAX`."""
        await self._access.check(cluster, Operation.READ)
        try:
            known = await self.reading.decided(lambda: self.topic.registry, look)
        except RegistryError:
            pass
        else:
            self.topic.look_if_old(cluster)
            return known
        await self.topic.caught_up(cluster)
        return await self.reading.decided(lambda: self.topic.registry, look)

    async def change(self, cluster: Cluster, decide: Decide) -> Json:
        """The answer once the change is committed."""
        await self._access.check(cluster, Operation.WRITE)
        return await self.writer.decided(cluster, decide)

    async def close(self) -> None:
        await self.reading.close()
        if self._nobody is not None:
            await self._nobody.close()
