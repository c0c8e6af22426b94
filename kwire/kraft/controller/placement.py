"""Where new replicas go: Kafka's striped placement (StripedReplicaPlacer), rack aware.

Racks are lists of brokers, unfenced before fenced; each partition starts at the next rack and each
rack at its next broker, so leaders and followers spread evenly and no broker gets a second replica
before every other has one. After as many partitions as there are unfenced brokers the lists are
shuffled, so that the same sets do not repeat. The first replica is an unfenced broker.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

from kwire.clock import Random
from kwire.protocol.errors import ErrorCode, KafkaError

T = TypeVar("T")


class UsableBroker(NamedTuple):
    """A broker that may get replicas."""

    broker_id: int
    rack: str | None
    fenced: bool


def shuffle(items: list[T], random: Random) -> None:
    """Fisher and Yates, from the injected randomness."""
    for i in range(len(items) - 1, 0, -1):
        j = random.below(i + 1)
        items[i], items[j] = items[j], items[i]


class _BrokerList:
    def __init__(self) -> None:
        self.brokers: list[int] = []
        self._index = 0
        self._offset = 0
        self._epoch = 0

    def initialize(self, random: Random) -> None:
        if self.brokers:
            self.brokers.sort()
            self._offset = random.below(len(self.brokers))

    def next(self, epoch: int) -> int:
        """The next broker of this epoch, -1 once all were given."""
        if not self.brokers:
            return -1
        if self._epoch != epoch:
            self._epoch = epoch
            self._index = 0
            self._offset = (self._offset + 1) % len(self.brokers)
        if self._index >= len(self.brokers):
            return -1
        broker = self.brokers[(self._index + self._offset) % len(self.brokers)]
        self._index += 1
        return broker


class _Rack:
    def __init__(self) -> None:
        self.unfenced = _BrokerList()
        self.fenced = _BrokerList()

    def next(self, epoch: int) -> int:
        broker = self.unfenced.next(epoch)
        return broker if broker >= 0 else self.fenced.next(epoch)


class _RackList:
    def __init__(self, brokers: list[UsableBroker], random: Random) -> None:
        self._random = random
        self._racks: dict[str | None, _Rack] = {}
        self.total = len(brokers)
        self.unfenced = 0
        for broker in sorted(brokers):
            rack = self._racks.setdefault(broker.rack, _Rack())
            if broker.fenced:
                rack.fenced.brokers.append(broker.broker_id)
            else:
                self.unfenced += 1
                rack.unfenced.brokers.append(broker.broker_id)
        # Brokers without a rack come first, as in Kafka.
        self._names = sorted(self._racks, key=lambda name: (name is not None, name or ""))
        for name in self._names:
            self._racks[name].fenced.initialize(random)
            self._racks[name].unfenced.initialize(random)
        self._epoch = 0
        self._offset = random.below(len(self._names)) if self._names else 0

    def place(self, replicas: int) -> list[int]:
        if self._epoch == self.unfenced and self.unfenced > 1:
            self._shuffle()
            self._epoch = 0
        if self._offset == len(self._names):
            self._offset = 0
        chosen = []
        first_rack = self._offset
        while True:
            broker = self._racks[self._names[first_rack]].unfenced.next(self._epoch)
            if broker >= 0:
                chosen.append(broker)
                break
            first_rack = (first_rack + 1) % len(self._names)
        rack_index = self._offset
        while len(chosen) < replicas:
            broker = -1
            while broker < 0:
                if rack_index == first_rack:
                    first_rack = -1
                else:
                    broker = self._racks[self._names[rack_index]].next(self._epoch)
                rack_index = (rack_index + 1) % len(self._names)
            chosen.append(broker)
        self._epoch += 1
        self._offset += 1
        return chosen

    def _shuffle(self) -> None:
        shuffle(self._names, self._random)
        for name in sorted(self._racks, key=lambda name: (name is not None, name or "")):
            shuffle(self._racks[name].fenced.brokers, self._random)
            shuffle(self._racks[name].unfenced.brokers, self._random)


def place(
    brokers: list[UsableBroker], partitions: int, replication_factor: int, random: Random
) -> list[list[int]]:
    """Replicas for `partitions` new partitions, leader first.

    Raises KafkaError(INVALID_REPLICATION_FACTOR) with Kafka's text when that cannot be.
    """
    racks = _RackList(brokers, random)
    if replication_factor <= 0:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Invalid replication factor {replication_factor}: the replication factor must be "
            "positive.",
        )
    if racks.unfenced == 0:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "All brokers are currently fenced, or have all their log directories cordoned.",
        )
    if replication_factor > racks.total:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The target replication factor of {replication_factor} cannot be reached because "
            f"only {racks.total} broker(s) are registered or some brokers have all their log "
            "directories cordoned.",
        )
    return [racks.place(replication_factor) for _ in range(partitions)]
