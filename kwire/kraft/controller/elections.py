"""Leaders and in-sync replicas when brokers come, go or lose directories; timed elections.

`leader_and_isr_updates` is used for every such event. What a change does to one partition is in
partition_change.py.
"""

from __future__ import annotations

from collections.abc import Iterable

from kwire.kraft.controller.partition_change import Election, PartitionChange
from kwire.kraft.controller.partition_index import PartitionKey
from kwire.kraft.controller.results import Records
from kwire.kraft.controller.state import TOPIC, ControllerState
from kwire.kraft.images.cluster import ENTER_CONTROLLED_SHUTDOWN, FENCE, UNFENCE
from kwire.kraft.images.topics import NO_LEADER, TopicImage
from kwire.protocol import messages as m

MAX_ELECTIONS_PER_ROUND = 1000


def leader_and_isr_updates(
    state: ControllerState,
    partitions: Iterable[PartitionKey],
    *,
    remove: int = NO_LEADER,
    add: int = NO_LEADER,
    unclean_shutdown: int = NO_LEADER,
) -> Records:
    """Changes of `partitions` after an event of one broker.

    `remove` leaves the ISR and may not lead; `add` may lead although it is still fenced in the
    image (its unfencing is written with these records); `unclean_shutdown` leaves ISR and ELR.
    """

    acceptable = {broker_id for broker_id, each in state.image.brokers.items() if each.is_active}
    acceptable = (acceptable | {add}) - {remove, unclean_shutdown}
    values = _TopicValues(state)
    records: Records = []
    known_id, is_unclean, min_isr = b"", False, 0  # configs of a topic, for its partitions in a row
    for topic_id, index in partitions:
        topic = state.image.topics.by_id[topic_id]
        partition = topic.partitions[index]
        if topic_id != known_id:
            known_id = topic_id
            is_unclean, min_isr = values.of(topic)
        change = PartitionChange(
            state,
            topic.name,
            topic_id,
            index,
            partition,
            acceptable.__contains__,
            min_isr=min_isr,
        )
        if is_unclean:
            change.election = Election.UNCLEAN
        if unclean_shutdown != NO_LEADER:
            change.unclean_shutdown_replicas = (unclean_shutdown,)
        change.isr = [b for b in partition.isr if b not in (remove, unclean_shutdown)]
        record = change.build()
        if record is not None:
            records.append(record)
    return records


class _TopicValues:
    """What elections ask of the configs of topics: it is the same of all that set none."""

    def __init__(self, state: ControllerState) -> None:
        self._state = state
        self._of_others: tuple[bool, int] | None = None

    def of(self, topic: TopicImage) -> tuple[bool, int]:
        """(whether unclean elections are allowed, the effective `min.insync.replicas`)."""
        state = self._state
        if state.image.config(TOPIC, topic.name):
            found = self._read(topic.name)
        else:
            if self._of_others is None:
                self._of_others = self._read(topic.name)
            found = self._of_others
        is_unclean, min_isr = found
        first = topic.partitions.get(0)
        return is_unclean, min_isr if first is None else min(min_isr, len(first.replicas))

    def _read(self, topic_name: str) -> tuple[bool, int]:
        return self._state.unclean_election_enabled(topic_name), self._state.min_isr(topic_name)


def held(state: ControllerState, broker_id: int) -> list[PartitionKey]:
    """The partitions whose ISR a broker that goes has to leave. Without eligible leaders the last
    one in sync stays in the ISR, of a partition that nobody leads: that one is left already."""
    keys = state.index.in_isr(broker_id)
    if state.elr_enabled:
        return keys
    by_id, lacks_leader = state.image.topics.by_id, state.index.lacks_leader
    return [
        key
        for key in keys
        if not lacks_leader(key) or len(by_id[key[0]].partitions[key[1]].isr) > 1
    ]


def fence(state: ControllerState, broker_id: int) -> Records:
    """Records that fence a broker: first its partitions move, then it is fenced."""
    broker = state.image.brokers[broker_id]
    records = leader_and_isr_updates(state, held(state, broker_id), remove=broker_id)
    change = m.BrokerRegistrationChangeRecord(
        broker_id=broker_id, broker_epoch=broker.epoch, fenced=FENCE
    )
    records.append((change, 0))
    return records


def unfence(
    state: ControllerState, broker_id: int, partitions: Iterable[PartitionKey] | None = None
) -> Records:
    """Records that unfence a broker and give it those of `partitions`, by default of all, that
    have no leader."""
    broker = state.image.brokers[broker_id]
    change = m.BrokerRegistrationChangeRecord(
        broker_id=broker_id, broker_epoch=broker.epoch, fenced=UNFENCE
    )
    records: Records = [(change, 0)]
    leaderless = state.index.without_leader() if partitions is None else partitions
    records += leader_and_isr_updates(state, leaderless, add=broker_id)
    return records


def controlled_shutdown(
    state: ControllerState, broker_id: int, partitions: Iterable[PartitionKey] | None = None
) -> Records:
    """Records that take a broker out of the ISRs of `partitions`, by default of all, while it still
    serves."""
    broker = state.image.brokers[broker_id]
    records: Records = []
    if not broker.in_controlled_shutdown:
        change = m.BrokerRegistrationChangeRecord(
            broker_id=broker_id,
            broker_epoch=broker.epoch,
            in_controlled_shutdown=ENTER_CONTROLLED_SHUTDOWN,
        )
        records.append((change, 1))
    in_sync = state.index.in_isr(broker_id) if partitions is None else partitions
    records += leader_and_isr_updates(state, in_sync, remove=broker_id)
    return records


def held_before(state: ControllerState, broker_id: int, was_clean: bool) -> list[PartitionKey]:
    """The partitions that a new incarnation of a broker gives up, which the one before held.

    Without a clean stop it may have lost what it had acknowledged, so it leaves ISR and ELR.
    """
    if state.elr_enabled and not was_clean:
        return state.index.in_isr(broker_id) + state.index.in_elr(broker_id)
    return state.index.in_isr(broker_id)


def shut_down(
    state: ControllerState, broker_id: int, was_clean: bool, partitions: Iterable[PartitionKey]
) -> Records:
    """What a new incarnation of a broker does to these partitions."""
    if state.elr_enabled and not was_clean:
        return leader_and_isr_updates(state, partitions, unclean_shutdown=broker_id)
    return leader_and_isr_updates(state, partitions, remove=broker_id)


def unregister(state: ControllerState, broker_id: int, *, looks_at_elr: bool = True) -> Records:
    """Records that forget a broker. Where it is an eligible leader it stays one, and a partition
    without a leader that could have another one has had it since that one was there: Apache Kafka
    looks at them all the same, and so it is here where they are few."""
    broker = state.image.brokers[broker_id]
    records = leader_and_isr_updates(state, held(state, broker_id), remove=broker_id)
    if looks_at_elr:
        records += leader_and_isr_updates(state, state.index.in_elr(broker_id), remove=broker_id)
    records.append((m.UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=broker.epoch), 0))
    return records


def directories_offline(state: ControllerState, broker_id: int, offline: list[bytes]) -> Records:
    """Records for directories that a broker reports as failed."""
    broker = state.image.brokers[broker_id]
    lost = [directory for directory in broker.directories if directory in offline]
    if not lost:
        return []
    records: Records = []
    for directory in lost:
        partitions = state.index.in_directory(directory)
        records += leader_and_isr_updates(state, partitions, remove=broker_id)
    online = [directory for directory in broker.directories if directory not in offline]
    change = m.BrokerRegistrationChangeRecord(
        broker_id=broker_id, broker_epoch=broker.epoch, log_dirs=online
    )
    records.append((change, 2))
    return records


def directories_cordoned(
    state: ControllerState, broker_id: int, cordoned: list[bytes] | None
) -> Records:
    """A record when a broker's cordoned directories are others than before (KIP-1066)."""
    broker = state.image.brokers[broker_id]
    if cordoned is None:
        return []
    known = broker.cordoned_directories
    if known is not None and sorted(set(known)) == sorted(set(cordoned)):
        return []
    change = m.BrokerRegistrationChangeRecord(
        broker_id=broker_id, broker_epoch=broker.epoch, cordoned_log_dirs=list(cordoned)
    )
    return [(change, 3)]


def balance_leaders(state: ControllerState) -> Records:
    """Preferred leader elections for partitions that another replica leads."""
    records: Records = []
    for topic_id, index in sorted(state.index.imbalanced):
        if len(records) >= MAX_ELECTIONS_PER_ROUND:
            break
        topic = state.image.topics.by_id[topic_id]
        change = PartitionChange(state, topic.name, topic_id, index, topic.partitions[index])
        change.election = Election.PREFERRED
        record = change.build()
        if record is not None:
            records.append(record)
    return records


def elect_unclean_leaders(state: ControllerState) -> Records:
    """Unclean elections for leaderless partitions whose topics allow them."""
    records: Records = []
    for topic_id, index in state.index.without_leader():
        if len(records) >= MAX_ELECTIONS_PER_ROUND:
            break
        topic = state.image.topics.by_id[topic_id]
        if not state.unclean_election_enabled(topic.name):
            continue
        change = PartitionChange(state, topic.name, topic_id, index, topic.partitions[index])
        change.election = Election.UNCLEAN
        record = change.build()
        if record is not None:
            records.append(record)
    return records
