"""What clients make of real failures between two brokers of a live Apache Kafka, anew."""

from __future__ import annotations

import json
import pathlib

import pytest

from tests.support.cluster_fault_answers import started
from tests.support.failing.pairs import DATA, outcomes

pytestmark = [
    pytest.mark.filterwarnings("ignore:read_text is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:open_text is deprecated:DeprecationWarning"),
]


def test_clients_of_two_brokers_of_kafka_see_what_is_recorded(tmp_path: pathlib.Path) -> None:
    with started(tmp_path) as nodes:
        assert outcomes(nodes.start()) == json.loads(DATA.read_text())
