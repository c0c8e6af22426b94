"""For every test: Hypothesis judges no times, a failure shows the logs of the brokers, and a
secret that is told anywhere is a failure."""

from __future__ import annotations

import sys
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import settings

from tests.support import told

HARNESS = "kwire.testing.cluster.process"

settings.register_profile("kwire", deadline=None)
settings.load_profile("kwire")
told.watch_http()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that failed shows the ends of the logs of the brokers that ran."""
    report = yield
    harness = sys.modules.get(HARNESS)
    _search(report, harness)
    if report.failed and harness is not None:
        for name, tail in harness.logs().items():
            report.sections.append((f"log of {name}", tail))
    return report


def pytest_runtest_setup() -> None:
    """Logs are looked at before they are gone."""
    if HARNESS in sys.modules:
        told.watch(sys.modules[HARNESS])


def _search(report: pytest.TestReport, harness: Any) -> None:
    """Fail a test whose nodes, whose responses or who itself told a secret."""
    for name, text in report.sections:
        told.search(text, name)
    if harness is not None:
        for process in harness.running():
            told.look(process)
    found = told.found()
    if found and not report.failed:
        report.outcome = "failed"
        report.longrepr = "a secret was told:\n" + "\n".join(found)
