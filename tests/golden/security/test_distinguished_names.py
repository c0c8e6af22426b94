"""Principals of certificates: 38 unusual names and 26 settings of rules, as Java has them.

`names.json.gz` holds the questions of `tests/support/names.py` and the answers of
`NameOracle.java` with Java 17 and Apache Kafka 4.4; `tests/differential/test_names_live.py` asks
anew.
"""

from __future__ import annotations

import gzip
import json
import pathlib

import pytest

from kwire.security.tls.distinguished_name import alternative_names, name_of, subject_of
from tests.support.certificates import Authority
from tests.support.names import is_same, our_answer, questions

DATA = pathlib.Path(__file__).parents[1] / "data" / "names.json.gz"


def test_names_and_rules_mean_what_they_mean_to_java() -> None:
    recorded = dict(json.loads(gzip.decompress(DATA.read_bytes())))
    assert list(recorded) == questions()
    wrong = {
        question: (java, ours)
        for question, java in recorded.items()
        if not is_same(java, ours := our_answer(question))
    }
    assert wrong == {}


def test_a_certificate_is_read_as_far_as_its_names() -> None:
    certificate = Authority().sign("node", ("localhost", "10.0.0.1"))
    assert subject_of(certificate.der) == "CN=node"
    assert alternative_names(certificate.der) == ["[2, localhost]", "[7, 10.0.0.1]"]


@pytest.mark.parametrize("damaged", [b"", b"\x30", b"\x30\x80", b"\x30\x82\x01", b"\x02\x01\x00"])
def test_what_is_no_name_is_a_value_error(damaged: bytes) -> None:
    with pytest.raises(ValueError):
        name_of(damaged)
