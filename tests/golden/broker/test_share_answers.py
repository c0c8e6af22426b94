"""ShareFetch and ShareAcknowledge are answered as Apache Kafka 4.4 answers them, to sense and to
nonsense, and along random walks of three members.

`tests/golden/data/share_answers.json.gz` holds what Kafka said; made by
`python -m tests.golden.broker.test_share_answers`. `tests/differential/test_share_live.py` asks
anew.
"""

from __future__ import annotations

import gzip
import json
import pathlib
import tempfile
from typing import Any

from kwire.protocol.errors import ErrorCode
from kwire.testing.cluster import Broker, Cluster
from tests.support.kafka import running_kafka
from tests.support.share.deleted import deleted
from tests.support.share.dialogue import PROPERTIES, dialogue, walks

DATA = pathlib.Path(__file__).parent.parent / "data" / "share_answers.json.gz"


def recorded() -> dict[str, Any]:
    said: dict[str, Any] = json.loads(gzip.decompress(DATA.read_bytes()))
    return said


def test_a_conversation_of_share_groups_is_that_of_kafka() -> None:
    expected = recorded()["dialogue"]
    with Broker(options=PROPERTIES) as broker:
        ours = list(dialogue(broker.bootstrap))
    assert len(ours) == len(expected) > 100
    for said, wanted in zip(ours, expected):
        assert said == wanted


def test_random_walks_of_share_groups_are_those_of_kafka() -> None:
    expected = recorded()["walks"]
    with Broker(options=PROPERTIES) as broker:
        ours = list(walks(broker.bootstrap))
    assert len(ours) == len(expected) >= 8
    for walk, wanted in zip(ours, expected):
        for said, step in zip(walk, wanted, strict=True):
            assert said == step


def test_a_group_that_is_deleted_beside_a_session_is_as_with_kafka() -> None:
    """A leader that is not the group's coordinator hears of the deletion when it writes next.

    Until then a session goes on, and so does the group that was made in the place of the old one:
    nobody gets anything that he would not get from Kafka.
    """
    settings = {**PROPERTIES, "default.replication.factor": "1"}
    with Cluster(combined=(1,), brokers=(2,), settings=settings) as cluster:
        cluster.start()
        ours = list(deleted(cluster[1].bootstrap, is_apart=True))
    assert ours == recorded()["deleted"]


def test_a_leader_that_coordinates_the_group_forgets_it_at_once() -> None:
    """It hears of the deletion itself, and has nothing of the group from then on (ADR 35)."""
    with Broker(options=PROPERTIES) as broker:
        ours = dict(deleted(broker.bootstrap, is_apart=False))
    kafkas = dict(recorded()["deleted"])
    # The session goes on in the new group: its records are free for it.
    assert ours.pop("the old one fetches") == kafkas["acquired"]
    assert kafkas.pop("the old one fetches") == [0, None, []]
    late = "the old one accepts in a deleted group"
    assert ours.pop(late) == [0, None, [[ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None]]]
    (((code, _message),),) = kafkas.pop(late)[2:]
    assert code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert ours == kafkas


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as directory,
        running_kafka(pathlib.Path(directory), PROPERTIES) as bootstrap,
    ):
        said = {
            "dialogue": list(dialogue(bootstrap)),
            "walks": list(walks(bootstrap)),
            "deleted": list(deleted(bootstrap, is_apart=False)),
        }
    with open(DATA, "wb") as file, gzip.GzipFile("", "wb", 9, file, 0) as packed:
        packed.write(json.dumps(said).encode())


if __name__ == "__main__":
    main()
