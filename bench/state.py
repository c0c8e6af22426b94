"""How long a broker's state takes to be kept and to come back: ms of wall clock and of CPU.

    bench/state.py [--topics N] [--megabytes N] [--rounds N]

`one written` is a restore after one topic was written to, `all written` after all of them were.
`copy` is the copying of the directory alone, `start` that of a broker on it as after a kill. All
rounds begin from one state: a start as after a kill adds to the metadata. Told are the least of the
rounds and the median.
"""

from __future__ import annotations

import argparse
import pathlib
import statistics
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
        found: dict[str, list[tuple[float, float]]] = {}

        def told(name: str, spent: tuple[float, float]) -> None:
            found.setdefault(name, []).append(spent)

        first = broker.snapshot()
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
            broker.restore(first)
        with broker.fork() as other:
            assert other.topic("orders-7").end_offsets() == {0: 100}
        told("reset", timed(broker.reset))
        print(f"{'':12} {'wall clock':>20} {'CPU':>20}")
        for name, spent in found.items():
            wall_ms, cpu_ms = ([one[which] for one in spent] for which in (0, 1))
            shown = (f"{min(of):8.1f} {statistics.median(of):8.1f} ms" for of in (wall_ms, cpu_ms))
            print(f"{name:12}", *shown)


if __name__ == "__main__":
    main()
