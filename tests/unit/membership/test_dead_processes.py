"""Listeners of new brokers are dialled until they accept."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from kwire.membership import dead_processes
from kwire.network.refusal import Outcome

WAIT_S = 20.0


def broker_at(epoch: int) -> SimpleNamespace:
    return SimpleNamespace(
        broker_id=1,
        fenced=False,
        epoch=epoch,
        endpoints=[],
        endpoint=lambda name: SimpleNamespace(host="127.0.0.1", port=1),
    )


@pytest.mark.parametrize("is_replaced", [True, False], ids=["registered anew", "closed"])
def test_a_dial_that_ends_as_it_is_cancelled_is_no_error(
    is_replaced: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`asyncio.wait_for` of Python 3.11 returns in that case: the entry was removed twice."""

    async def run() -> None:
        dialled, tasks = asyncio.Event(), []

        async def dial(loop: object, address: object) -> Outcome:
            tasks.append(asyncio.current_task())
            dialled.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                pass
            return Outcome.ACCEPTED

        monkeypatch.setattr(dead_processes, "dial", dial)
        monkeypatch.setattr(dead_processes, "PROBE_DELAYS_S", (0,))
        driver: Any = SimpleNamespace(
            config=SimpleNamespace(node_id=0), on_leader_change=lambda call: None
        )
        peers: Any = SimpleNamespace(on_lost=None)
        one = dead_processes.DeadProcesses(asyncio.get_running_loop(), driver, peers, "PLAINTEXT")
        for epoch in (1, 2) if is_replaced else (1,):
            delta: Any = SimpleNamespace(brokers={1: (None, broker_at(epoch))})
            dialled.clear()
            one.published(delta, delta)
            await dialled.wait()
        one.close()
        await asyncio.wait_for(asyncio.gather(*tasks), WAIT_S)

    asyncio.run(run())
