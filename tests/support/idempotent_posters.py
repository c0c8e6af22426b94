"""Posters of messages with idempotency keys, over nodes that are killed: each message once.

A poster publishes one pair of messages after the other, each pair with a key of its own, and sends
the same again, to whichever node, until it is answered; now and then once more after that. Every
answer of a key has to be the same, and to be where the messages are.
"""

from __future__ import annotations

import asyncio
import random
import threading
from http.client import HTTPException

from kwire.client.cluster import Cluster as Client
from kwire.client.fetching import Fetcher
from kwire.client.offsets import Offsets
from kwire.client.settings import ConnectionSettings
from kwire.testing.cluster import Cluster, Node
from tests.support.rest import Rest, text64

TOPIC = "payments"
PARTITIONS = 3
PAUSE_S = 0.05
AGAIN = 0.2
"""So often an answer is taken as lost."""
LIMIT_S = 240.0
Places = dict[bytes, list[tuple[int, int]]]


def http_port_of(node: Node) -> int:
    """Where a node of a cluster listens for HTTP."""
    return int(node.settings["http.listeners"].rpartition(":")[2])


class Posters:
    """`count` threads, each with `messages` pairs to publish; see the module."""

    def __init__(self, cluster: Cluster, count: int, messages: int, seed: int) -> None:
        self.answers: dict[str, list[list[dict[str, int]]]] = {}
        self.retries = 0
        self.wrong: list[str] = []
        self._ports = [http_port_of(node) for node in cluster.brokers]
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._work, args=(number, messages, seed + number))
            for number in range(count)
        ]

    def start(self) -> None:
        """Begin to publish."""
        for thread in self._threads:
            thread.start()

    def published(self) -> int:
        """How many pairs have been answered."""
        return len(self.answers)

    def join(self) -> None:
        """Until all is published."""
        for thread in self._threads:
            thread.join(LIMIT_S)
        self._stopped.set()
        assert not any(thread.is_alive() for thread in self._threads), "they do not come to an end"
        assert not self.wrong, self.wrong[:5]

    def _work(self, number: int, messages: int, seed: int) -> None:
        chance = random.Random(seed)
        for at in range(messages):
            key = f"{number}-{at}"
            while self._post(key, chance) and not self._stopped.is_set():
                pass

    def _post(self, key: str, chance: random.Random) -> bool:
        """Whether to send it once more."""
        value = text64(key)
        body = {"messages": [{"value": value}, {"key": key, "value": value}]}
        rest = Rest(chance.choice(self._ports), {"Idempotency-Key": key})
        try:
            answer = rest.ask("POST", f"/topics/{TOPIC}/messages", body)
        except (OSError, HTTPException):
            answer = None
        with self._lock:
            if answer is not None and answer.status == 200:
                self.answers.setdefault(key, []).append(answer.told["offsets"])
                return chance.random() < AGAIN
            if answer is not None and answer.status != 503:
                self.wrong.append(f"{key}: {answer}")
                return False
            self.retries += 1
        self._stopped.wait(PAUSE_S)
        return True

    def check(self, bootstrap: str) -> None:
        """Each message is there once, and where every answer says."""
        kept = asyncio.run(_kept(bootstrap))
        for key, answers in self.answers.items():
            told = answers[0]
            assert all(answer == told for answer in answers), (key, answers)
            places = [(one["partition"], one["offset"]) for one in told]
            assert sorted(kept.pop(key.encode(), [])) == sorted(places), key
        assert not kept, f"nobody was told of {kept}"


async def _kept(bootstrap: str) -> Places:
    """Where the committed messages of each value are."""
    found: Places = {}
    async with Client(ConnectionSettings(bootstrap)) as client:
        ends = await Offsets(client).at(
            [(TOPIC, index) for index in range(PARTITIONS)], committed=True
        )
        fetcher = Fetcher(client, committed_only=True)
        for (topic, index), end in ends.items():
            at = 0
            while at < end:
                fetched = (await fetcher.fetch({(topic, index): at})).get((topic, index))
                if fetched is None:
                    continue
                for record in fetched.records:
                    value = bytes(record.value or b"")
                    found.setdefault(value, []).append((index, record.offset))
                at = fetched.next_offset
    return found
