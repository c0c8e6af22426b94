"""Names of hosts are looked up beside the loop, within bounds; quotas of hosts wait for that."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Collection
from typing import Any

import pytest

from kwire.kraft.controller.context import ControllerContext
from kwire.node import host_addresses
from kwire.node.controller_requests import ControllerRequests
from kwire.node.host_addresses import HostAddresses
from kwire.pending import Pending
from kwire.protocol import messages as m

ANSWERS = {"one": ["::1", "10.0.0.1"], "six": ["2001:db8::1"], "none": []}


class Loop:
    """An event loop whose look-ups are those of `ANSWERS`; `hangs` gets no answer."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.create_task = loop.create_task
        self.asked: list[str] = []

    async def getaddrinfo(self, name: str, port: None) -> list[Any]:
        self.asked.append(name)
        if name == "hangs":
            await asyncio.Event().wait()
        if name not in ANSWERS:
            raise socket.gaierror(name)
        return [(0, 0, 0, "", (address, 0)) for address in ANSWERS[name]]


def look_up(names: Collection[str]) -> tuple[dict[str, str], list[str]]:
    async def ask() -> tuple[dict[str, str], list[str]]:
        loop = Loop(asyncio.get_running_loop())
        hosts = HostAddresses(loop)  # type: ignore[arg-type]
        answered = asyncio.Event()
        found = hosts.look_up(names)
        found.add_done_callback(lambda _: answered.set())
        await answered.wait()
        return found.result(), loop.asked

    return asyncio.run(ask())


def test_a_name_has_its_first_address_and_rather_one_of_ipv4() -> None:
    found, _ = look_up(["one", "six", "none", "nosuch"])
    assert found == {"one": "10.0.0.1", "six": "2001:db8:0:0:0:0:0:1"}


def test_what_takes_long_has_none_and_others_do_not_wait_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(host_addresses, "LOOK_UP_S", 0.05)
    assert look_up(["hangs", "one"])[0] == {"one": "10.0.0.1"}


def test_what_java_takes_for_no_name_is_not_asked_for() -> None:
    found, asked = look_up(["0x7f.1", "4294967296", "n" * 256, "10.0.0.1%lo", "::1%nosuch"])
    assert (found, asked) == ({}, [])
    (_, name), *_ = socket.if_nameindex()
    assert look_up([f"::1%{name}"]) == ({f"::1%{name}": "0:0:0:0:0:0:0:1"}, [])


def test_so_many_names_are_looked_up_and_no_more() -> None:
    _, asked = look_up([f"n{at}" for at in range(3 * host_addresses.NAMES_MAX)])
    assert len(asked) == host_addresses.NAMES_MAX


def test_what_is_under_way_ends_with_the_node() -> None:
    async def ask() -> bool:
        hosts = HostAddresses(Loop(asyncio.get_running_loop()))  # type: ignore[arg-type]
        hosts.look_up(["hangs"])
        await asyncio.sleep(0)
        (task,) = hosts._under_way
        hosts.close()
        await asyncio.wait([task])
        return not hosts._under_way

    assert asyncio.run(ask())


# -- requests


class Requester:
    """Somebody who may set quotas, or not."""

    is_connected = token_authenticated = False
    principal, client_id, listener_name, security_protocol = "User:u", None, "L", "PLAINTEXT"
    api_version = 1

    def __init__(self, allowed: bool) -> None:
        self.authorize = self.may = lambda *right: allowed


def asked_of(requester: Requester, host: str) -> tuple[list[Collection[str]], list[Any]]:
    """The names that are looked up for a quota of `host`, and what hosts the controller knows."""
    looked_up: list[Collection[str]] = []
    known: list[Any] = []

    class Quorum:
        def handle(self, request: Any, context: ControllerContext) -> Pending[Any]:
            known.append(context.known_hosts)
            return Pending.completed(m.AlterClientQuotasResponse())

    def look(names: Collection[str]) -> Pending[dict[str, str]]:
        looked_up.append(names)
        return Pending.completed(dict.fromkeys(names, "10.0.0.1"))

    requests = ControllerRequests(Quorum(), list, lambda *asked: None, lambda: 0, None, look)
    shape = m.AlterClientQuotasRequest
    part = shape.EntityData(entity_type="ip", entity_name=host)
    request = shape(entries=[shape.EntryData(entity=[part], ops=[])])
    assert requests.execute(request, requester, None).done  # type: ignore[arg-type]
    return looked_up, known


def test_a_quota_of_a_host_by_name_is_looked_up_first() -> None:
    assert asked_of(Requester(True), "one") == ([{"one"}], [{"one": "10.0.0.1"}])


@pytest.mark.parametrize("host", ["10.0.0.1", "::1", "localhost", "127.1"])
def test_an_address_is_not_looked_up(host: str) -> None:
    assert asked_of(Requester(True), host) == ([], [()])


def test_nothing_is_looked_up_for_who_may_not_set_quotas() -> None:
    assert asked_of(Requester(False), "one") == ([], [()])
