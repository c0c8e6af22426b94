"""Names of hosts and their addresses, looked up beside the loop.

A name gets its first address, as Java takes it: one of IPv4 if there is one. What takes longer than
`LOOK_UP_S`, and what comes beyond `NAMES_MAX` names, has none; nor have other spellings of numbers,
which systems know and Java does not (`0x7f.1`). The zone of an IPv6 address is a name of one of
this machine's interfaces. Measured on Apache Kafka 4.4.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Collection

from kwire.pending import Pending
from kwire.security.acls.hosts import address_text, literal_address

NAMES_MAX = 100
NAME_LENGTH_MAX = 255
LOOK_UP_S = 5.0
NUMBERS = re.compile(r"(0[xX][0-9a-fA-F]*|[0-9]+)(\.(0[xX][0-9a-fA-F]*|[0-9]+))*\.?").fullmatch


class HostAddresses:
    """See the module. `close` ends what is under way."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._under_way: dict[asyncio.Task[None], None] = {}

    def look_up(self, names: Collection[str]) -> Pending[dict[str, str]]:
        """The addresses of those that have one, by name."""
        outcome: Pending[dict[str, str]] = Pending()
        task = self._loop.create_task(self._look_up(sorted(names)[:NAMES_MAX], outcome))
        self._under_way[task] = None
        task.add_done_callback(self._under_way.pop)
        return outcome

    def close(self) -> None:
        for task in list(self._under_way):
            task.cancel()

    async def _look_up(self, names: list[str], outcome: Pending[dict[str, str]]) -> None:
        found: dict[str, str] = {}
        asked = [self._loop.create_task(self._one(name, found)) for name in names]
        try:
            if asked:
                await asyncio.wait(asked, timeout=LOOK_UP_S)
        finally:
            for task in asked:
                task.cancel()
        outcome.complete(dict(found))

    async def _one(self, name: str, found: dict[str, str]) -> None:
        if len(name) > NAME_LENGTH_MAX or NUMBERS(name):
            return
        address, mark, zone = name.partition("%")
        if mark:
            literal = literal_address(address)
            if literal is not None and ":" in address and _is_interface(zone):
                found[name] = literal
            return
        try:
            answers = await self._loop.getaddrinfo(name, None)
        except (OSError, ValueError):  # a UnicodeError is one: a name that no DNS could have
            return
        texts = [str(answer[4][0]) for answer in answers]
        if texts:
            found[name] = address_text(next((text for text in texts if ":" not in text), texts[0]))


def _is_interface(name: str) -> bool:
    try:
        socket.if_nametoindex(name)
    except (OSError, ValueError):
        return False
    return True
