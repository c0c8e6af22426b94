"""Registration, heartbeats, fencing, controlled shutdown (KIP-631), by a scripted controller."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.membership.lifecycle import BrokerLifecycle, State
from kwire.membership.producer_ids import ProducerIds
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.testing.simulation import Simulation

REGISTRATION, HEARTBEAT = 62, 63


class World:
    """A broker and what its controller says; `say(key, response or error)` scripts answers."""

    def __init__(self) -> None:
        self.simulation = Simulation(3)
        self.host = self.simulation.host("broker")
        self.asked: list[Any] = []
        self.script: dict[int, list[Any]] = {REGISTRATION: [], HEARTBEAT: []}
        self.offset = 0
        self.fatal: list[str] = []
        self.lifecycle = BrokerLifecycle(
            self.host.loop,
            1,
            self.ask,
            lambda: m.BrokerRegistrationRequest(broker_id=1),
            lambda: self.offset,
            2000,
            self.fatal.append,
        )

    def ask(self, api_key: int, request: Any) -> Pending[Any]:
        self.asked.append(request)
        answers = self.script[api_key]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            return Pending.failed(answer)
        return Pending.completed(answer)

    def requests(self, name: str) -> list[Any]:
        return [request for request in self.asked if name == request.NAME]

    def wait(self, state: State) -> None:
        self.simulation.run_until(lambda: self.lifecycle.state is state, limit_s=60)


def registered(epoch: int) -> Any:
    return m.BrokerRegistrationResponse(broker_epoch=epoch)


def heard(fenced: bool = False, shut_down: bool = False, code: int = 0) -> Any:
    return m.BrokerHeartbeatResponse(
        error_code=code, is_fenced=fenced, should_shut_down=shut_down, is_caught_up=True
    )


def test_it_is_unfenced_once_its_own_registration_is_published() -> None:
    world = World()
    world.script[REGISTRATION] = [registered(10)]
    world.script[HEARTBEAT] = [heard(fenced=True)]
    world.lifecycle.start()
    world.simulation.run_for(1)
    assert world.lifecycle.state is State.FENCED
    assert all(request.want_fence for request in world.requests("BrokerHeartbeatRequest"))
    world.offset = 10
    world.script[HEARTBEAT] = [heard()]
    world.lifecycle.image_published()
    assert world.lifecycle.state is State.RUNNING
    assert world.lifecycle.started.done
    last = world.requests("BrokerHeartbeatRequest")[-1]
    assert (last.want_fence, last.current_metadata_offset, last.broker_epoch) == (False, 10, 10)


def test_heartbeats_come_at_their_interval() -> None:
    world = World()
    world.script[REGISTRATION] = [registered(0)]
    world.script[HEARTBEAT] = [heard()]
    world.lifecycle.start()
    world.simulation.run_for(20.5)
    assert len(world.requests("BrokerHeartbeatRequest")) == 11


@pytest.mark.parametrize(
    "refusal",
    [
        KafkaError(ErrorCode.NOT_CONTROLLER),
        KafkaError(ErrorCode.NETWORK_EXCEPTION),
        m.BrokerRegistrationResponse(error_code=int(ErrorCode.DUPLICATE_BROKER_REGISTRATION)),
        m.BrokerRegistrationResponse(error_code=int(ErrorCode.NOT_CONTROLLER)),
    ],
)
def test_it_keeps_trying_to_register(refusal: Any) -> None:
    world = World()
    world.script[REGISTRATION] = [refusal, refusal, refusal, registered(3)]
    world.script[HEARTBEAT] = [heard()]
    world.offset = 3
    world.lifecycle.start()
    world.wait(State.RUNNING)
    assert len(world.requests("BrokerRegistrationRequest")) == 4
    assert world.fatal == []


@pytest.mark.parametrize(
    "code", [ErrorCode.INCONSISTENT_CLUSTER_ID, ErrorCode.INVALID_REGISTRATION]
)
def test_a_registration_that_can_never_succeed_is_fatal(code: ErrorCode) -> None:
    world = World()
    world.script[REGISTRATION] = [m.BrokerRegistrationResponse(error_code=int(code))]
    world.lifecycle.start()
    assert len(world.fatal) == 1
    assert code.name in world.fatal[0]


@pytest.mark.parametrize("code", [ErrorCode.STALE_BROKER_EPOCH, ErrorCode.BROKER_ID_NOT_REGISTERED])
def test_a_broker_whose_epoch_is_stale_registers_anew(code: ErrorCode) -> None:
    world = World()
    world.script[REGISTRATION] = [registered(3), registered(9)]
    world.script[HEARTBEAT] = [heard(), heard(code=int(code)), heard()]
    world.offset = 20
    world.lifecycle.start()
    world.simulation.run_for(10)
    assert world.lifecycle.epoch == 9
    assert world.lifecycle.state is State.RUNNING


def test_a_fenced_broker_comes_back() -> None:
    world = World()
    world.script[REGISTRATION] = [registered(0)]
    world.script[HEARTBEAT] = [heard(), heard(fenced=True), heard()]
    world.lifecycle.start()
    world.wait(State.RUNNING)
    world.wait(State.FENCED)
    world.wait(State.RUNNING)


def test_controlled_shutdown_waits_for_the_controller() -> None:
    world = World()
    world.script[REGISTRATION] = [registered(0)]
    world.script[HEARTBEAT] = [heard(), heard(), heard(), heard(shut_down=True)]
    world.lifecycle.start()
    world.wait(State.RUNNING)
    stopped = world.lifecycle.begin_shutdown()
    assert not stopped.done
    world.wait(State.STOPPED)
    assert stopped.done
    assert world.requests("BrokerHeartbeatRequest")[-1].want_shut_down
    count = len(world.asked)
    world.simulation.run_for(60)
    assert len(world.asked) == count, "no more heartbeats"


def test_a_broker_that_never_registered_stops_at_once() -> None:
    world = World()
    world.script[REGISTRATION] = [KafkaError(ErrorCode.NOT_CONTROLLER)]
    world.lifecycle.start()
    assert world.lifecycle.begin_shutdown().done


# -- log directories


def beats(world: World) -> list[Any]:
    return world.requests("BrokerHeartbeatRequest")


def test_an_offline_directory_is_told_before_the_broker_asks_to_serve() -> None:
    """Of a broker that was unfenced by the heartbeat that told of the directory, the controller
    let the partitions in that directory be led by it, and nobody could use them."""
    world = World()
    world.script[REGISTRATION] = [registered(10), registered(30)]
    world.script[HEARTBEAT] = [heard(fenced=True), heard(fenced=True), heard()]
    world.lifecycle.start()
    world.lifecycle.directories_failed([b"d" * 16])
    world.offset = 10
    world.lifecycle.image_published()
    world.wait(State.RUNNING)
    told = [request for request in beats(world) if request.offline_log_dirs]
    assert [request.want_fence for request in told] == [True, False]
    # It is registered anew, with all of its directories: it begins as before.
    world.offset = 30
    stale = heard(code=int(ErrorCode.STALE_BROKER_EPOCH))
    world.script[HEARTBEAT] = [stale, heard(fenced=True), heard()]
    world.simulation.run_until(lambda: world.lifecycle.epoch == 30, limit_s=60)
    world.wait(State.RUNNING)
    told = [request for request in beats(world) if request.broker_epoch == 30]
    assert [(r.want_fence, r.offline_log_dirs) for r in told[:2]] == [
        (True, [b"d" * 16]),
        (False, [b"d" * 16]),
    ]


@pytest.mark.parametrize("hears_again_after_s", [29, 31])
def test_a_directory_of_which_no_controller_hears_in_time_ends_the_broker(
    hears_again_after_s: int,
) -> None:
    """`log.dir.failure.timeout.ms`: nobody else can lead what is in it until it is told."""
    world = World()
    world.script[REGISTRATION] = [registered(0)]
    world.script[HEARTBEAT] = [heard()]
    world.lifecycle.start()
    world.wait(State.RUNNING)
    world.script[HEARTBEAT] = [KafkaError(ErrorCode.NETWORK_EXCEPTION)]
    world.lifecycle.directories_failed([b"d" * 16])
    world.simulation.run_for(hears_again_after_s)
    world.script[HEARTBEAT] = [heard()]
    world.simulation.run_for(60)
    if hears_again_after_s < 30:
        assert world.fatal == []
    else:
        [reason] = world.fatal
        assert "log.dir.failure.timeout.ms" in reason
        assert "30000 ms" in reason


def test_a_directory_that_failed_before_the_start_or_at_a_stop_ends_nothing() -> None:
    world = World()
    world.script[REGISTRATION] = [KafkaError(ErrorCode.NETWORK_EXCEPTION)]
    world.lifecycle.directories_failed([b"d" * 16])
    world.lifecycle.start()
    world.simulation.run_for(60)
    world.script[REGISTRATION] = [registered(0)]
    world.script[HEARTBEAT] = [heard()]
    world.wait(State.RUNNING)
    world.script[HEARTBEAT] = [KafkaError(ErrorCode.NETWORK_EXCEPTION)]
    world.lifecycle.directories_failed([b"d" * 16, b"e" * 16])
    world.lifecycle.begin_shutdown()
    world.simulation.run_for(60)
    assert world.fatal == []


def test_cordoned_directories_are_told_from_catching_up_on_and_changes_at_once() -> None:
    world = World()
    cordoned: list[bytes] | None = None
    world.lifecycle._cordoned = lambda: cordoned
    world.script[REGISTRATION] = [registered(10)]
    world.script[HEARTBEAT] = [heard(fenced=True)]
    cordoned = [b"a" * 16]
    world.lifecycle.start()
    assert beats(world)[-1].cordoned_log_dirs is None, "no controller may know it before"
    world.offset = 10
    world.script[HEARTBEAT] = [heard()]
    world.lifecycle.image_published()
    assert beats(world)[-1].cordoned_log_dirs == [b"a" * 16]
    count = len(beats(world))
    cordoned = [b"b" * 16]
    world.lifecycle.directories_changed()
    assert [request.cordoned_log_dirs for request in beats(world)[count:]] == [[b"b" * 16]]
    cordoned = None
    world.simulation.run_for(2.5)
    assert beats(world)[-1].cordoned_log_dirs is None


def test_what_changes_while_a_heartbeat_is_under_way_follows_its_answer() -> None:
    world = World()
    world.script[REGISTRATION] = [registered(0)]
    world.script[HEARTBEAT] = [heard()]
    world.lifecycle.start()
    world.wait(State.RUNNING)
    pending: Pending[Any] = Pending()
    world.lifecycle._ask = lambda key, request: world.asked.append(request) or pending  # type: ignore[func-returns-value]
    world.simulation.run_until(lambda: world.lifecycle._asking is not None, limit_s=5)
    world.lifecycle.directories_changed()
    count = len(beats(world))
    world.lifecycle._ask = world.ask
    pending.complete(heard())
    world.simulation.run_for(0.1)  # the interval is two seconds
    assert len(beats(world)) == count + 1


# -- producer ids


class Blocks:
    """Hands out blocks of three, each when the test says so."""

    def __init__(self) -> None:
        self.pendings: list[Pending[Any]] = []
        self.next = 100

    def ask(self, api_key: int, request: Any) -> Pending[Any]:
        assert (request.broker_id, request.broker_epoch) == (1, 42)
        self.pendings.append(Pending())
        return self.pendings[-1]

    def grant(self) -> None:
        response = m.AllocateProducerIdsResponse(producer_id_start=self.next, producer_id_len=3)
        self.next += 3
        self.pendings.pop(0).complete(response)


def test_producer_ids_are_given_once_and_in_order() -> None:
    blocks = Blocks()
    ids = ProducerIds(1, lambda: 42, blocks.ask)
    taken = [ids.take() for _ in range(7)]
    assert len(blocks.pendings) == 1, "one question at a time"
    for _ in range(3):
        blocks.grant()
    assert [pending.result() for pending in taken] == list(range(100, 107))
    assert ids.take().result() == 107
    assert ids.take().result() == 108
    assert not ids.take().done


def test_without_a_block_the_client_is_told_to_retry() -> None:
    blocks = Blocks()
    ids = ProducerIds(1, lambda: 42, blocks.ask)
    taken = [ids.take(), ids.take()]
    blocks.pendings.pop(0).complete(m.AllocateProducerIdsResponse(error_code=41))
    for pending in taken:
        error = pending.error()
        assert isinstance(error, KafkaError)
        assert error.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    again = ids.take()
    blocks.grant()
    assert again.result() == 100
