"""How long a broker's state takes to be kept and to come back: ms of wall clock and of CPU.

    bench/state.py [--topics N] [--megabytes N] [--rounds N]

`one written` is a restore after one topic was written to, `all written` after all of them were.
`copy` is the copying of the directory alone, `start` that of a broker on it, both within `restore`.
The least of the rounds is told.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import time
from collections.abc import Callable

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from kwire.testing import Broker, Snapshot


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """ms of wall clock and of CPU."""
    wall_s, cpu_s = time.perf_counter(), time.process_time()
    work()
    return (time.perf_counter() - wall_s) * 1000, (time.process_time() - cpu_s) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topics", type=int, default=100)
    parser.add_argument("--megabytes", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with Broker() as broker:
        value = "x" * int(options.megabytes * 1e6 / options.topics / 100)
        for number in range(options.topics):
            topic = broker.topic(f"orders-{number}")
            topic.create()
            topic.send_all([value] * 100)
        least: dict[str, tuple[float, float]] = {}

        def told(name: str, spent: tuple[float, float]) -> None:
            before = least.get(name, spent)
            least[name] = min(before[0], spent[0]), min(before[1], spent[1])

        kept: list[Snapshot] = []
        for _ in range(options.rounds):
            told("snapshot", timed(lambda: kept.append(broker.snapshot())))
            told("restore", timed(lambda: broker.restore(kept[-1])))
            for name, topics in (("one written", 1), ("all written", options.topics)):
                for number in range(topics):
                    broker.topic(f"orders-{number}").send("more")
                told(name, timed(lambda: broker.restore(kept[-1])))
            broker.kill()
            told("copy", timed(lambda: kept[-1].put(broker.directory)))
            told("start", timed(broker.start))
            assert broker.topic("orders-7").end_offsets() == {0: 100}
            kept.pop().close()
        with broker.fork() as other:
            assert other.topic("orders-7").end_offsets() == {0: 100}
        told("reset", timed(broker.reset))
        for name, (wall_ms, cpu_ms) in least.items():
            print(f"{name:12} {wall_ms:8.1f} ms, CPU {cpu_ms:8.1f} ms")


if __name__ == "__main__":
    main()
