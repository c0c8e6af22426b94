"""REST beside the Kafka port: what a published message costs, and what publishers cost others.

    bench/rest.py cost [--seconds S] [--records N] [--rounds N]
    bench/rest.py beside [--rounds N] [--seconds S] [--publishers N]

`cost`: programs post N messages a request (100, of 100 bytes with key and header, acks 1 and all in
turn) as fast as they are answered. Told are messages a second of one core: by the CPU that the
broker's HTTP process took, and by what both processes took.

`beside`: one broker serves all rounds, which alternate: `rklat` with 1,000 messages a second
alone, and beside `--publishers` REST publishers that post ten messages a second each, by one
process at the lowest priority: they stand for programs of other machines.
Told are the medians of p50 and p99 of either, and the ratio of the p99s.
"""

from __future__ import annotations

import argparse
import base64
import heapq
import json
import multiprocessing
import os
import pathlib
import re
import selectors
import socket
import statistics
import subprocess
import sys
import time
from multiprocessing.synchronize import Event

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.brokers import stand_aside  # noqa: E402
from kwire.testing.cluster import Broker  # noqa: E402

TOPIC = "rest"
PARTITIONS = 4
VALUE_BYTES = 100
CONNECTIONS = 8
RATE = 1000
POSTS_A_SECOND = 1
MESSAGES_A_POST = 10
LOOK_S = 0.05
TICKS = os.sysconf("SC_CLK_TCK")


def request(records: int, acks: str) -> bytes:
    """One POST, head and body."""
    value = base64.b64encode(os.urandom(VALUE_BYTES)).decode()
    messages = [
        {"key": f"user-{at}", "value": value, "headers": {"trace-id": "abc"}}
        for at in range(records)
    ]
    body = json.dumps({"messages": messages, "acks": acks}, separators=(",", ":")).encode()
    head = (
        f"POST /topics/{TOPIC}/messages HTTP/1.1\r\nHost: localhost\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def answer(connection: socket.socket) -> bytes:
    """One answer, of a connection that stays."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(1 << 16)
        assert piece, "the connection has ended"
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    assert b" 200 " in head.split(b"\r\n")[0], data[:500]
    found = re.search(rb"content-length: (\d+)", head)
    assert found is not None, head
    while len(body) < int(found.group(1)):
        body += connection.recv(1 << 16)
    return body


def cpu_s(pid: int) -> float:
    """The CPU time of a process so far."""
    words = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / TICKS


def child_of(pid: int) -> int:
    """The one process that a process has started."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                words = pathlib.Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if words[1] == str(pid):
                return int(entry)
    raise AssertionError("there is no HTTP process")


def port_of(broker: Broker) -> int:
    """Of the HTTP listener."""
    for _ in range(1000):
        found = re.search(r"http on http://127.0.0.1:(\d+)", broker.process.output_text())
        if found is not None:
            return int(found.group(1))
        time.sleep(0.01)
    raise AssertionError("no HTTP listener")


def make_topic(broker: Broker) -> None:
    subprocess.run(
        [*(sys.executable, "-m", "kwire", "topic", "create", TOPIC)]
        + ["--partitions", str(PARTITIONS), "--bootstrap-server", broker.bootstrap],
        cwd=ROOT,
        check=True,
        stdout=subprocess.DEVNULL,
    )


def cost(options: argparse.Namespace) -> None:
    with Broker(options={"http.listeners": "http://127.0.0.1:0"}) as broker:
        make_topic(broker)
        port = port_of(broker)
        for acks in ("1", "all"):
            sent = request(options.records, acks)
            for _ in range(options.rounds):
                told = _posted(broker, port, sent, options.seconds)
                count, http_s, broker_s, took_s = told
                messages = count * options.records
                print(
                    f"acks={acks} records={options.records}: {messages / http_s:,.0f} messages a "
                    f"second of the HTTP process's core, {messages / (http_s + broker_s):,.0f} of "
                    f"one core with the broker; {messages / took_s:,.0f}/s through",
                    flush=True,
                )


def _posted(
    broker: Broker, port: int, sent: bytes, seconds: float
) -> tuple[int, float, float, float]:
    """Requests, CPU of the HTTP process and of the broker, time."""
    connections = [socket.create_connection(("127.0.0.1", port)) for _ in range(CONNECTIONS)]
    for one in connections:  # the process starts, and gets warm
        one.sendall(sent)
        answer(one)
    http = child_of(broker.pid)
    selector = selectors.DefaultSelector()
    before, begun = (cpu_s(http), cpu_s(broker.pid)), time.monotonic()
    for one in connections:
        one.sendall(sent)
        selector.register(one, selectors.EVENT_READ)
    count = 0
    while time.monotonic() - begun < seconds:
        for key, _ in selector.select(1):
            assert isinstance(key.fileobj, socket.socket)
            answer(key.fileobj)
            count += 1
            key.fileobj.sendall(sent)
    after, took_s = (cpu_s(http), cpu_s(broker.pid)), time.monotonic() - begun
    for one in connections:
        one.close()
    return count, after[0] - before[0], after[1] - before[1], took_s


# -- beside others


def publishers(port: int, count: int, ended: Event) -> None:
    """A process with a connection for each publisher: it posts at its times, or when it is answered
    if that is later."""
    sent = request(MESSAGES_A_POST, "all")
    stand_aside()
    connections = [socket.create_connection(("127.0.0.1", port)) for _ in range(count)]
    selector = selectors.DefaultSelector()
    begun_s = time.monotonic()
    due = [(begun_s + at / count / POSTS_A_SECOND, at) for at in range(count)]
    while not ended.is_set():
        now_s = time.monotonic()
        while due and due[0][0] <= now_s:
            at_s, at = heapq.heappop(due)
            connections[at].sendall(sent)
            selector.register(connections[at], selectors.EVENT_READ, (at_s, at))
        for key, _ in selector.select(due[0][0] - now_s if due else LOOK_S):
            at_s, at = key.data
            answer(connections[at])
            selector.unregister(connections[at])
            heapq.heappush(due, (at_s + 1 / POSTS_A_SECOND, at))
    for one in connections:
        one.close()


def beside(options: argparse.Namespace) -> None:
    from bench.build import build
    from bench.side_by_side import run

    tools = build(pathlib.Path(options.tools))
    with Broker(options={"http.listeners": "http://127.0.0.1:0"}) as broker:
        make_topic(broker)
        port = port_of(broker)
        found: dict[str, list[dict[str, float]]] = {"alone": [], "beside": []}
        for at in range(options.rounds + 1):
            for name in ("alone", "beside") if at % 2 else ("beside", "alone"):
                ended = multiprocessing.Event()
                posting = multiprocessing.Process(
                    target=publishers, args=(port, options.publishers, ended)
                )
                if name == "beside":
                    posting.start()
                topic = f"latency-{at}-{name}"
                figures = run(tools / "rklat", broker.bootstrap, topic, RATE, options.seconds, "1")
                if name == "beside":
                    ended.set()
                    posting.join()
                if at:  # the first pair warms up
                    found[name].append(figures)
    medians = {
        (name, which): statistics.median(one[which] for one in rounds)
        for name, rounds in found.items()
        for which in ("p50", "p99")
    }
    for name in found:
        print(f"{name}: p50 {medians[name, 'p50']:.2f} ms, p99 {medians[name, 'p99']:.2f} ms")
    ratio = medians["beside", "p99"] / medians["alone", "p99"]
    print(f"p99 beside {options.publishers} publishers to alone {ratio:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("cost", "beside"))
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--records", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--publishers", type=int, default=200)
    cache = os.environ.get("KWIRE_CACHE", os.path.expanduser("~/.cache/kwire"))
    parser.add_argument("--tools", default=os.path.join(cache, "bench"))
    options = parser.parse_args()
    cost(options) if options.what == "cost" else beside(options)


if __name__ == "__main__":
    main()
