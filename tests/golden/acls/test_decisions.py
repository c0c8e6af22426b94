"""Decisions by ACLs at random: kwire's are those that Kafka's StandardAuthorizer took.

`tests/support/acl_questions.py` draws the ACLs and questions and recorded the answers, by
`AclOracle.java`: allowed or not, and by which ACL.
"""

from __future__ import annotations

import gzip
import json

import pytest

from tests.support.acl_questions import DATA, SEED, SETS, drawn, our_answers

RECORDED: list[list[str]] = json.loads(gzip.decompress(DATA.read_bytes()))


@pytest.mark.parametrize("number", range(SETS))
def test_decisions_are_those_of_kafka(number: int) -> None:
    given = drawn(SEED, SETS)[number]
    answers = our_answers(given)
    wrong = [
        (question, kafkas, ours)
        for question, kafkas, ours in zip(given.questions, RECORDED[number], answers, strict=True)
        if kafkas != ours
    ]
    assert wrong == [], given.acls
