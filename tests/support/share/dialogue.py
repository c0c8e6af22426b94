"""What a broker answers to ShareFetch and ShareAcknowledge: one conversation, for any broker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kwire.testing.cluster import wait_for
from tests.support.share.member import (
    ACCEPT,
    GAP,
    RECORD_LIMIT,
    REJECT,
    RELEASE,
    RENEW,
    Acknowledgement,
    Key,
    Member,
    produce,
    said,
    set_group_config,
)
from tests.support.share.walk import Walk
from tests.support.wire import WireClient

PROPERTIES = {
    "group.share.assignment.interval.ms": "0",  # no member waits for its partitions
    "group.share.min.record.lock.duration.ms": "1000",
    "share.coordinator.state.topic.num.partitions": "3",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
OFTEN = {
    "group.share.min.heartbeat.interval.ms": "200",
    "group.share.heartbeat.interval.ms": "200",
}
"""Members that only hear of their partitions by a heartbeat hear of them soon."""
WALKS = range(1000, 1008)

Said = list[Any]
"""A step's name, and what came of it: JSON."""


def dialogue(bootstrap: str) -> Iterator[Said]:
    """All steps, in order."""
    yield from _acknowledgements(bootstrap)
    yield from _sessions(bootstrap)
    yield from _requests(bootstrap)
    yield from _deliveries(bootstrap)
    yield from _expired(bootstrap)


def walks(bootstrap: str) -> Iterator[list[Said]]:
    """Random walks in which no lock runs out."""
    for seed in WALKS:
        yield walk_of(bootstrap, seed, "walk")


def walk_of(bootstrap: str, seed: int, name: str) -> list[Said]:
    """One of them, with a topic and a group of that name."""
    walk = Walk(bootstrap, seed, name, may_expire=False)
    said = list(walk.steps())
    walk.close()
    return said


class World:
    """A topic of one partition with batches of 3, 5, 1, 1 and 10 records, and a group's members."""

    def __init__(self, bootstrap: str, name: str, **configs: str) -> None:
        self.client = WireClient(bootstrap)
        self.topic = f"{name}-topic"
        self.group = f"{name}-group"
        self.client.create_topic(self.topic)
        self.key: Key = (self.client.topic_id(self.topic), 0)
        set_group_config(
            self.client,
            self.group,
            share_auto_offset_reset="earliest",
            share_record_lock_duration_ms="60000",
            **configs,
        )
        produce(self.client, self.topic, 3, 5, 1, 1, 10)
        self.bootstrap = bootstrap
        self.members: list[Member] = []

    def member(self) -> Member:
        member = Member(self.bootstrap, self.group, [self.topic], len(self.members) + 1)
        self.members.append(member)
        return member

    def joined(self) -> Member:
        """A member that has acquired all records."""
        member = self.member()
        member.join(1)
        member.acquire([self.key])
        return member

    def close(self) -> None:
        for member in self.members:
            member.close()
        self.client.close()


def _acknowledgements(bootstrap: str) -> Iterator[Said]:
    world = World(bootstrap, "acknowledgements")
    a, b, key = world.joined(), world.member(), world.key
    steps: tuple[tuple[str, list[Acknowledgement]], ...] = (
        ("accepted", [(0, 4, [ACCEPT])]),
        ("accepted again: before the start", [(0, 4, [ACCEPT])]),
        ("more than is acquired", [(15, 30, [ACCEPT])]),
        ("behind all that is acquired", [(100, 130, [ACCEPT])]),
        ("backward", [(8, 9, [ACCEPT]), (5, 6, [ACCEPT])]),
        ("overlapping by one", [(5, 7, [ACCEPT]), (7, 9, [ACCEPT])]),
        ("overlapping", [(5, 8, [ACCEPT]), (7, 9, [ACCEPT])]),
        ("last before first", [(9, 8, [ACCEPT])]),
        ("negative", [(-5, -1, [ACCEPT])]),
        ("type 5", [(5, 5, [5])]),
        ("type 127", [(5, 5, [127])]),
        ("type -1", [(5, 5, [-1])]),
        ("fewer types than offsets", [(5, 7, [ACCEPT, ACCEPT])]),
        ("more types than offsets", [(5, 5, [ACCEPT, ACCEPT])]),
        ("no types", [(5, 7, [])]),
        ("no batches", []),
        ("renewed, but not said so", [(5, 5, [RENEW])]),
        ("released", [(5, 5, [RELEASE])]),
        ("released twice", [(5, 5, [RELEASE])]),
        ("one of several is not acquired", [(5, 7, [ACCEPT])]),
        ("a gap", [(6, 6, [GAP])]),
        ("rejected", [(7, 7, [REJECT])]),
        ("100,000 gaps", [(10, 100_009, [GAP] * 100_000)]),
        ("many batches", [(at, at, [RELEASE]) for at in range(10, 20)]),
    )
    for name, batches in steps:
        yield [name, said(a.acknowledge({key: batches}))]
    yield ["what was released", said(a.fetch())]
    renewed = {key: [(8, 9, [RENEW])]}
    yield ["renewed", said(a.acknowledge(renewed, is_renewal=True))]
    yield ["renewed in version 1", said(a.acknowledge(renewed, version=1))]
    mixed = {key: [(8, 9, [RENEW, ACCEPT])]}
    yield ["renewed and accepted", said(a.acknowledge(mixed, is_renewal=True))]
    yield ["renewed what is accepted", said(a.acknowledge(mixed, is_renewal=True))]
    set_group_config(world.client, world.group, share_renew_acknowledge_enable="false")
    yield ["renewals are off", said(a.acknowledge(renewed, is_renewal=True))]
    yield ["another opens", said(b.fetch([key]))]
    for first, last in ((8, 8), (10, 19), (10, 12)):
        batches = [(first, last, [ACCEPT])]
        yield [f"another's {first}-{last}", said(b.acknowledge({key: batches}))]
    yield ["no such topic", said(a.acknowledge({(b"1" * 16, 0): [(6, 6, [ACCEPT])]}))]
    yield ["no such partition", said(a.acknowledge({(key[0], 7): [(6, 6, [ACCEPT])]}))]
    both = {key: [(10, 10, [ACCEPT])], (key[0], 7): [(6, 6, [ACCEPT])]}
    yield ["one is good, one is not", said(a.acknowledge(both))]
    world.close()


def _sessions(bootstrap: str) -> Iterator[Said]:
    world = World(bootstrap, "sessions")
    a, b, key = world.joined(), world.member(), world.key
    accepted = {key: [(0, 0, [ACCEPT])]}
    for epoch in (0, 1000, -2, 2**31 - 1):
        yield [f"acknowledge at {epoch}", said(a.acknowledge(accepted, epoch=epoch))]
        if epoch:
            yield [f"fetch at {epoch}", said(a.fetch(epoch=epoch))]
    yield ["acknowledged before", said(a.acknowledge(accepted, epoch=a.epoch - 1))]
    yield ["fetched before", said(a.fetch(epoch=a.epoch - 1))]
    yield ["acknowledged as it opens", said(a.fetch([key], accepted, epoch=0))]
    yield ["no session", said(b.acknowledge(accepted, epoch=1))]
    yield ["no session, at its end", said(b.acknowledge(accepted, epoch=-1))]
    yield ["no session to fetch by", said(b.fetch(epoch=3))]
    yield ["no session to fetch by, at its end", said(b.fetch(epoch=-1))]
    yield ["acknowledged with a fetch", said(a.fetch(acknowledge=accepted))]
    yield ["acknowledged with a fetch again", said(a.fetch(acknowledge=accepted))]
    bad = {key: [(1, 1, [ACCEPT]), (0, 0, [ACCEPT])]}
    yield ["acknowledged badly with a fetch", said(a.fetch(acknowledge=bad))]
    late = {key: [(1, 99, [ACCEPT])]}
    yield ["acknowledged too much with a fetch", said(a.fetch(acknowledge=late))]
    yield ["a partition forgotten", said(a.fetch(forgotten=[key]))]
    yield ["a partition forgotten that was not there", said(a.fetch(forgotten=[(b"1" * 16, 3)]))]
    yield ["no such topic", said(a.fetch([(b"1" * 16, 3)]))]
    yield ["still no such topic", said(a.fetch())]
    yield ["no such topic forgotten", said(a.fetch(forgotten=[(b"1" * 16, 3)]))]
    yield ["no such partition", said(a.fetch([(key[0], 9)]))]
    yield ["no such partition forgotten", said(a.fetch(forgotten=[(key[0], 9)]))]
    yield ["the partition again", said(a.fetch([key]))]
    last = {key: [(1, 4, [ACCEPT]), (5, 5, [RELEASE])]}
    yield ["the last fetch", said(a.fetch(epoch=-1, acknowledge=last))]
    yield ["behind the last fetch", said(a.fetch(epoch=7))]
    yield ["another gets the rest", said(b.acquire([key], records_max=1, mode=RECORD_LIMIT))]
    yield ["the last acknowledgement", said(b.acknowledge({key: [(5, 5, [REJECT])]}, epoch=-1))]
    yield ["opened anew", said(b.acquire([key], records_max=1, mode=RECORD_LIMIT))]
    world.close()


def _requests(bootstrap: str) -> Iterator[Said]:
    world = World(bootstrap, "requests")
    a, key = world.joined(), world.key
    renewed = {key: [(1, 1, [RENEW])]}
    options: tuple[tuple[str, dict[str, Any]], ...] = (
        ("no records at most", {"records_max": 0}),
        ("fewer than no records", {"records_max": -1}),
        ("fewer than no bytes", {"bytes_max": -1}),
        ("after that", {}),
        ("a batch of -1", {"batch_size": -1}),
        ("renewed", {"acknowledge": renewed, "is_renewal": True, "records_max": 0, "bytes_max": 0}),
        ("renewed and fetched", {"acknowledge": renewed, "is_renewal": True}),
    )
    for name, given in options:
        yield [name, said(a.fetch(**given))]
    yield ["an acquire mode there is not", said(a.fetch(mode=7))]
    a.epoch += 1  # it counts nevertheless
    yield ["after that", said(a.fetch())]
    b = world.member()
    for member_id in (None, "", "a" * 37):
        b.member_id = member_id  # type: ignore[assignment]
        yield [f"member {member_id}", said(b.fetch([key]))]
    for member_id in ("abc", "a" * 36):
        b.member_id = member_id
        yield [f"member {member_id}", said(b.fetch([key], epoch=0))[:2]]
    b.group = None  # type: ignore[assignment]
    yield ["no group", said(b.fetch([key], epoch=0))]
    world.close()


def _deliveries(bootstrap: str) -> Iterator[Said]:
    world = World(bootstrap, "deliveries", share_delivery_count_limit="5")
    a, key = world.member(), world.key
    a.join(1)
    yield ["4 at most", said(a.acquire([key], records_max=4, mode=RECORD_LIMIT))]
    yield ["2 more at most", said(a.fetch(records_max=2, mode=RECORD_LIMIT))]
    yield ["1 or more", said(a.fetch(records_max=1))]
    yield ["5 or more in ranges of 1", said(a.fetch(records_max=5, batch_size=1))]
    yield ["what is left", said(a.fetch())]
    some = [(0, 1, [RELEASE, RELEASE]), (4, 4, [RELEASE]), (10, 12, [RELEASE])]
    yield ["some released", said(a.acknowledge({key: some}))]
    yield ["1 at most", said(a.fetch(records_max=1, mode=RECORD_LIMIT))]
    yield ["1 or more", said(a.fetch(records_max=1))]
    yield ["what is left", said(a.fetch())]
    everything = [(at, at, [RELEASE]) for at in range(20)]
    yield ["all released", said(a.acknowledge({key: everything}))]
    for turn in range(40):
        answer = a.fetch()
        yield [f"delivered {turn}", said(answer)]
        acquired = [
            (given.first_offset, given.last_offset, [RELEASE])
            for topic in answer.responses
            for partition in topic.partitions
            for given in partition.acquired_records
        ]
        if not acquired:
            break
        yield [f"released {turn}", said(a.acknowledge({key: acquired}))]
    world.close()


def _expired(bootstrap: str) -> Iterator[Said]:
    """What a member says of records whose lock has run out, and which another has now."""
    world = World(bootstrap, "expired")
    set_group_config(world.client, world.group, share_record_lock_duration_ms="1000")
    a, b, key = world.joined(), world.member(), world.key
    set_group_config(world.client, world.group, share_record_lock_duration_ms="60000")
    b.join(1)
    got: dict[int, int] = {}

    def has_all() -> bool:
        for topic in b.acquire([key]).responses:
            for partition in topic.partitions:
                for given in partition.acquired_records:
                    offsets = range(given.first_offset, given.last_offset + 1)
                    got.update(dict.fromkeys(offsets, given.delivery_count))
        return len(got) == 20

    wait_for(has_all, "the locks have run out")
    yield ["delivered again", [list(one) for one in sorted(got.items())]]
    renewed: list[Acknowledgement] = [(0, 2, [RENEW])]
    yield ["renewed too late", said(a.acknowledge({key: renewed}, is_renewal=True))]
    for kind, name in ((ACCEPT, "accepted"), (RELEASE, "released"), (REJECT, "rejected")):
        yield [f"{name} too late", said(a.acknowledge({key: [(0, 2, [kind])]}))]
    yield ["accepted too late with a fetch", said(a.fetch(acknowledge={key: [(3, 3, [ACCEPT])]}))]
    yield ["renewed by who has it", said(b.acknowledge({key: renewed}, is_renewal=True))]
    yield ["accepted by who has it", said(b.acknowledge({key: [(0, 2, [ACCEPT])]}))]
    yield ["renewed when it is accepted", said(b.acknowledge({key: renewed}, is_renewal=True))]
    later = [(3, 3, [RENEW]), (0, 2, [RENEW])]
    yield ["renewed backward", said(b.acknowledge({key: later}, is_renewal=True))]
    yield [
        "renewed, twice the same",
        said(b.acknowledge({key: [(3, 3, [RENEW])] * 2}, is_renewal=True)),
    ]
    unknown = [(3, 3, [5])]
    yield ["renewed with type 5", said(b.acknowledge({key: unknown}, is_renewal=True))]
    beyond = [(19, 400, [RENEW])]
    yield ["renewed beyond what is there", said(b.acknowledge({key: beyond}, is_renewal=True))]
    gaps = [(3, 100_002, [GAP] * 100_000)]
    yield ["gaps beyond what is there", said(b.acknowledge({key: gaps}))]
    yield ["a gap as one type", said(b.acknowledge({key: [(3, 19, [GAP])]}))]
    world.close()
