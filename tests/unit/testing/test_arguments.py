"""What cannot be right of a test's broker, cluster, topic or group is one line before anything is
made: it names the argument and what is accepted."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from kwire.testing import Broker, Cluster
from kwire.testing.blocking import BlockingClient
from kwire.testing.groups import Group
from kwire.testing.topics import Topic

NOWHERE = BlockingClient(lambda: "127.0.0.1:1")
TOPIC, GROUP = Topic("t", NOWHERE), Group("g", NOWHERE)
ELSEWHERE = "accepted is a path that is not empty, without commas"

REFUSED: list[tuple[Callable[..., object], dict[str, object], str]] = [
    (Broker, {"config": "a=b"}, "config='a=b': accepted is a dictionary of configs"),
    (Broker, {"config": [("a", "b")]}, "accepted is a dictionary of configs"),
    (Broker, {"port": "9092"}, "port='9092': accepted are 0 to 65535"),
    (Broker, {"port": None}, "port=None: accepted are 0 to 65535"),
    (Broker, {"port": True}, "port=True: accepted are 0 to 65535"),
    (Broker, {"port": -1}, "port=-1: accepted are 0 to 65535"),
    (Broker, {"port": 65536}, "port=65536: accepted are 0 to 65535"),
    (Broker, {"host": ""}, "host='': accepted is a text that is not empty"),
    (Broker, {"host": b"localhost"}, "host=b'localhost': accepted is a text"),
    (Broker, {"process": "yes"}, "process='yes': accepted are True and False"),
    (Broker, {"faults": 1}, "faults=1: accepted are True and False"),
    (Broker, {"directory": 5}, "directory=5: accepted is a path"),
    # They led to the directory that the test runs in, which `reset` empties, and to `b` in there.
    (Broker, {"directory": ""}, f"directory='': {ELSEWHERE}"),
    (Broker, {"directory": "/nowhere/a,b"}, f"directory='/nowhere/a,b': {ELSEWHERE}"),
    (Broker, {"directory": Path("/nowhere/a ")}, f"directory='/nowhere/a ': {ELSEWHERE}"),
    (Cluster, {"brokers": "3"}, "brokers='3': accepted are 1 to 9"),
    (Cluster, {"brokers": 2.5}, "brokers=2.5: accepted are 1 to 9"),
    (Cluster, {"brokers": True}, "brokers=True: accepted are 1 to 9"),
    (Cluster, {"brokers": 10}, "brokers=10: accepted are 1 to 9"),
    (Cluster, {"process": None}, "process=None: accepted are True and False"),
    (Cluster, {"config": 5}, "config=5: accepted is a dictionary of configs"),
    (TOPIC.create, {"config": "a=b"}, "config='a=b': accepted is a dictionary of configs"),
    (TOPIC.send, {"value": "a", "headers": ["h"]}, "accepted is a dictionary of headers"),
    (TOPIC.send, {"value": "a", "headers": {1: "h"}}, "header 1: its name is a text"),
    (TOPIC.send, {"value": "a", "partition": "0"}, "partition='0': accepted are 0 to 2147483647"),
    (TOPIC.send, {"value": "a", "timestamp_ms": 1.5}, "timestamp_ms=1.5: accepted are -"),
    (TOPIC.send, {"value": "a", "timestamp_ms": 1 << 63}, "accepted are -9223372036854775807 to 9"),
    (TOPIC.send_all, {"values": [("k", "v", "h")]}, "a record is a value, or (key, value)"),
    (GROUP.commit, {"offsets": {"t": 1}}, "'t': offsets are by (topic, partition)"),
]


@pytest.mark.parametrize(
    ("make", "given", "told"), REFUSED, ids=[f"{one[0].__name__}-{one[1]}" for one in REFUSED]
)
def test_an_argument_that_cannot_be_right_is_told_in_one_line(
    make: Callable[..., object],
    given: dict[str, object],
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises((TypeError, ValueError)) as caught:
        make(**given)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
