"""kwire beside Apache Kafka over TLS 1.3, with the same cipher and the same certificate.

    bench/tls.py [--rounds N] [--gigabytes G] [--sizes SIZE,...] [--minutes N] [--broker NAME ...]

librdkafka produces to one partition over TLS and consumes from it; brokers in alternating rounds
(`side_by_side.py`). Kafka is told the one cipher that kwire and librdkafka agree on,
TLS_AES_256_GCM_SHA384. Prints each round, the medians and the ratios.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import shutil
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.brokers import Broker  # noqa: E402
from bench.build import build  # noqa: E402
from bench.side_by_side import (  # noqa: E402
    BATCH_BYTES,
    LINGER_MS,
    WARM_RECORDS,
    Figures,
    Rows,
    WarmMemory,
    run,
    summarise,
)
from tests.support.certificates import Authority  # noqa: E402

CIPHER = "TLS_AES_256_GCM_SHA384"
OURS, REFERENCE = "kwire", "kafka"
THROUGHPUT_MIN, CPU_MAX = 1.2, 0.6


def settings(certificate: pathlib.Path) -> list[str]:
    """The settings of TLS that both have."""
    return [
        "ssl.keystore.type=PEM",
        f"ssl.keystore.location={certificate}",
        "ssl.enabled.protocols=TLSv1.3",
        "listener.security.protocol.map=SSL:SSL,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name=SSL",
        "ssl.endpoint.identification.algorithm=",
    ]


def commands(
    cache: pathlib.Path, certificate: pathlib.Path, authority: pathlib.Path
) -> dict[str, str]:
    """The command lines of both brokers."""
    common = [
        *settings(certificate),
        "ssl.truststore.type=PEM",
        f"ssl.truststore.location={authority}",
        "listeners=SSL://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
    ]
    found: dict[str, str] = {}
    libs = cache / "kafka" / "libs"
    if shutil.which("java") and libs.is_dir():
        words = " ".join([*common, f"ssl.cipher.suites={CIPHER}"])
        found[REFERENCE] = f"{ROOT}/bench/kafka.sh {libs} {{dir}} {{port}} {words}"
    else:
        print("bench: no Java or no jars of Kafka (make peers): measuring kwire alone")
    words = " ".join(f"-o {word}" for word in common)
    found[OURS] = f"{sys.executable} -m kwire serve --no-http --data-dir {{dir}} {words}"
    return found


def one_round(
    broker: Broker,
    tools: pathlib.Path,
    sizes: list[int],
    gigabytes: float,
    client: list[str],
) -> list[tuple[str, Figures]]:
    """Produce and consume, by record size."""
    perf, at = tools / "rkperf", broker.address
    sent_with = ("1", "none", BATCH_BYTES, LINGER_MS, *client)
    run(perf, "produce", at, "warm", 1, 1024, WARM_RECORDS, *sent_with)
    run(perf, "consume", at, "warm", 1, 1024, WARM_RECORDS, *client)
    results: list[tuple[str, Figures]] = []
    for size in sizes:
        count = int(gigabytes * 1e9 / size)
        for kind in ("produce", "consume"):
            before = broker.cpu_s()
            words = sent_with if kind == "produce" else client
            figures = run(perf, kind, at, f"t{size}", 1, size, count, *words)
            cpu_s = broker.cpu_s() - before
            if figures["ok"] < count:
                raise SystemExit(f"bench: {broker.name}: {figures['ok']} of {count} records")
            results.append(
                (
                    f"{kind} {size}",
                    {
                        "MBps": figures["MBps"],
                        "cpu_s_per_GB": round(cpu_s / gigabytes, 3),
                        "client_cpu_s_per_GB": round(figures["clientcpu"] / gigabytes, 3),
                    },
                )
            )
    return results


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--sizes", default="1024")
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--warm-gb", type=float, default=64.0)
    parser.add_argument("--broker", action="append", choices=(OURS, REFERENCE))
    options = parser.parse_args()
    cache = pathlib.Path(os.environ.get("KWIRE_CACHE") or pathlib.Path.home() / ".cache" / "kwire")
    tools = build(cache / "bench")
    logs = ROOT / ".cache" / "bench-logs"
    logs.mkdir(parents=True, exist_ok=True)
    sizes = [int(size) for size in options.sizes.split(",")]
    rows: Rows = {}
    ends_s = time.monotonic() + options.minutes * 60
    print(f"load average before: {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        folder = pathlib.Path(scratch)
        authority = Authority()
        certificate = authority.sign("node").write(folder, "node")
        trusted = folder / "authority.pem"
        trusted.write_text(authority.pem)
        brokers = commands(cache, certificate, trusted)
        brokers = {name: brokers[name] for name in options.broker or brokers}
        client = ["security.protocol=ssl", f"ssl.ca.location={trusted}"]
        memory = WarmMemory(scratch, options.warm_gb)
        for number in range(options.rounds):
            if time.monotonic() > ends_s:
                break
            for name in list(brokers) if number % 2 == 0 else reversed(list(brokers)):
                memory.fill()
                broker = Broker(name, brokers[name], logs / f"{name}-tls.log")
                try:
                    for kind, figures in one_round(broker, tools, sizes, options.gigabytes, client):
                        rows.setdefault(kind, {}).setdefault(name, []).append(figures)
                        print(f"round {number + 1} {name:8} {kind:14} {figures}", flush=True)
                finally:
                    broker.stop()
    for kind, by_broker in summarise(rows, next(iter(brokers))).items():
        for name, figures in by_broker.items():
            print(f"{kind:14} {name:8} {figures}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
