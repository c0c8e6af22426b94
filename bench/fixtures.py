"""What a test with the fixture `kafka` costs: a suite of short tests, run by pytest.

    bench/fixtures.py [--tests N] [--workers N] [--rounds N] [--client NAME]

Each test creates a topic, produces ten records and consumes them in a group with an unmodified
client, which has its own settings but for names. Told are, per round, the seconds of the whole run
and its CPU, start of pytest included. Most of a test the client waits by itself: librdkafka 100 ms
before it asks where a group without offsets begins, kafka-python twice 100 ms for metadata. So more
workers than cores are of use.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

TESTS = {
    "confluent": """
        import pytest
        from confluent_kafka import Consumer, Producer

        @pytest.mark.parametrize("turn", range({tests}))
        def test_ten_records(kafka, turn):
            kafka.topic("orders").create()
            producer = Producer({{"bootstrap.servers": kafka.bootstrap}})
            for number in range(10):
                producer.produce("orders", b"%d" % number)
            producer.flush()
            settings = {{"group.id": "g", "auto.offset.reset": "earliest"}}
            consumer = Consumer({{"bootstrap.servers": kafka.bootstrap, **settings}})
            consumer.subscribe(["orders"])
            seen = []
            while len(seen) < 10:
                seen += [each.value() for each in consumer.consume(10 - len(seen), 1)]
            consumer.commit()
            consumer.close()
            assert seen == [b"%d" % number for number in range(10)]
    """,
    "kafka-python": """
        import pytest
        from kafka import KafkaConsumer, KafkaProducer

        @pytest.mark.parametrize("turn", range({tests}))
        def test_ten_records(kafka, turn):
            kafka.topic("orders").create()
            producer = KafkaProducer(bootstrap_servers=kafka.bootstrap)
            for number in range(10):
                producer.send("orders", b"%d" % number)
            producer.flush()
            producer.close()
            consumer = KafkaConsumer(
                "orders",
                bootstrap_servers=kafka.bootstrap,
                group_id="g",
                auto_offset_reset="earliest",
            )
            seen = [next(consumer).value for _ in range(10)]
            consumer.commit()
            consumer.close()
            assert seen == [b"%d" % number for number in range(10)]
    """,
    "aiokafka": """
        import asyncio

        import pytest
        from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

        @pytest.mark.parametrize("turn", range({tests}))
        def test_ten_records(kafka, turn):
            kafka.topic("orders").create()

            async def records():
                async with AIOKafkaProducer(bootstrap_servers=kafka.bootstrap) as producer:
                    for number in range(10):
                        await producer.send("orders", b"%d" % number)
                    await producer.flush()
                async with AIOKafkaConsumer(
                    "orders",
                    bootstrap_servers=kafka.bootstrap,
                    group_id="g",
                    auto_offset_reset="earliest",
                ) as consumer:
                    seen = [(await consumer.getone()).value for _ in range(10)]
                    await consumer.commit()
                return seen

            assert asyncio.run(records()) == [b"%d" % number for number in range(10)]
    """,
}


def run(client: str, tests: int, workers: int) -> tuple[float, float]:
    """Seconds of one run of pytest, and its CPU seconds."""
    lines = TESTS[client].format(tests=tests).splitlines()
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory, "test_many.py")
        path.write_text("\n".join(line[8:] for line in lines))
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", path.name]
        command += ["-p", "kwire.testing.plugin"]
        command += ["-p", "xdist", "-n", str(workers)] if workers > 1 else []
        # Plugins of other packages that are installed here would be loaded by each worker.
        environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        result = subprocess.run(
            command, cwd=directory, env=environment, capture_output=True, text=True
        )
        wall_s = time.monotonic() - started
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if result.returncode:
        sys.exit(result.stdout)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall_s, cpu_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tests", type=int, default=500)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--client", choices=sorted(TESTS), default="confluent")
    arguments = parser.parse_args()
    rounds = []
    for _ in range(arguments.rounds):
        wall_s, cpu_s = run(arguments.client, arguments.tests, arguments.workers)
        rounds.append((wall_s, cpu_s))
        print(f"{arguments.tests} tests in {wall_s:.1f} s, {cpu_s:.1f} s of CPU")
    wall_s = statistics.median(wall for wall, _ in rounds)
    cpu_ms = statistics.median(cpu for _, cpu in rounds) * 1000 / arguments.tests
    print(f"{arguments.client}: median {wall_s:.1f} s, {cpu_ms:.0f} ms of CPU a test")


if __name__ == "__main__":
    main()
