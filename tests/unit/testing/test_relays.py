"""What stands between the brokers of a test's cluster."""

from __future__ import annotations

import asyncio
import socket

from kwire.testing.brokers.relays import Address, Relays
from kwire.testing.brokers.runner import HOST
from kwire.testing.cluster.ports import free_ports


def test_a_node_that_ends_while_a_connection_to_it_is_opened_can_be_opened_again() -> None:
    """Its socket was closed beneath the transport that had just been made of it, and the next
    socket, which has its number, was refused: RuntimeError, "is used by transport"."""
    port, target = free_ports(2)
    relays = Relays()
    address = Address(1, "PLAINTEXT")
    relays.add(address, target, port)
    relays.open(1)

    async def end_in_between() -> None:
        while not relays._crossings:
            await asyncio.sleep(0)
        await asyncio.sleep(0)  # the connection has its transport and waits to be told so
        await relays._close(1)
        with socket.socket():  # takes the number of the one that listened
            await relays._open(1)

    try:
        with socket.create_connection((HOST, port)):
            relays._thread.run(end_in_between())
    finally:
        relays.end()
