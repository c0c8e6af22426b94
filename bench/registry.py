"""What the schema registry's answers cost: by id, the latest version, a registration.

    bench/registry.py [--schemas N] [--requests N]

One connection that is kept, one request after the other. Told are the median, and the CPU time of
the HTTP process and of its broker a request.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from kwire.testing.cluster import Broker, free_ports

RECORD = '{{"type":"record","name":"R{}","fields":[{{"name":"a","type":"long"}}]}}'
HEADERS = {"Content-Type": "application/vnd.schemaregistry.v1+json"}


def cpu_s(pid: int) -> float:
    words = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def child_of(pid: int) -> int:
    """The HTTP process of a broker."""
    for entry in os.listdir("/proc"):
        if entry.isdecimal():
            try:
                words = pathlib.Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(words[1]) == pid:
                return int(entry)
    raise SystemExit("the broker has no HTTP process")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--schemas", type=int, default=500)
    parser.add_argument("--requests", type=int, default=5000)
    options = parser.parse_args()
    (port,) = free_ports(1)
    with Broker(options={"http.listeners": f"http://127.0.0.1:{port}"}) as broker:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

        def asked(method: str, path: str, body: str | None = None) -> float:
            started = time.perf_counter()
            connection.request(method, path, body, HEADERS)
            response = connection.getresponse()
            data = response.read()
            if response.status != 200:
                raise SystemExit(f"{path}: {response.status} {data!r}")
            return time.perf_counter() - started

        asked("GET", "/subjects")
        child = child_of(broker.pid)

        def measured(name: str, count: int, work: object) -> None:
            assert callable(work)
            before = cpu_s(child), cpu_s(broker.pid)
            times_s = [work(at) for at in range(count)]
            spent = cpu_s(child) - before[0], cpu_s(broker.pid) - before[1]
            print(
                f"{name}: median {statistics.median(times_s) * 1000:.2f} ms, "
                f"CPU {spent[0] / count * 1000:.2f} ms + {spent[1] / count * 1000:.2f} ms (broker)"
            )

        def register(at: int) -> float:
            body = json.dumps({"schema": RECORD.format(at)})
            return asked("POST", f"/subjects/s{at}/versions", body)

        known = options.schemas
        measured("registration", known, register)
        measured("registered already", known, register)
        measured(
            "by id", options.requests, lambda at: asked("GET", f"/schemas/ids/{at % known + 1}")
        )
        measured(
            "latest version",
            options.requests // 5,
            lambda at: asked("GET", f"/subjects/s{at % known}/versions/latest"),
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
