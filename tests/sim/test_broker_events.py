"""What a broker's event does to its partitions in slices keeps every promise; faults are found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from kwire.kraft.controller import elections, sliced_elections
from kwire.kraft.controller.heartbeats import Heartbeats
from kwire.kraft.controller.requests import brokers
from kwire.kraft.controller.results import Records
from kwire.kraft.controller.state import ControllerState
from kwire.protocol import messages as m
from tests.sim.broker_events import KINDS, Fault, SlicedBrokers
from tests.support.effort import seeds

SEEDS_OF_A_MUTATION = 60


def test_events_of_brokers_in_slices_keep_every_promise() -> None:
    between: Counter[str] = Counter()
    for seed in seeds(12):
        history = SlicedBrokers(seed)
        history.run()
        between += history.between
    assert set(KINDS) <= set(between), between


# -- faults that have to be found


def fences_without_a_last_look(patch: pytest.MonkeyPatch) -> None:
    """The last slice takes the partition that was the last one when the fencing began."""
    original = sliced_elections.elections.leader_and_isr_updates

    def fence(state: ControllerState, broker_id: int) -> Records:
        keys = state.index.in_isr(broker_id)
        broker = state.image.brokers[broker_id]
        change = m.BrokerRegistrationChangeRecord(
            broker_id=broker_id, broker_epoch=broker.epoch, fenced=1
        )
        return [*original(state, keys[-1:], remove=broker_id), (change, 0)]

    patch.setattr(sliced_elections.elections, "fence", fence)


def fences_the_next_life(patch: pytest.MonkeyPatch) -> None:
    """A broker that has registered anew is fenced for the session of its life before."""

    def is_unfenced(state: ControllerState, broker_id: int, epoch: int) -> bool:
        broker = state.image.brokers.get(broker_id)
        return broker is not None

    patch.setattr(sliced_elections, "_is_unfenced", is_unfenced)


def unfences_what_is_being_fenced(patch: pytest.MonkeyPatch) -> None:
    """A heartbeat counts while a fencing is under way."""
    patch.setattr(Heartbeats, "begin_fencing", lambda self, broker_id: None)


def elects_nobody_for_a_lost_controller(patch: pytest.MonkeyPatch) -> None:
    """What the controller before had not done is not looked for."""
    patch.setattr(sliced_elections, "electing", lambda state, keys: iter(()))


def keeps_a_partition_without_a_leader(patch: pytest.MonkeyPatch) -> None:
    """An unfencing ends with its first slice."""
    patch.setattr(sliced_elections, "unfencing", lambda state, keys: iter(()))


def registers_over_a_later_life(patch: pytest.MonkeyPatch) -> None:
    """A registration whose broker has started anew meanwhile ends as it was begun."""
    patch.setattr(brokers, "_is_registered", lambda state, request, before: False)


def registers_without_a_last_look(patch: pytest.MonkeyPatch) -> None:
    """The last slice takes the partition that was the last one."""
    original = elections.shut_down

    def shut_down(state: ControllerState, broker_id: int, was_clean: bool, keys: Any) -> Records:
        return original(state, broker_id, was_clean, list(keys)[-1:])

    patch.setattr(elections, "shut_down", shut_down)


def registers_an_eligible_leader(patch: pytest.MonkeyPatch) -> None:
    """What the life before was only eligible to lead it keeps."""

    def held_before(state: ControllerState, broker_id: int, was_clean: bool) -> Any:
        return state.index.in_isr(broker_id)

    patch.setattr(elections, "held_before", held_before)


MUTATIONS = (
    registers_over_a_later_life,
    registers_without_a_last_look,
    registers_an_eligible_leader,
    fences_without_a_last_look,
    fences_the_next_life,
    unfences_what_is_being_fenced,
    elects_nobody_for_a_lost_controller,
    keeps_a_partition_without_a_leader,
)


def _search() -> None:
    for seed in range(SEEDS_OF_A_MUTATION):
        SlicedBrokers(seed).run()


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_a_mutation_is_found(
    mutation: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutation(monkeypatch)
    with pytest.raises(Fault):
        _search()
