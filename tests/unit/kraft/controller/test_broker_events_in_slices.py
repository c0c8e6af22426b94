"""Events of brokers that are in many ISRs: what is done at once, what later, who hears what."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.kraft.controller import elections, sliced_elections
from kwire.kraft.controller.context import ControllerContext
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from tests.support.controllers import ControllerBench

PARTITIONS = 12


@pytest.fixture(autouse=True)
def short_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sliced_elections, "SLICE_PARTITIONS", 5)


class Begun:
    """A request that is worked off in slices."""

    def __init__(self, bench: ControllerBench, work: Any) -> None:
        self._bench, self._work = bench, work
        self.response: Any = None

    def go_on(self, slices: int = 1_000) -> Begun:
        for _ in range(slices):
            try:
                self._bench.append(next(self._work))
            except StopIteration as end:
                self.response = end.value
                break
        return self


def begin(bench: ControllerBench, broker_id: int, **changes: Any) -> Begun:
    fields: dict[str, Any] = {
        "broker_id": broker_id,
        "broker_epoch": bench.epochs[broker_id],
        "current_metadata_offset": len(bench.log),
        "cordoned_log_dirs": [],
    }
    request = m.BrokerHeartbeatRequest(**{**fields, **changes})
    work = bench.controller.slices(request, ControllerContext(api_version=2), bench.now_ms)
    assert work is not None
    return Begun(bench, work)


def made(leaders: list[int]) -> ControllerBench:
    bench = ControllerBench()
    bench.start(1, 2, 3)
    bench.create("t", dict.fromkeys(range(PARTITIONS), leaders))
    return bench


def led_by(bench: ControllerBench, broker_id: int) -> int:
    return sum(bench.partition("t", n).leader == broker_id for n in range(PARTITIONS))


def test_a_broker_that_is_unfenced_has_its_answer_before_all_of_its_partitions_move() -> None:
    """It sends nothing while it waits, and its session would end."""
    bench = made([2])
    bench.heartbeat(2, want_fence=True)
    assert led_by(bench, -1) == PARTITIONS
    begun = begin(bench, 2).go_on(2)
    assert begun.response is not None
    assert not begun.response.is_fenced
    assert led_by(bench, 2) == 5, "the first slice"
    (left,) = bench.controller.begun()
    Begun(bench, left).go_on()
    assert led_by(bench, 2) == PARTITIONS


def test_a_broker_that_shuts_down_has_its_answer_before_all_of_its_partitions_move() -> None:
    bench = made([2, 3])
    begun = begin(bench, 2, want_shut_down=True).go_on(2)
    assert begun.response is not None
    assert not begun.response.should_shut_down
    assert led_by(bench, 2) == PARTITIONS - 5
    for other in (1, 3):
        bench.heartbeat(other)
    assert not bench.heartbeat(2, want_shut_down=True).should_shut_down, "some are still to move"
    (left,) = bench.controller.begun()
    Begun(bench, left).go_on()
    assert led_by(bench, 2) == 0
    assert not bench.heartbeat(2, want_shut_down=True).should_shut_down, "others have not read it"
    for other in (1, 3):
        bench.heartbeat(other)
    assert bench.heartbeat(2, want_shut_down=True).should_shut_down


def test_what_a_lost_controller_has_begun_is_not_gone_on_with() -> None:
    bench = made([2, 3])
    begin(bench, 2, want_shut_down=True).go_on(2)
    bench.controller.deactivate()
    assert bench.controller.begun() == []


def test_a_heartbeat_in_slices_does_not_hide_a_later_one() -> None:
    """A follower that stops is in ISRs and leads nothing: its fencing takes several turns."""
    bench = made([3, 2])
    start_ms = bench.now_ms
    begun = begin(bench, 2, want_fence=True)
    begun.go_on(1)
    bench.now_ms = start_ms + 5_000
    heartbeats = bench.controller.state.heartbeats
    heartbeats.heard_of(2, bench.epochs[2], bench.now_ms)
    begun.go_on()
    assert bench.image.brokers[2].fenced
    assert dict(heartbeats.silences_ms(bench.now_ms))[2] == 0


def test_a_heartbeat_in_slices_is_heard_of_when_it_is_begun() -> None:
    bench = made([3, 2])
    bench.now_ms += 5_000
    begin(bench, 2, want_fence=True).go_on(1)
    assert not bench.image.brokers[2].fenced
    silent = dict(bench.controller.state.heartbeats.silences_ms(bench.now_ms))
    assert silent[2] == 0


@pytest.mark.parametrize("is_long", [False, True])
@pytest.mark.parametrize("is_allowed", [False, True])
def test_an_audit_log_is_told_of_a_heartbeat_once(is_long: bool, is_allowed: bool) -> None:
    bench = made([3, 2])
    told: list[tuple[int, int, str]] = []

    def authorize(operation: int, resource_type: int, name: str) -> bool:
        told.append((operation, resource_type, name))
        return is_allowed

    context = ControllerContext(
        api_version=2,
        next_offset=len(bench.log),
        authorize=authorize,
        authorize_quietly=lambda *right: is_allowed,
    )
    request = m.BrokerHeartbeatRequest(
        broker_id=2,
        broker_epoch=bench.epochs[2],
        current_metadata_offset=len(bench.log),
        want_fence=is_long,
    )
    work = bench.controller.slices(request, context, bench.now_ms)
    assert (work is not None) == (is_long and is_allowed)
    if work is None:
        _, response = bench.controller.handle(request, context, bench.now_ms)
        refused = int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        assert response.error_code == (0 if is_allowed else refused)
    assert len(told) == 1


def test_the_last_slice_does_not_decide_anew_what_nobody_else_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without eligible leaders the last one in sync stays in the ISR, of a partition that nobody
    leads: that is what the fencing leaves, of all such partitions."""
    bench = ControllerBench(features={"metadata.version": 25})
    bench.start(1, 2, 3)
    bench.create("t", {number: [2] for number in range(PARTITIONS)})
    decided: list[int] = []
    original = elections.PartitionChange.build

    def build(change: Any) -> Any:
        decided[-1] += 1
        return original(change)

    monkeypatch.setattr(elections.PartitionChange, "build", build)
    bench.now_ms += 60_000
    bench.controller.state.heartbeats.begin_fencing(2)
    for records in slices(bench, decided):
        bench.append(records)
    assert bench.image.brokers[2].fenced
    assert led_by(bench, -1) == PARTITIONS
    assert {bench.partition("t", n).isr for n in range(PARTITIONS)} == {(2,)}
    assert max(decided) <= 5


def test_an_eligible_leader_of_many_partitions_is_forgotten_in_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = made([2])
    bench.heartbeat(2, want_fence=True)
    assert bench.partition("t").elr == (2,)
    decided: list[object] = []
    monkeypatch.setattr(elections.PartitionChange, "build", decided.append)
    request = m.UnregisterBrokerRequest(broker_id=2)
    work = bench.controller.slices(request, ControllerContext(), bench.now_ms)
    assert work is not None
    assert Begun(bench, work).go_on().response.error_code == 0
    assert 2 not in bench.image.brokers
    assert len(decided) <= 5


def begin_registration(bench: ControllerBench, life: int, **changes: Any) -> Begun:
    request = bench.registration(2, life, **changes)
    work = bench.controller.slices(request, ControllerContext(api_version=4), bench.now_ms)
    assert work is not None
    return Begun(bench, work)


def test_a_broker_that_was_killed_gives_its_partitions_up_in_turns_before_it_is_registered() -> (
    None
):
    bench = made([2])
    bench.now_ms += 60_000
    before = bench.image.brokers[2]
    begun = begin_registration(bench, life=2)
    begun.go_on(2)
    assert led_by(bench, 2) == PARTITIONS - 10
    assert bench.image.brokers[2] == before, "the life before, until the last slice"
    begun.go_on()
    assert begun.response.error_code == 0
    assert begun.response.broker_epoch == bench.image.brokers[2].epoch > before.epoch
    assert led_by(bench, -1) == PARTITIONS
    assert not bench.controller.index.in_isr(2)
    assert not bench.controller.index.in_elr(2)
    assert bench.image.brokers[2].fenced


def test_a_registration_also_takes_what_has_come_back_meanwhile() -> None:
    bench = made([3, 2])
    bench.now_ms += 60_000
    begun = begin_registration(bench, life=2)
    begun.go_on(1)
    gone = [n for n in range(PARTITIONS) if 2 not in bench.partition("t", n).isr]
    assert len(gone) == 5
    assert bench.alter_isr("t", gone[0], [3, 2]).error_code == 0
    begun.go_on()
    assert begun.response.error_code == 0
    assert not bench.controller.index.in_isr(2)


def test_a_registration_that_was_asked_for_twice_is_one() -> None:
    bench = made([2])
    bench.now_ms += 60_000
    first, second = begin_registration(bench, life=2), begin_registration(bench, life=2)
    first.go_on(1)
    second.go_on(1)
    first.go_on()
    second.go_on()
    assert first.response.broker_epoch == second.response.broker_epoch
    assert second.response.error_code == 0


def test_a_life_that_has_registered_meanwhile_stays() -> None:
    bench = made([2])
    bench.now_ms += 60_000
    earlier, later = begin_registration(bench, life=2), begin_registration(bench, life=3)
    earlier.go_on(1)
    later.go_on()
    assert later.response.error_code == 0
    registered = bench.image.brokers[2]
    earlier.go_on()
    assert earlier.response.error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    assert bench.image.brokers[2] == registered


def test_a_registration_that_is_refused_moves_nothing() -> None:
    """Its broker is alive: another one has taken its id."""
    bench = made([2])
    bench.heartbeat(2)
    begun = begin_registration(bench, life=2).go_on()
    assert begun.response.error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    assert led_by(bench, 2) == PARTITIONS


def slices(bench: ControllerBench, decided: list[int]) -> Any:
    work = sliced_elections.fencing(bench.controller.state, 2, bench.epochs[2])
    while True:
        decided.append(0)
        try:
            records = next(work)
        except StopIteration:
            return
        yield records
