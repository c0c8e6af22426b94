"""/metrics in the HTTP process: what cannot be written as it is does not cost the whole answer."""

from __future__ import annotations

import os
from typing import cast

from kwire.http.local import LocalBroker
from kwire.http.purposes.metrics import _Metrics
from kwire.metrics.blocks import encoded


def test_a_directory_whose_path_is_no_utf_8_is_shown() -> None:
    path = os.fsdecode(b"/data/\xff")
    line = encoded(("logDirectory",), ("kafka_log_logmanager_logdirectoryoffline",), [(path, 0)])
    metrics = _Metrics(cast(LocalBroker, None))
    for as_openmetrics in (False, True):
        text = metrics._body(line, b"", 0.0, as_openmetrics).decode()
        assert 'logdirectoryoffline{logDirectory="/data/?"} 0\n' in text
