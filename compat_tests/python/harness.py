"""Runs the numbered promises of one client library against a broker and says which hold.

A case is a function whose first docstring line says what a broker must do. Cases run in order of definition, each with
its own topic and group names; one that raises has failed and the others go on.
"""

import asyncio
import inspect
import os
import sys
import threading
import time
import traceback
import uuid

REPLICAS = int(os.environ.get("RF", "1"))
"""Of the topics that the programs create."""

CODECS = (None, "gzip", "snappy", "lz4", "zstd")
cases = []


def case(function):
    cases.append(function)
    return function


class Skip(Exception):
    """The client cannot ask for this."""


def fresh(word):
    return f"cf-{word}-{uuid.uuid4().hex[:10]}"


def until(condition, seconds=30, step=0.1):
    """Waits for a truthy condition() and returns it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(step)
    raise AssertionError(f"not so within {seconds} s")


def equal(got, wanted, what="value"):
    assert got == wanted, f"{what}: got {got!r}, wanted {wanted!r}"


def raises(name, call, *args, **kw):
    """The call must raise an error whose class name or text holds `name` (or one of several, apart by |)."""
    try:
        value = call(*args, **kw)
    except Exception as error:
        text = f"{type(error).__name__} {error}"
        assert any(word in text for word in name.split("|")), f"wanted {name}, got {text}"
        return error
    raise AssertionError(f"wanted {name}, got {value!r}")


def call(function, bootstrap, limit):
    """Run one case; one that takes longer than `limit` seconds has failed, and is left behind."""
    if inspect.iscoroutinefunction(function):
        asyncio.run(asyncio.wait_for(function(bootstrap), limit))
        return
    errors = []

    def run():
        try:
            function(bootstrap)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(limit)
    if thread.is_alive():
        raise TimeoutError(f"not done within {limit} s")
    if errors:
        raise errors[0]


def main(suite, limit=120):
    """argv: BOOTSTRAP [OUT.tsv] [word that case names must hold]"""
    os.environ.setdefault("BOOTSTRAP", sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092")
    out = sys.argv[2] if len(sys.argv) > 2 and sys.argv[2] else os.devnull
    word = sys.argv[3] if len(sys.argv) > 3 else ""
    counts = {"pass": 0, "fail": 0, "skip": 0}
    with open(out, "w") as rows:
        for function in cases:
            if word not in function.__name__:
                continue
            start = time.monotonic()
            why = ""
            try:
                call(function, os.environ["BOOTSTRAP"], limit)
                outcome = "pass"
            except Skip as reason:
                outcome, why = "skip", str(reason)
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                text = traceback.format_exception_only(type(error), error)
                outcome, why = "fail", "".join(text).strip()
                if os.environ.get("TRACE"):
                    traceback.print_exception(error)
            counts[outcome] += 1
            took = time.monotonic() - start
            rows.write(f"{function.__name__}\t{outcome}\t{took:.2f}\n")
            rows.flush()  # what hangs must not take with it what is known
            print(f"{outcome.upper()} {function.__name__} {took:.1f}s {why}", flush=True)
    print(f"{suite}: passed {counts['pass']} failed {counts['fail']} skipped {counts['skip']}")
    sys.stdout.flush()
    os._exit(1 if counts["fail"] else 0)  # a client thread that hangs must not keep the run
