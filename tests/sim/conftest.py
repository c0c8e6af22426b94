"""What tests of the simulation share."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture
def quiet() -> Iterator[None]:
    """Crashes are told in many lines, and so is what they leave behind."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
