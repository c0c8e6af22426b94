"""For every test: Hypothesis judges no times, a failure shows the logs of the brokers."""

from __future__ import annotations

import sys
from collections.abc import Generator

import pytest
from hypothesis import settings

settings.register_profile("kwire", deadline=None)
settings.load_profile("kwire")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that failed shows the ends of the logs of the brokers that ran."""
    report = yield
    harness = sys.modules.get("kwire.testing.cluster.process")
    if report.failed and harness is not None:
        for name, tail in harness.logs().items():
            report.sections.append((f"log of {name}", tail))
    return report
