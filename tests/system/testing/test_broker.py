"""`kwire.testing.Broker`, in a thread and as a process: its life, what tests ask of it."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from kwire.network import loop as loops_of_nodes
from kwire.testing import Broker, BrokerFailed, Cluster, KafkaContainer, Topic, until, wait_until
from kwire.testing.cluster.ports import free_ports
from tests.support.frames import WireError
from tests.support.wire import WireClient, batch_of, produce_request, produce_values

WAIT_S = 60.0


@pytest.fixture(params=[False, True], ids=["thread", "process"])
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    with Broker(process=request.param) as broker:
        yield broker


def test_what_was_acknowledged_is_there_after_a_kill_and_after_a_restart(broker: Broker) -> None:
    address, topic = broker.bootstrap, broker.topic("orders")
    topic.send("first", key="k", headers={"h": "1"})
    broker.kill()
    assert not broker.is_running
    broker.start()
    assert broker.bootstrap == address
    topic.send_all(["second", ("k", "third")])
    broker.restart()
    topic.assert_records({"value": "first", "key": "k", "headers": {"h": "1"}}, "second", "third")
    assert "no clean shutdown was noted" in broker.log_text()


def test_a_paused_broker_answers_once_it_is_resumed(broker: Broker) -> None:
    topic = broker.topic("orders")
    topic.send("a")
    broker.pause()
    found: list[bytes | None] = []
    reading = threading.Thread(target=lambda: found.extend(topic.values()))
    reading.start()
    assert not found
    broker.resume()
    reading.join()
    assert found == [b"a"]


def test_a_paused_broker_can_be_killed(broker: Broker) -> None:
    broker.topic("orders").send("a")
    broker.pause()
    broker.kill()
    assert broker.start().topic("orders").values() == [b"a"]


def test_a_paused_broker_that_is_killed_does_nothing_of_what_it_was_asked_meanwhile(
    broker: Broker,
) -> None:
    topic = broker.topic("orders").create()
    with WireClient(broker.bootstrap) as client:
        produce_values(client, "orders", 0, [b"before"])
        broker.pause()
        client.send(produce_request("orders", {0: batch_of([b"after"])}), 9)
        broker.kill()
        with pytest.raises(WireError):
            client.receive()
    broker.start()
    assert topic.values() == [b"before"]


def test_a_group_is_followed_until_it_has_read_everything(broker: Broker) -> None:
    topic, group = broker.topic("orders"), broker.group("g")
    topic.create(partitions=2).send_all([("a", "1"), ("b", "2"), ("c", "3")])
    assert (group.state, group.lag(), group.committed()) == ("Dead", 3, {})
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["orders"])
    seen = [consumer.poll(WAIT_S) for _ in range(3)]
    assert all(message is not None and message.error() is None for message in seen)
    assert group.state == "Stable"
    consumer.commit(asynchronous=False)
    wait_until(lambda: group.lag() == 0, timeout_s=WAIT_S)
    consumer.close()
    wait_until(lambda: group.state == "Empty", timeout_s=WAIT_S)
    group.commit({("orders", 0): 0, ("orders", 1): 0})
    assert group.lag("orders") == 3
    group.delete()
    assert group.state == "Dead"


def test_what_does_not_exist_is_empty_and_is_not_created_by_looking(broker: Broker) -> None:
    assert broker.topic("nothing").records() == []
    assert broker.group("nobody").lag() == 0
    assert broker.topics() == []


def test_what_is_no_text_is_told_with_what_is_accepted(broker: Broker) -> None:
    with pytest.raises(TypeError, match="5: keys, values and headers are str, bytes or None"):
        broker.topic("numbers").send(5)  # type: ignore[arg-type]
    assert broker.topics() == []


def _make_in_the_last_turn(loop: asyncio.AbstractEventLoop, coroutine: object) -> None:
    loop.stop()
    loop.call_soon(loop.create_task, coroutine)


def test_a_kill_in_the_middle_of_something_leaves_no_warning() -> None:
    """Of a task that was made in the last turn of the loop: its coroutine has never run."""

    async def never() -> None:
        raise AssertionError("it runs")

    with warnings.catch_warnings(record=True) as warned, Broker() as broker:
        warnings.simplefilter("always")
        life = broker._runner._life  # type: ignore[attr-defined]
        life._loop.call_soon_threadsafe(_make_in_the_last_turn, life._loop, never())
        life._thread.join()
        broker.kill()
        del life
        gc.collect()
    assert [str(one.message) for one in warned if one.category is RuntimeWarning] == []


async def _in_a_loop() -> None:
    async with Broker() as broker:
        topic = broker.topic("orders")
        topic.send("a")
        found = await until(topic.values, "records", timeout_s=WAIT_S)
        assert found == [b"a"]


def test_it_is_a_context_manager_of_both_kinds() -> None:
    asyncio.run(_in_a_loop())


@pytest.mark.parametrize("make", [Broker, lambda: Cluster(1)], ids=["broker", "cluster"])
def test_who_is_cancelled_while_a_broker_starts_leaves_none(make: object) -> None:
    async def cancelled() -> None:
        async def enter() -> None:
            async with brokers:
                raise AssertionError("it was cancelled before")

        brokers = make()  # type: ignore[operator]
        entering = asyncio.create_task(enter())
        await asyncio.sleep(0)
        entering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await entering
        with pytest.raises(BrokerFailed, match="make another one"):
            brokers.start()

    before = threading.active_count()
    asyncio.run(cancelled())
    assert threading.active_count() == before


def test_a_config_that_cannot_be_right_is_told_in_one_line() -> None:
    with pytest.raises(BrokerFailed, match=r"num\.partitions"):
        Broker(config={"num.partitions": "many"}).start()
    with pytest.raises(TypeError, match=r"'num\.partitions': None is a NoneType; accepted"):
        Broker(config={"num.partitions": None})  # type: ignore[dict-item]


def test_a_port_in_use_is_told_in_one_line() -> None:
    port = free_ports(1)[0]
    with Broker(port=port), pytest.raises(BrokerFailed, match=str(port)):
        Broker(port=port).start()


def test_a_directory_of_the_user_stays(tmp_path: Path) -> None:
    with Broker(directory=tmp_path) as broker:
        broker.topic("orders").send("a")
    with Broker(directory=tmp_path) as broker:
        assert broker.topic("orders").values() == [b"a"]


def test_two_brokers_at_the_same_time_know_nothing_of_each_other() -> None:
    with Broker() as one, Broker() as other:
        one.topic("orders").send("a")
        other.topic("orders").send("b")
        assert (one.topic("orders").values(), other.topic("orders").values()) == ([b"a"], [b"b"])


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("end", [Broker.kill, Broker.stop])
def test_nothing_is_left_of_a_broker_in_a_thread(end: object) -> None:
    with Broker() as broker:  # imports, and what is made once
        broker.topic("orders").send("a")
    gc.collect()  # what others have left
    threads, before = set(threading.enumerate()), _descriptors()
    with Broker() as broker:
        directory = broker.directory
        _use(broker.topic("orders"))
        end(broker)  # type: ignore[operator]
        broker.start()
        _use(broker.topic("orders"))
    assert set(threading.enumerate()) <= threads
    assert _descriptors() <= before
    assert not directory.exists()


async def _work() -> None:
    pass


def test_nothing_is_said_of_what_a_killed_broker_had_not_begun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`-W error` made a failure of it in whichever test came next."""
    loops: list[asyncio.AbstractEventLoop] = []

    def new_event_loop() -> asyncio.AbstractEventLoop:
        loops.append(original())
        return loops[-1]

    original = loops_of_nodes.new_event_loop
    monkeypatch.setattr("kwire.testing.brokers.thread_runner.new_event_loop", new_event_loop)
    with warnings.catch_warnings(record=True) as told, Broker() as broker:
        warnings.simplefilter("always")
        broker.pause()
        loop = loops.pop()

        def begin() -> None:  # asyncio's loop stops before the one, uvloop before the other
            loop.create_task(_work())
            loop.call_soon(lambda: loop.create_task(_work()))

        loop.call_soon_threadsafe(begin)
        broker.kill()
        gc.collect()
    assert [str(one.message) for one in told if one.category is RuntimeWarning] == []


def _use(topic: Topic) -> None:
    topic.send("a")
    assert topic.values()


def test_a_test_for_testcontainers_runs_unchanged() -> None:
    container = KafkaContainer("confluentinc/cp-kafka:7.9.0").with_kraft()
    with container.with_env("KAFKA_NUM_PARTITIONS", "4").with_env("OTHER", "x") as kafka:
        host, port = kafka.get_container_host_ip(), kafka.get_exposed_port(9093)
        assert kafka.get_bootstrap_server() == f"{host}:{port}"
        with pytest.raises(BrokerFailed):
            Broker(port=port).start()
        assert b"broker 1 is unfenced" in kafka.get_logs()[1]


def test_a_container_that_has_started_stays_the_same_one() -> None:
    container = KafkaContainer().with_bind_ports("9093", str(free_ports(1)[0])).start()
    address = container.get_bootstrap_server()
    with container as entered:
        assert entered.start().get_bootstrap_server() == address
    with pytest.raises(ValueError, match="host='9093/tcp': accepted are 0 to 65535"):
        KafkaContainer().with_bind_ports(9093, "9093/tcp")


def test_a_topic_has_as_many_partitions_as_the_broker_gives_by_default() -> None:
    with Broker(config={"num.partitions": 3}) as broker:
        assert broker.topic("orders").create().partitions == 3
        assert broker.topic("small").create(partitions=1).partitions == 1
