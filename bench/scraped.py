"""Latency of 1,000 messages a second while `/metrics` is scraped, beside the same without.

    bench/scraped.py [--rounds N] [--seconds S] [--held N]

One broker serves all rounds, which alternate: in one `rklat` alone, in the next a scrape a second
and `--held` HTTP connections that send nothing. Told are the medians of p50 and p99 of either, and
the ratio of the p99s; before the first request the broker's memory and how long it took to start.

Who scrapes stands for a Prometheus on another machine, whose work is not the broker's: it is a
process of its own that has the processor only while nobody else wants it (SCHED_IDLE, on Linux).
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import pathlib
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from multiprocessing.synchronize import Event
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.brokers import stand_aside, with_bytecode  # noqa: E402
from bench.build import build  # noqa: E402
from bench.side_by_side import run  # noqa: E402
from kwire.testing.cluster import free_adjacent_ports  # noqa: E402

RATE = 1000
SCRAPE_S = 1.0
TIMEOUT_S = 30
IDLE_S = 2


class Scraping:
    """A scrape a second by a process, and connections that are held open."""

    def __init__(self, port: int, held: int) -> None:
        self._held = [socket.create_connection(("127.0.0.1", port)) for _ in range(held)]
        context = multiprocessing.get_context("spawn")
        self._ended = context.Event()
        self._scrapes = context.Value("i", 0)
        url = f"http://127.0.0.1:{port}/metrics"
        arguments = url, self._ended, self._scrapes
        self._process = context.Process(target=_scrape, args=arguments)
        self._process.start()

    def end(self) -> int:
        """How often it has scraped."""
        self._ended.set()
        self._process.join()
        for connection in self._held:
            connection.close()
        if self._process.exitcode:
            raise SystemExit("bench: a scrape failed")
        return int(self._scrapes.value)


def _scrape(url: str, ended: Event, scrapes: Any) -> None:
    stand_aside()
    while not ended.wait(SCRAPE_S):
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as response:
            response.read()
        scrapes.value += 1


def measure(options: argparse.Namespace, directory: str) -> None:
    tools = build(pathlib.Path(options.tools))
    port = free_adjacent_ports()
    started = time.monotonic()
    command = [sys.executable, "-m", "kwire", "serve", "--listen", f"127.0.0.1:{port}"]
    with subprocess.Popen(
        [*command, "--data-dir", directory],
        cwd=ROOT,
        env=with_bytecode(dict(os.environ)),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            ready_s = time.monotonic() - started
            found = re.search(r"http on .*:(\d+)", process.stdout.readline())
            if found is None:
                raise SystemExit("bench: the broker does not tell where it answers HTTP")
            time.sleep(IDLE_S)
            status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
            resident = re.search(r"VmRSS:\s+(\d+)", status)
            assert resident is not None
            print(f"ready in {ready_s:.2f} s, {int(resident[1]) / 1024:.1f} MB before a request")
            compare(options, tools, f"127.0.0.1:{port}", int(found[1]))
        finally:
            process.terminate()


def compare(options: argparse.Namespace, tools: pathlib.Path, address: str, http_port: int) -> None:
    """The rounds; the first pair warms up."""
    taken: dict[bool, list[dict[str, float]]] = {False: [], True: []}
    scrapes = 0
    for at in range(options.rounds + 1):
        for scraped in (False, True) if at % 2 else (True, False):
            scraping = Scraping(http_port, options.held) if scraped else None
            topic = f"latency-{at}-{int(scraped)}"  # what was there before is read too
            figures = run(tools / "rklat", address, topic, RATE, options.seconds, "1")
            if scraping is not None:
                scrapes += scraping.end()
            if at:
                taken[scraped].append(figures)
    medians = {
        (scraped, name): statistics.median(figures[name] for figures in rounds)
        for scraped, rounds in taken.items()
        for name in ("p50", "p99")
    }
    for scraped, name in ((False, "alone"), (True, f"scraped, {options.held} held")):
        print(f"{name}: p50 {medians[scraped, 'p50']:.2f} ms, p99 {medians[scraped, 'p99']:.2f} ms")
    ratio = medians[True, "p99"] / medians[False, "p99"]
    print(f"p99 of scraped to alone {ratio:.2f}, {options.rounds} rounds, {scrapes} scrapes")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=int, default=8)
    parser.add_argument("--held", type=int, default=200)
    parser.add_argument("--tools", default=str(pathlib.Path.home() / ".cache" / "kwire" / "bench"))
    options = parser.parse_args()
    directory = tempfile.mkdtemp(prefix="bench-scraped-")
    try:
        measure(options, directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
