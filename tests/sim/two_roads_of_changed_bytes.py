"""Histories of `two_roads.py` and `two_roads_of_fetches.py`, with requests whose bytes are changed.

Behind what a client has said, and a plain road may have remembered, it sends the same once more
with other bytes, fewer or more. What becomes of that has to be the same on both roads.
"""

from __future__ import annotations

import random

from tests.sim.two_roads import Peer, Road
from tests.sim.two_roads_of_fetches import FetchRoad
from tests.support.mutating import mutated

API_AND_VERSION_BYTES = 4
"""They stay."""
CHANGED_IN_A_ROW = 3


async def ask_changed(road: Road, peer: Peer, what: str, frame: bytes) -> None:
    """What has no answer, or ends the connection, is followed by another connection."""
    draw = random.Random(road.draw(1 << 30))
    for _ in range(CHANGED_IN_A_ROW):
        body = mutated(draw, frame[4:], API_AND_VERSION_BYTES)
        data = len(body).to_bytes(4, "big") + body
        if await road._ask(peer, f"{what} changed", data, may_wait=True) is None:
            there = await road._connected(peer.number, peer)
            peer.reader, peer.writer = there.reader, there.writer
            return


class ChangedRequests(Road):
    """Heartbeats of both protocols, commits, Produce and Metadata."""

    async def _consumer_heartbeat(self, peer: Peer, step: int) -> None:
        await super()._consumer_heartbeat(peer, step)
        for frame in (self._said_by_consumer, self._usual(peer)):
            if frame:
                await ask_changed(self, peer, f"{step} consumer", frame)

    _said_by_consumer = b""

    async def _ask(
        self, peer: Peer, what: str, data: bytes, may_wait: bool = False
    ) -> bytes | None:
        if what.endswith("consumer"):
            self._said_by_consumer = data
        return await super()._ask(peer, what, data, may_wait)


class ChangedFetches(FetchRoad):
    """Fetches of sessions."""

    async def _quiet(self, peer: Peer, what: str) -> None:
        await super()._quiet(peer, what)
        await ask_changed(self, peer, what, self._fetch(peer, self._session_of(peer)))
