"""What clients make of real failures of a live Apache Kafka, anew."""

from __future__ import annotations

import json
import pathlib

import pytest

from tests.support.failing.scenes import DATA, outcomes
from tests.support.failing.worlds import real_kafka

pytestmark = [
    pytest.mark.filterwarnings("ignore:read_text is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:open_text is deprecated:DeprecationWarning"),
]


def test_clients_of_kafka_see_what_is_recorded(tmp_path: pathlib.Path) -> None:
    with real_kafka(tmp_path) as world:
        assert outcomes(world) == json.loads(DATA.read_text())
