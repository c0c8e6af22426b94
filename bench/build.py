"""Build the load generators (C, librdkafka) into the cache; returns where they are.

The library is the one inside the confluent-kafka wheel: consumers of a fast broker need
`fetch.queue.backoff.ms=1`, which older ones lack. `librdkafka.h` declares what is called.
"""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys
from collections.abc import Sequence

HERE = pathlib.Path(__file__).resolve().parent
WITH_LIBRDKAFKA = ("rkperf", "rklat")
PLAIN = ("blast", "blast_share")


def build(
    target: pathlib.Path, programs: Sequence[str] = (*WITH_LIBRDKAFKA, *PLAIN)
) -> pathlib.Path:
    """The folder with the programs; SystemExit names what is missing."""
    if shutil.which("gcc") is None:
        raise SystemExit("bench: needs gcc")
    target.mkdir(parents=True, exist_ok=True)
    for name in programs:
        source, program = HERE / f"{name}.c", target / name
        needs_library = name in WITH_LIBRDKAFKA
        if is_built(program, source, needs_library=needs_library):
            continue
        command = ["gcc", "-O2", "-w", "-o", str(program), str(source)]
        if needs_library:
            library = _librdkafka()
            command += [str(library), f"-Wl,-rpath,{library.parent}"]
        command += ["-lpthread"]
        if subprocess.run(command, check=False).returncode:
            raise SystemExit(f"bench: {name} could not be built")
        if needs_library:
            library_path(program).write_text(f"{library}\n", encoding="utf-8")
    return target


def library_path(program: pathlib.Path) -> pathlib.Path:
    """The file beside a program that says which library it was linked with."""
    return program.with_suffix(".library")


def is_built(program: pathlib.Path, source: pathlib.Path, *, needs_library: bool) -> bool:
    """Whether a program is as new as its source, and the library that it loads is still there: one
    in another environment may be gone, or be of another version."""
    if not program.exists() or program.stat().st_mtime <= source.stat().st_mtime:
        return False
    if not needs_library:
        return True
    linked = library_path(program)
    return linked.exists() and pathlib.Path(linked.read_text(encoding="utf-8").strip()).exists()


def _librdkafka() -> pathlib.Path:
    """The shared library of the confluent-kafka wheel of this interpreter."""
    for folder in map(pathlib.Path, sys.path):
        found = sorted(folder.glob("confluent_kafka.libs/librdkafka-*.so*"))
        if found:
            return found[0]
    raise SystemExit("bench: needs confluent-kafka (make setup-test)")
