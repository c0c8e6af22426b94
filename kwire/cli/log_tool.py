"""`kwire log`: look at the files of a data directory, of kwire or of Apache Kafka, read only.

    kwire log dump   [--records] [--json] FILE_OR_DIR...   every batch or entry
    kwire log verify [--deep] [--json] FILE_OR_DIR...      what is wrong; status 1 if anything is
    kwire log stats  [--json] FILE_OR_DIR...               sums of each partition

Segments, indexes, producer snapshots, checkpoints, the metadata log and its snapshots. --json
writes an object a line. Exit status 2: a wrong argument, or a file that cannot be read.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches

from kwire.cli.output import Json
from kwire.log.files import SystemFiles
from kwire.log.tools.dumping import Row, dump, stats
from kwire.log.tools.verification import files_of, kind_of, verify

EXIT_FAULTS, EXIT_USAGE = 1, 2
ACTIONS = ("dump", "verify", "stats")


class _NothingThere(Exception):
    """A path without any file of ours; one line."""


def main(arguments: list[str]) -> int:
    """Run `kwire log`; returns the exit status."""
    options = [a for a in arguments if a.startswith("-")]
    words = [a for a in arguments if not a.startswith("-")]
    if "-h" in options or "--help" in options or not arguments:
        sys.stdout.write(__doc__ or "")
        return 0
    allowed = {"dump": ("--records", "--json"), "verify": ("--deep", "--json")}
    action = words[0] if words else ""
    if action not in ACTIONS:
        near = get_close_matches(action, ACTIONS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"expected one of {', '.join(ACTIONS)}"
        return _complain(f"kwire log {action}: {hint}")
    for option in options:
        if option not in allowed.get(action, ("--json",)):
            return _complain(f"unknown argument {option} of kwire log {action}")
    if len(words) < 2:
        return _complain(f"kwire log {action} needs a file or a directory")
    paths = [path.rstrip("/") or path[:1] for path in words[1:]]
    for path in paths:
        fault = _fault(path)
        if fault:
            return _complain(f"{path or repr(path)}: {fault}")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names may be any bytes
    as_json = "--json" in options
    try:
        sizes = [size for path in paths for size in _sizes_of(path)]
        if action == "verify":
            return _verify(paths, sizes, as_json, "--deep" in options)
        rows = (
            _each(paths, lambda path: dump(path, records="--records" in options))
            if action == "dump"
            else _each(paths, stats)
        )
        _write(rows, as_json)
    except BrokenPipeError:
        return EXIT_FAULTS
    except _NothingThere as error:
        return _complain(str(error))
    except OSError as error:
        return _complain(f"{error.filename or ''}: {error.strerror or error}")
    return 0


def _sizes_of(path: str) -> list[int]:
    """The size in bytes of each file; _NothingThere where none is a data directory's.

    What cannot be read is not counted, the action tells of it. Raises OSError where that is all.
    """
    files = SystemFiles()
    sizes: list[int] = []
    is_known = False
    try:
        for file in files_of(path, files):
            is_known = is_known or kind_of(file).name != "other"
            with contextlib.suppress(OSError):
                sizes.append(files.size_of(file))
    except OSError:
        if not is_known:
            raise
    if not is_known:
        raise _NothingThere(f"{path}: no file of a data directory there")
    return sizes


def _fault(path: str) -> str:
    """Why a path is nothing to look at, empty where it may be."""
    if not os.path.exists(path):
        return "no such file or directory"
    if os.path.isdir(path):
        return ""
    if not os.path.isfile(path):
        return "is no file and no directory"
    if kind_of(path).name == "other":
        return "is no file of a log by its name (00000000000000000000.log, .index, ...)"
    return ""


def _complain(text: str) -> int:
    line = text.encode(errors="backslashreplace").decode()
    sys.stderr.write(f"kwire: {line}\n")
    return EXIT_USAGE


def _each(paths: list[str], rows_of: Callable[[str], Iterable[Row]]) -> Iterator[Row]:
    for path in paths:
        yield from rows_of(path)


def _verify(paths: list[str], sizes: list[int], as_json: bool, deep: bool) -> int:
    began = time.monotonic()
    faults = 0
    for path in paths:
        for problem in verify(path, deep=deep):
            faults += 1
            sys.stdout.write((json.dumps(problem._asdict()) if as_json else str(problem)) + "\n")
    if not as_json:
        seconds, size_bytes = max(time.monotonic() - began, 1e-9), sum(sizes)
        sys.stdout.write(
            f"{len(sizes)} files, {size_bytes / 1e6:.1f} MB, {faults} faults, "
            f"{size_bytes / 1e6 / seconds:.0f} MB/s\n"
        )
    return EXIT_FAULTS if faults else 0


def _write(rows: Iterable[Row], as_json: bool) -> None:
    """JSON lines, or for each file a heading and its rows as `name=value`."""
    last = ""
    for row in rows:
        if as_json:
            sys.stdout.write(json.dumps(row) + "\n")
            continue
        title = str(row.get("file", row.get("directory", "")))
        if title != last:
            kind = f" ({row['kind']})" if "kind" in row else ""
            sys.stdout.write(f"{title}{kind}\n")
            last = title
        cells = [
            f"{name}={_cell(value)}"
            for name, value in row.items()
            if name not in ("file", "kind", "directory") and not _is_usual(name, value)
        ]
        sys.stdout.write("  " + " ".join(cells) + "\n")


# What nearly every batch has is left out of the lines for people.
_USUAL = {
    "magic": 2,
    "producer_id": -1,
    "producer_epoch": -1,
    "base_sequence": -1,
    "transactional": False,
    "control": False,
    "timestamp_type": "create",
    "codec": "none",
}


def _is_usual(name: str, value: Json) -> bool:
    return name in _USUAL and value == _USUAL[name]


def _cell(value: Json) -> str:
    if isinstance(value, dict):
        return ",".join(f"{name}:{count}" for name, count in value.items()) or "-"
    if value is None:
        return "null"
    return str(value)
