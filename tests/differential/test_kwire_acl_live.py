"""`kwire acl` tells of an Apache Kafka what it tells of a kwire (needs a JVM)."""

from __future__ import annotations

import pathlib

import pytest

from tests.golden.acls.dialogue import PROPERTIES
from tests.support.kafka import running_kafka
from tests.system.test_acls import Told, tell_all


def test_kwire_acl_of_an_apache_kafka(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running_kafka(tmp_path, PROPERTIES) as bootstrap:
        tell_all(Told(bootstrap, capsys), is_kwire=False)
