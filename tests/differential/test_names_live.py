"""The names of certificates and the rules for them: Java says the same as recorded (needs Java)."""

from __future__ import annotations

from tests.support.kafka import kafka_libs
from tests.support.names import answers_of_java, is_same, our_answer, questions


def test_names_and_rules_mean_what_they_mean_to_java() -> None:
    said = answers_of_java(kafka_libs())
    wrong = {
        question: (java, ours)
        for question, java in zip(questions(), said, strict=True)
        if not is_same(java, ours := our_answer(question))
    }
    assert wrong == {}
