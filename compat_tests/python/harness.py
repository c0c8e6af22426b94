"""Runs the numbered promises of one client library against a broker and says which hold.

A case is a function whose first docstring line says what a broker must do. Cases run in order of definition, each with
its own topic and group names; one that raises has failed and the others go on.
"""

import asyncio
import inspect
import os
import sys
import time
import traceback
import uuid

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


def main(suite, limit=120):
    """argv: BOOTSTRAP [OUT.tsv] [word that case names must hold]"""
    os.environ.setdefault("BOOTSTRAP", sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092")
    out = sys.argv[2] if len(sys.argv) > 2 and sys.argv[2] else None
    word = sys.argv[3] if len(sys.argv) > 3 else ""
    counts = {"pass": 0, "fail": 0, "skip": 0}
    rows = []
    for function in cases:
        if word not in function.__name__:
            continue
        start = time.monotonic()
        why = ""
        try:
            result = function(os.environ["BOOTSTRAP"])
            if inspect.isawaitable(result):
                asyncio.run(asyncio.wait_for(result, limit))
            outcome = "pass"
        except Skip as reason:
            outcome, why = "skip", str(reason)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            outcome, why = (
                "fail",
                "".join(traceback.format_exception_only(type(error), error)).strip(),
            )
            if os.environ.get("TRACE"):
                traceback.print_exc()
        counts[outcome] += 1
        took = time.monotonic() - start
        rows.append(f"{function.__name__}\t{outcome}\t{took:.2f}\n")
        print(f"{outcome.upper()} {function.__name__} {took:.1f}s {why}", flush=True)
    if out:
        with open(out, "w") as file:
            file.writelines(rows)
    print(f"{suite}: passed {counts['pass']} failed {counts['fail']} skipped {counts['skip']}")
    sys.stdout.flush()
    os._exit(1 if counts["fail"] else 0)  # a client thread that hangs must not keep the run
