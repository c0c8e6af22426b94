"""What goes wrong, one scene a fault, and what each client makes of it.

`python -m tests.support.failing.scenes` records Apache Kafka's.
"""

from __future__ import annotations

import itertools
import json
import pathlib
import sys
import tempfile
import threading
from collections.abc import Callable

from kwire.testing.waiting import wait_until
from tests.support.failing.clients import CLIENTS, LIMIT_S, Client, Sending
from tests.support.failing.relay import HALF_A_REPLY, REPLY, REQUEST
from tests.support.failing.worlds import BIG, World, real_kafka, state_of

DATA = pathlib.Path(__file__).parents[2] / "golden/data/fault_outcomes.json"
Scene = Callable[[World, Client, str], str]
SHORT_MS = 4000
_numbers = itertools.count(1)


def throttled(world: World, client: Client, name: str) -> str:
    topic = world.topic(name).create()
    with world.over_quota(name):
        how = Sending(client_id=name)
        error = client.send(world.bootstrap, name, [BIG], how)
    return f"{error}, {len(topic.records())} kept"


def _lost(what: str, idempotent: bool) -> Scene:
    def scene(world: World, client: Client, name: str) -> str:
        topic = world.topic(name).create()
        with world.lose(what, name):
            error = client.send(world.bootstrap, name, [b"a"], Sending(idempotent))
        return f"{error}, {len(topic.records())} kept"

    return scene


def _late(idempotent: bool) -> Scene:
    def scene(world: World, client: Client, name: str) -> str:
        topic = world.topic(name).create()
        with world.late(name):
            error = client.send(world.bootstrap, name, [b"a"], Sending(idempotent))
        return f"{error}, {len(topic.records())} kept"

    return scene


def rebalanced(world: World, client: Client, name: str) -> str:
    topic = world.topic(name).create()
    topic.send("a")

    def send_when_stable() -> None:
        wait_until(lambda: state_of(world.bootstrap, name) == "Stable", timeout_s=LIMIT_S)
        topic.send("b")

    sender = threading.Thread(target=send_when_stable)

    def between() -> None:
        world.rebalance(name)
        sender.start()

    told = client.member(world.bootstrap, name, name, between, commits=False)
    if sender.ident is not None:  # else what the member was told says why it did not come so far
        sender.join()
    return told


def removed(world: World, client: Client, name: str) -> str:
    topic = world.topic(name).create()
    topic.send("a")

    def between() -> None:
        world.remove_members(name)
        topic.send("b")

    return client.member(world.bootstrap, name, name, between, commits=True)


def fenced(world: World, client: Client, name: str) -> str:
    topic = world.topic(name).create()
    error = client.transaction(world.bootstrap, name, name, lambda: world.fence(name))
    return f"{error}, {len(topic.records(committed_only=True))} kept"


def corrupted(world: World, client: Client, name: str) -> str:
    world.topic(name).create().send("a")
    world.corrupt(name)
    return client.read(world.bootstrap, name)


def full(world: World, client: Client, name: str) -> str:
    world.topic(name).create()
    with world.full(name):
        return client.send(world.bootstrap, name, [b"a"], Sending(delivery_ms=SHORT_MS))


SCENES: dict[str, Scene] = {
    "throttle": throttled,
    "rebalance": rebalanced,
    "fence-member": removed,
    "fence-producer": fenced,
    "drop-request": _lost(REQUEST, False),
    "drop-reply": _lost(REPLY, False),
    "drop-reply, idempotent": _lost(REPLY, True),
    "cut-reply": _lost(HALF_A_REPLY, False),
    "cut-reply, idempotent": _lost(HALF_A_REPLY, True),
    "delay": _late(False),
    "delay, idempotent": _late(True),
    "corrupt-records": corrupted,
    "disk-full": full,
}
"""The last one takes disks from the broker."""


def outcome(scene: str, client: Client, world: World) -> str:
    """By this client, on a topic of its own."""
    return SCENES[scene](world, client, f"scene-{next(_numbers)}")


def outcomes(world: World) -> dict[str, dict[str, str]]:
    """Of all scenes, by client."""
    return {
        scene: {client.name: outcome(scene, client, world) for client in CLIENTS}
        for scene in SCENES
    }


def main() -> int:
    with (
        tempfile.TemporaryDirectory() as directory,
        real_kafka(pathlib.Path(directory)) as world,
    ):
        found = outcomes(world)
    DATA.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
