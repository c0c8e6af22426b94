"""/metrics in the HTTP process: what cannot be written as it is does not cost the whole answer."""

from __future__ import annotations

import os
from typing import cast

from kwire.http.local import LocalBroker
from kwire.http.purposes.metrics import _Metrics
from kwire.http.remote_ends import RemoteEnds
from kwire.metrics.blocks import decoded, encoded
from kwire.telemetry.kept_pushes import KeptPushes, Push
from tests.support.telemetry.otlp_writer import many


def test_a_directory_whose_path_is_no_utf_8_is_shown() -> None:
    path = os.fsdecode(b"/data/\xff")
    line = encoded(("logDirectory",), ("kafka_log_logmanager_logdirectoryoffline",), [(path, 0)])
    metrics = _Metrics(cast(LocalBroker, None), RemoteEnds(""))
    for as_openmetrics in (False, True):
        text = metrics._body(decoded(line), b"", 0.0, as_openmetrics, {}).decode()
        assert 'logdirectoryoffline{logDirectory="/data/?"} 0\n' in text


def test_a_client_is_not_repeated_by_a_name_of_any_length() -> None:
    """Each of its series has its name as a label: 50,000 of 32 KB were more than a gigabyte."""
    payload = many(f"org.apache.kafka.{number}" for number in range(100))
    kept = KeptPushes()
    kept.add(Push("id", "\x01" * 32_000, "s" * 32_000, "v" * 32_000, 1000, 0, 0, payload))
    metrics = _Metrics(cast(LocalBroker, None), RemoteEnds(""))
    text = metrics._body([], b"".join(kept.read(0, 0)), 0.0, True, {}).decode()
    assert text.count("org_apache_kafka_99{") == 1
    assert len(text) < 200_000
