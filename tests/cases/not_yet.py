"""`not_yet.tsv`: which cases need what isn't built yet, and why.

A line is `file`, `file::test` or `file::test[parameters]`, a tab, the reason. These cases run, for
`LIMIT_S` seconds at most, and are expected to fail: one that passes fails the run, so that the list
shrinks as the work goes on. `tests/unit/test_not_yet.py` sees to it that every line names a case.
"""

from __future__ import annotations

import functools
import pathlib

import pytest

LIST = pathlib.Path(__file__).parent / "not_yet.tsv"
LIMIT_S = 10


@functools.cache
def entries():
    """Name -> reason."""
    found = {}
    for line in LIST.read_text().splitlines():
        if line and not line.startswith("#"):
            name, _, reason = line.partition("\t")
            assert reason.strip(), f"{name} has no reason"
            found[name] = reason.strip()
    return found


def reason(item):
    """Why this test cannot pass, or None."""
    name = item.nodeid.rsplit("/", 1)[-1]
    for candidate in (name, name.split("[", 1)[0], name.split("::", 1)[0]):
        if candidate in entries():
            return entries()[candidate]
    return None


def mark(items):
    """Expect the cases of the list to fail; what they need and is not offered still skips them."""
    for item in items:
        why = reason(item)
        if why is not None:
            item.add_marker(pytest.mark.xfail(reason=why, strict=True), append=False)
            item.add_marker(pytest.mark.timeout(LIMIT_S), append=False)
