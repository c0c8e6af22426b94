"""An application whose fault shows in one seed of fifty is found, made smaller, and replayed.

A ledger notes that it has seen a large payment, and books it five milliseconds later: who is killed
in between has the payment taken for booked when it comes again. One payment of eight is large, and
they come twice a second, so that few kills strike there.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from kwire.testing.simulation import NothingLost, SimulationFailed, simulate
from tests.support.settling import settled

aiokafka = pytest.importorskip("aiokafka")
EFFORT = int(os.environ.get("KWIRE_EFFORT", "1"))
ROOT = Path(__file__).parents[2]
TOPIC = "payments"


class Ledger:
    """What a database keeps when its client is killed. `at_once`: in one transaction."""

    def __init__(self, *, at_once: bool) -> None:
        self._at_once = at_once
        self._seen: dict[bytes, bool] = {}
        self.booked: list[bytes] = []

    async def book(self, payment: bytes) -> None:
        if payment in self._seen:
            return
        is_large = int(payment.rpartition(b"-")[2]) % 8 == 5
        if is_large and not self._at_once:
            self._seen[payment] = True
        await asyncio.sleep(0.005)
        self._seen[payment] = True
        self.booked.append(payment)


async def keep_books(bootstrap: str, ledger: Ledger) -> None:
    consumer = aiokafka.AIOKafkaConsumer(
        TOPIC,
        bootstrap_servers=bootstrap,
        group_id="ledger",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    async with consumer:
        async for record in consumer:
            await ledger.book(record.value)
            await consumer.commit()


async def _paid(cluster, at_once: bool) -> None:
    await cluster.create_topic(TOPIC, 1)
    check, ledger = NothingLost(), Ledger(at_once=at_once)

    async def keeping() -> None:
        await keep_books(cluster.bootstrap, ledger)

    sent = 0

    async def all_booked() -> bool:
        """Who was killed four times leaves members behind that hold up the group for 20 s."""
        return len(ledger.booked) >= sent

    cluster.process(keeping)
    async with aiokafka.AIOKafkaProducer(bootstrap_servers=cluster.bootstrap) as producer:
        for number in cluster.operations(40):
            payment = b"payment-%d" % number
            await producer.send_and_wait(TOPIC, payment)
            check.sent(payment)
            sent += 1
            await asyncio.sleep(0.5)
    await cluster.faults_over()
    await settled(all_booked)
    for payment in ledger.booked:
        check.received(payment)
    check.verify()


FAULTS = ("process killed",)


@simulate(seeds=200, minutes=0.4, faults=FAULTS, brokers=1)
async def seen_before_it_is_booked(cluster) -> None:
    await _paid(cluster, at_once=False)


@simulate(seeds=2 * EFFORT, minutes=0.4, faults=FAULTS, brokers=1, processes=1)
async def seen_and_booked_at_once(cluster) -> None:
    await _paid(cluster, at_once=True)


def test_it_is_found_made_smaller_and_replayed_by_the_command_that_is_printed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    with pytest.raises(SimulationFailed) as caught:
        seen_before_it_is_booked()
    report = str(caught.value)
    assert re.search(r"b'payment-\d+' was acknowledged and is lost", report)
    made = re.search(r"made smaller: (\d+) of (\d+) faults", report)
    assert made is not None, report
    assert int(made[1]) < int(made[2]) / 2
    command = shlex.split(report.splitlines()[-2])
    assert command[:4] == ["python", "-m", "kwire.testing.simulation", "replay"]

    def replayed() -> list[str]:
        done = subprocess.run(
            [sys.executable, *command[1:]],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1, done.stderr
        return done.stdout.splitlines()

    first, again = replayed(), replayed()
    assert first == again
    assert any("was acknowledged and is lost" in line for line in first)
    assert sum("keeping: killed" in line for line in first) == int(made[1])


def test_the_mended_one_books_each_payment() -> None:
    seen_and_booked_at_once()
