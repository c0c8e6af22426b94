"""The `kwire` command: `serve` here, everything else in `kwire/cli/app.py`.

`serve` imports nothing that it does not need (no argparse, no Typer): it is ready in a third of a
second from process start.
"""

from __future__ import annotations

import gc
import os
import sys

from kwire.cli.serve_arguments import USAGE, UsageError, parse_serve

EXIT_USAGE = 2
EXIT_INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    _open_standard_streams()
    try:
        return _run(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:  # `serve` has its own way to stop, once it has begun
        return EXIT_INTERRUPTED


def _open_standard_streams() -> None:
    """In place of a closed one the null device: a socket or a partition's file of that number
    would have what is written to it, and uvloop ends the process."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number: this one
            mode = "w" if number else "r"
            stream = os.fdopen(number, mode, encoding="utf-8", closefd=False)
            setattr(sys, name, stream)


def _run(arguments: list[str]) -> int:
    if arguments and arguments[0] == "serve":
        return _serve(arguments[1:])
    if arguments and arguments[0] == "format":
        from kwire.cli.format import main as run_format

        return run_format(arguments[1:])
    if arguments and arguments[0] == "spark":
        from kwire.spark.commands import main as run_spark

        return run_spark(arguments[1:])
    if arguments and arguments[0] == "log":
        from kwire.cli.log_tool import main as run_log

        return run_log(arguments[1:])
    from kwire.cli.app import main as run_app

    return int(run_app(arguments) or 0)


def _serve(arguments: list[str]) -> int:
    from kwire.config.errors import ConfigError

    try:
        parsed = parse_serve(arguments)
        if parsed.help:
            sys.stdout.write(USAGE)
            return 0
        if parsed.brokers:
            from kwire.cli.cluster import serve_cluster

            return serve_cluster(parsed)
        gc.disable()  # what a start makes stays; `serve` turns it on again
        from kwire.cli.serve import serve

        return serve(parsed)
    except (UsageError, ConfigError) as error:
        sys.stderr.write(f"kwire: {error}\n")
        return EXIT_USAGE
    finally:
        gc.enable()
