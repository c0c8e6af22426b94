"""As in tests/: a failure shows the logs of the brokers, and a secret that is told is a failure."""

from tests.conftest import pytest_runtest_makereport, pytest_runtest_setup

__all__ = ["pytest_runtest_makereport", "pytest_runtest_setup"]
