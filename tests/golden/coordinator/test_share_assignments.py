"""The simple assignor of share groups gives what Apache Kafka 4.4's gives, partition by partition
(see share_assignments.py)."""

from __future__ import annotations

from tests.golden.coordinator.share_assignments import load, ours


def test_everybody_gets_the_partitions_that_kafka_gives() -> None:
    recorded = load()
    kinds = {question.split("\t")[0] for question, _ in recorded}
    assert kinds == {"same", "different"}
    different = [question for question, answer in recorded if ours(question) != answer]
    assert different == []
