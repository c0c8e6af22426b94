"""Build the load generators (C, librdkafka) into the cache; returns where they are.

The library is the one inside the confluent-kafka wheel: consumers of a fast broker need
`fetch.queue.backoff.ms=1`, which older ones lack. `librdkafka.h` declares what is called.
"""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
WITH_LIBRDKAFKA = ("rkperf", "rklat")
PLAIN = ("blast", "blast_share")


def build(target: pathlib.Path) -> pathlib.Path:
    """The folder with rkperf, rklat, blast and blast_share; SystemExit names what is missing."""
    if shutil.which("gcc") is None:
        raise SystemExit("bench: needs gcc")
    library = _librdkafka()
    target.mkdir(parents=True, exist_ok=True)
    for name in (*WITH_LIBRDKAFKA, *PLAIN):
        source, program = HERE / f"{name}.c", target / name
        if program.exists() and program.stat().st_mtime > source.stat().st_mtime:
            continue
        command = ["gcc", "-O2", "-w", "-o", str(program), str(source)]
        if name in WITH_LIBRDKAFKA:
            command += [str(library), f"-Wl,-rpath,{library.parent}"]
        command += ["-lpthread"]
        if subprocess.run(command, check=False).returncode:
            raise SystemExit(f"bench: {name} could not be built")
    return target


def _librdkafka() -> pathlib.Path:
    """The shared library of the confluent-kafka wheel of this interpreter."""
    for folder in map(pathlib.Path, sys.path):
        found = sorted(folder.glob("confluent_kafka.libs/librdkafka-*.so*"))
        if found:
            return found[0]
    raise SystemExit("bench: needs confluent-kafka (make setup-test)")
