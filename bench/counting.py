"""What counting for `/metrics` costs a request, in us of CPU.

    bench/counting.py [produce|fetch|heartbeats|commits ...] [--rounds N] [--connections N]

A node runs in this process, without sockets. Rounds with and without counting alternate: the code
of the functions of `COUNTING` is exchanged for the same without its lines that count (a line that
is not found ends the run). Told is what the quickest fiftieth of
the requests took more than without counting (the other requests shared the processor), the median
over all pairs of rounds, and what a reading of the clock takes on this machine.
"""

from __future__ import annotations

import argparse
import inspect
import pathlib
import statistics
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any, NamedTuple, cast

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from bench import one_request
from bench.frames import one_record_request
from bench.node_here import node_with_topic
from bench.one_request import TOPIC, Bench, encoded
from kwire.api import fetch
from kwire.clock import ticks_ns
from kwire.network.loop import new_event_loop, tune_malloc
from kwire.protocol import messages as m
from kwire.protocol.frame import encode_response
from kwire.replica import partition
from kwire.server import connection, slots

PARTS, WARM_UP_PARTS = 300, 50  # of a round: each connection asks once
SIZE_BYTES = 100

CONNECTION = connection.BrokerConnection
NAMES = {"encode_response": encode_response}
"""What the lines that do not count need besides."""
COUNTING: list[tuple[Any, list[tuple[str, str]]]] = [
    (
        CONNECTION._execute,
        [
            (
                """\
        counts, timed, turn_s = route.counts, None, self.turn_s
        if turn_s >= counts.due_s:
            timed = counts.begun(turn_s, len(body))
""",
                "        timed, turn_s = None, self.turn_s\n",
            ),
            ("        if self.is_follower:\n            counts = counts.of_followers\n", ""),
            (
                "            self._wait_for(Slot(context, counts), context, timed, outcome)\n",
                "            self._wait_for(Slot(context), context, outcome)\n",
            ),
            (
                """\
                    if timed is not None:
                        counts.ended(timed)
""",
                "",
            ),
            (
                "                parts = self._encoded(context, outcome, counts)\n",
                "                parts = self._encoded(context, outcome)\n",
            ),
            (
                "            self._answer_in_turn(Slot(context, counts), timed, outcome)",
                "            self._answer_in_turn(Slot(context), outcome)",
            ),
            (
                "            self._unanswered(context, counts, timed)",
                "            self._unanswered(context, route.counts, None)",
            ),
        ],
    ),
    (
        CONNECTION._encoded,
        [
            (
                ", outcome: Response, counts: RequestCounts\n",
                ", outcome: Response\n",
            ),
            (
                """\
            parts = encode_answer(
                context.api_key, context.api_version, context.correlation_id, outcome, counts
            )
""",
                """\
            parts = encode_response(
                context.api_key, context.api_version, context.correlation_id, outcome
            )
""",
            ),
        ],
    ),
    (
        CONNECTION._wait_for,
        [
            (", timed: Timed | None, pending:", ", pending:"),
            ("        if timed is not None:\n            timed.executed()\n", ""),
            ("partial(self._pending_done, slot, timed)", "partial(self._pending_done, slot)"),
        ],
    ),
    (
        CONNECTION._pending_done,
        [
            (", timed: Timed | None, pending:", ", pending:"),
            (
                "        self._answer(slot, timed, outcome)\n",
                "        self._answer(slot, outcome)\n",
            ),
        ],
    ),
    (
        CONNECTION._answer_in_turn,
        [
            (", timed: Timed | None, outcome:", ", outcome:"),
            ("        if timed is not None:\n            timed.executed()\n", ""),
            (
                "        self._answer(slot, timed, outcome)\n",
                "        self._answer(slot, outcome)\n",
            ),
        ],
    ),
    (
        CONNECTION._answer,
        [
            (", timed: Timed | None, outcome:", ", outcome:"),
            (
                "        context, counts = slot.context, slot.counts\n",
                "        context = slot.context\n",
            ),
            ("            counts.count_any(context.api_version, outcome)\n", ""),
            (
                "(parts := self._encoded(context, outcome, counts)) is None:\n",
                "(parts := self._encoded(context, outcome)) is None:\n",
            ),
            (
                "            counts.count_any(context.api_version, DISCONNECT)\n",
                "            pass\n",
            ),
            (
                """\
        if timed is not None:
            counts.ended(timed)
""",
                "",
            ),
        ],
    ),
    (
        slots.Slot.__init__,
        [
            (", counts: RequestCounts)", ")"),
            ("        self.counts = counts\n", ""),
        ],
    ),
    (
        partition.Partition.append,
        [
            (
                "        if checked is None:  # else it was here before\n"
                "            self.traffic.produce_requests += 1\n",
                "",
            ),
            (
                "            self.traffic.messages_in += info.last_offset - info.base_offset + 1\n",
                "            pass\n",
            ),
        ],
    ),
    (
        partition.Partition._written,
        [
            (
                "        traffic = self.traffic\n"
                "        traffic.messages_in += end - first\n"
                "        traffic.bytes_in += size_bytes\n",
                "",
            )
        ],
    ),
    (partition.Partition.read, [("        self.traffic.fetch_requests += 1\n", "")]),
    (
        fetch._Fetch._answer_to,
        [
            (
                """        if size_bytes := result.size_bytes:
            traffic = part.partition.traffic
            if self._replica_id < 0:
                traffic.bytes_out += size_bytes
            else:
                traffic.replication_bytes_out += size_bytes
""",
                "        size_bytes = result.size_bytes\n",
            )
        ],
    ),
]


class Exchange(NamedTuple):
    """A function with its code, and with that which does not count."""

    function: FunctionType
    counting: CodeType
    silent: CodeType


def exchanges() -> list[Exchange]:
    """The functions of `COUNTING`."""
    vars(connection).update(NAMES)
    found = []
    for function, changes in COUNTING:
        source = inspect.getsource(function)
        for old, new in changes:
            if source.count(old) != 1:
                raise SystemExit(f"bench: {function.__qualname__} has no longer: {old.strip()}")
            source = source.replace(old, new)
        names: dict[str, Any] = {}
        text = "from __future__ import annotations\n" + textwrap.dedent(source)
        exec(compile(text, inspect.getfile(function), "exec"), function.__globals__ | {}, names)
        silent = cast("FunctionType", names[function.__name__])
        found.append(Exchange(function, function.__code__, silent.__code__))
    return found


def set_counting(all_exchanges: list[Exchange], counts: bool) -> None:
    """From now on requests are counted, or not."""
    for each in all_exchanges:
        each.function.__code__ = each.counting if counts else each.silent


# -- what is asked


async def produces(bench: Bench) -> Callable[[], Any]:
    """One record each, acks=1."""
    with tempfile.TemporaryDirectory(prefix="bench-frame-") as directory:
        path = pathlib.Path(directory) / "frame"
        frame = one_record_request(path, TOPIC, 1, SIZE_BYTES).read_bytes()
    return one_request.repeated(bench, dict.fromkeys(range(len(bench.clients)), frame))


async def fetches(bench: Bench) -> Callable[[], Any]:
    """One partition, of which there is something to read."""
    await (await produces(bench))()
    shape = m.FetchRequest
    asked = shape.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=200)
    topic = shape.FetchTopic(topic=TOPIC, partitions=[asked])
    request = shape(max_wait_ms=0, min_bytes=1, max_bytes=200, session_epoch=-1, topics=[topic])
    return one_request.repeated(
        bench, dict.fromkeys(range(len(bench.clients)), encoded(request, 12))
    )


SCENARIOS = {
    "produce": produces,
    "fetch": fetches,
    "heartbeats": one_request.heartbeats,
    "commits": one_request.commits,
}


async def measure(options: argparse.Namespace, directory: str) -> None:
    settings = {
        "group.initial.rebalance.delay.ms": "0",
        # Plain roads count for themselves; what is exchanged here is the general way.
        "kwire.plain.requests.enable": "false",
    }
    node = await node_with_topic(directory, TOPIC, one_request.PARTITIONS, settings)
    all_exchanges = exchanges()
    bench = Bench(node, options)
    find = m.FindCoordinatorRequest(key_type=0, coordinator_keys=["bench"])
    await bench.ask(lambda i: find, 4, lambda x: int(x.coordinators[0].error_code))
    for name in options.scenarios or SCENARIOS:
        one_round = await SCENARIOS[name](bench)
        taken: dict[bool, list[float]] = {True: [], False: []}
        medians: dict[bool, list[float]] = {True: [], False: []}
        for at in range(options.rounds + 1):
            # Which of the two comes first alternates too.
            for counts in (True, False) if at % 2 else (False, True):
                set_counting(all_exchanges, counts)
                found = []
                for each in range(PARTS):
                    bench.cpu_s = 0.0
                    done = await one_round()
                    if each >= WARM_UP_PARTS:  # the interpreter knows its way again
                        found.append(bench.cpu_s / done * 1e6)
                if at:
                    taken[counts] += found
                    medians[counts].append(statistics.median(found))
        set_counting(all_exchanges, True)
        pairs = zip(medians[True], medians[False], strict=True)
        more, least = statistics.median(a - b for a, b in pairs), few(taken[False])
        print(
            f"{name}: counting {few(taken[True]) - least:.2f} us of CPU a request (median of pairs "
            f"{more:.2f}), without {least:.2f} us, a reading of the clock {clock_us():.3f} us",
            flush=True,
        )
    for client in bench.clients:
        client.connection.connection_lost(None)
    await node.stop()


def few(values: list[float]) -> float:
    """What one in fifty is below: nothing else ran beside it."""
    return sorted(values)[len(values) // 50]


def clock_us() -> float:
    """What a reading of the clock takes."""
    readings = 10_000
    least = float("inf")
    for _ in range(20):
        started = time.process_time()
        for _ in range(readings):
            ticks_ns()
        least = min(least, time.process_time() - started)
    return least / readings * 1e6


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("scenarios", choices=[*SCENARIOS, []], nargs="*", default=[])
    parser.add_argument("--connections", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    options.pipeline = 1
    tune_malloc()
    loop = new_event_loop()
    with tempfile.TemporaryDirectory(prefix="bench-counting-") as directory:
        loop.run_until_complete(measure(options, directory))
    return 0


if __name__ == "__main__":
    sys.exit(main())
