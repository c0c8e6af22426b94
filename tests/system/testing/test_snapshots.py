"""A broker's state: kept, come back to, gone on from twice, and never changed by what goes on."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from kwire.testing import Broker, BrokerFailed, Snapshot, Topic, wait_until

WAIT_S = 60.0
SMALL = {"segment.bytes": 1024 * 1024, "segment.index.bytes": 4096}


@pytest.fixture(params=[False, True], ids=["thread", "process"])
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    with Broker(process=request.param) as broker:
        yield broker


def commit(broker: Broker, group: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
    consumer.commit(offsets=[TopicPartition("orders", 0, offset)], asynchronous=False)
    consumer.close()


def committed(broker: Broker, group: str) -> int:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
    found = consumer.committed([TopicPartition("orders", 0)], timeout=WAIT_S)
    consumer.close()
    return int(found[0].offset)


def test_a_state_that_was_kept_comes_back_as_often_as_one_likes(broker: Broker) -> None:
    address, orders = broker.bootstrap, broker.topic("orders")
    orders.send_all(["a", "b"])
    commit(broker, "g", 1)
    taken = broker.snapshot()
    for number in range(2):
        orders.send_all(["c", "d"])
        broker.topic(f"other-{number}").send("x")
        commit(broker, "g", 2)
        assert values(orders) == ["a", "b", "c", "d"]
        broker.restore(taken)
        assert broker.bootstrap == address
        assert values(orders) == ["a", "b"]
        assert broker.topics() == ["orders"]
        assert committed(broker, "g") == 1
    broker.stop()
    broker.restore(taken)
    assert values(orders) == ["a", "b"]


def test_two_futures_of_one_state(broker: Broker) -> None:
    orders = broker.topic("orders")
    orders.send("past")
    with broker.fork() as other:
        assert other.bootstrap != broker.bootstrap
        orders.send("here")
        other.topic("orders").send("there")
        other.topic("orders").send("and later")
        assert values(orders) == ["past", "here"]
        assert values(other.topic("orders")) == ["past", "there", "and later"]
        with other.fork() as third:
            assert values(third.topic("orders")) == ["past", "there", "and later"]
    assert values(orders) == ["past", "here"]


def test_reset_leaves_nothing_but_the_address(broker: Broker) -> None:
    address = broker.bootstrap
    broker.topic("orders").send("a")
    broker.reset()
    assert broker.bootstrap == address
    assert broker.topics() == []
    broker.topic("orders").send("b")
    assert values(broker.topic("orders")) == ["b"]


def test_transactions_that_were_complete_are_and_producers_go_on(broker: Broker) -> None:
    def transact(value: str) -> None:
        producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "tx"})
        producer.init_transactions(WAIT_S)
        producer.begin_transaction()
        producer.produce("orders", value)
        producer.commit_transaction(WAIT_S)

    transact("a")
    taken = broker.snapshot()
    transact("b")
    broker.restore(taken)
    transact("c")
    found = [record.value for record in broker.topic("orders").records(committed_only=True)]
    assert found == [b"a", b"c"]


def values(topic: Topic) -> list[str]:
    return [(value or b"").decode() for value in topic.values()]


def digest(directory: Path) -> dict[str, str]:
    """Every file below and what is in it."""
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def fill(topic: Topic, records: int) -> None:
    """So many records of 10 KB with one key, in batches of 50."""
    for _ in range(records // 50):
        topic.send_all([("key", "x" * 10_000)] * 50)


def test_nothing_that_a_broker_does_changes_what_was_kept() -> None:
    """Appends, deleted records, rolled and compacted logs, clean and unclean ends: the snapshot,
    which shares its files with the broker by hard links, has the same bytes after all of it."""
    config = {"log.cleaner.backoff.ms": 100, "log.retention.check.interval.ms": 100}
    with Broker(config=config) as broker:
        orders, keyed = broker.topic("orders"), broker.topic("keyed")
        orders.create(config=SMALL)
        compacted = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": 0.01}
        keyed.create(config={**SMALL, **compacted})
        for topic in (orders, keyed):
            fill(topic, 250)  # three segments
        taken = broker.snapshot()
        before = digest(taken.directory)
        shared = [path for path in taken.directory.rglob("*.log") if path.stat().st_nlink > 1]
        assert shared
        for _ in range(2):
            for topic in (orders, keyed):
                fill(topic, 150)
            admin = AdminClient({"bootstrap.servers": broker.bootstrap})
            deleted = admin.delete_records([TopicPartition("orders", 0, 260)])
            for future in deleted.values():
                future.result(WAIT_S)
            wait_until(lambda: len(keyed.records()) < 250, WAIT_S)
            assert digest(taken.directory) == before
            broker.kill()
            broker.start()
            orders.send("after a kill")
            broker.restart()
            assert digest(taken.directory) == before
            broker.restore(taken)
            assert len(orders.records()) == 250
            assert digest(taken.directory) == before


def test_what_is_truncated_after_a_restore_is_not_truncated_in_the_snapshot() -> None:
    """A torn tail, as a machine leaves it: recovery cuts it off in place."""
    with Broker() as broker:
        broker.topic("orders").send_all(["a", "b"])
        broker.kill()
        log = broker.directory / "orders-0" / f"{0:020}.log"
        with open(log, "ab") as file:
            file.write(b"torn" * 100)
        taken = broker.snapshot()
        before = digest(taken.directory)
        broker.restore(taken)
        assert values(broker.topic("orders")) == ["a", "b"]
        broker.topic("orders").send("c")
        assert digest(taken.directory) == before
        assert broker.directory.joinpath("orders-0").exists()


def test_a_loss_of_power_takes_nothing_from_a_snapshot_of_what_was_not_synced() -> None:
    with Broker() as broker:
        orders = broker.topic("orders")
        orders.send("a")
        taken = broker.snapshot()
        before = digest(taken.directory)
        orders.send("b")
        broker.lose_power()
        assert digest(taken.directory) == before
        broker.start()
        assert values(orders) == []
        broker.restore(taken)
        assert values(orders) == ["a"]


def test_a_snapshot_ends_with_its_context_and_with_its_broker() -> None:
    with Broker() as broker:
        with broker.snapshot() as taken:
            assert taken.directory.is_dir()
        assert not taken.directory.exists()
        other = broker.snapshot()
    assert not other.directory.exists()


def one_line(error: pytest.ExceptionInfo[BaseException]) -> str:
    text = str(error.value)
    assert "\n" not in text
    return text


def test_what_cannot_be_restored_is_told_in_one_line_and_nothing_has_happened() -> None:
    with Broker() as broker, Broker(config={"num.partitions": 3}) as foreign:
        broker.topic("orders").send("a")
        with pytest.raises(BrokerFailed) as refused:
            foreign.restore(broker.snapshot())
        assert "other options: num.partitions (unset, here 3)" in one_line(refused)
        removed = broker.snapshot()
        shutil.rmtree(removed.directory)
        with pytest.raises(BrokerFailed) as refused:
            broker.restore(removed)
        assert f"its directory {removed.directory} removed" in one_line(refused)
        with pytest.raises(TypeError) as wrong:
            broker.restore("yesterday")  # type: ignore[arg-type]
        assert "restore('yesterday'): expected what snapshot() has given" in one_line(wrong)
        with pytest.raises(BrokerFailed) as early:
            Broker().snapshot()
        assert "before its first start" in one_line(early)
        assert values(broker.topic("orders")) == ["a"]
        assert foreign.topics() == []


def test_a_snapshot_of_another_broker_with_the_same_options_is_as_good() -> None:
    with Broker() as one, Broker() as other:
        one.topic("orders").send("a")
        taken: Snapshot = one.snapshot()
        other.restore(taken)
        assert values(other.topic("orders")) == ["a"]
        assert values(one.topic("orders")) == ["a"]
