"""A start that fails because a log directory did: one line, not the traceback of a lost task."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from kwire.cli import serve
from kwire.cli.serve_arguments import parse_serve
from kwire.log.files import SystemFiles
from kwire.testing.cluster import Broker
from tests.support.wire import WireClient, produce_values


def test_a_disk_that_is_full_when_the_logs_are_loaded(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    with Broker(data_dir=tmp_path) as broker, WireClient(broker.bootstrap) as client:
        client.create_topic("t")
        produce_values(client, "t", 0, [b"x"])
    healthy = SystemFiles.contents

    def contents(files: SystemFiles, path: str) -> tuple[dict[str, int], list[str]]:
        if path.endswith("/t-0"):
            raise OSError(errno.ENOSPC, "no space left on device", path)
        return healthy(files, path)

    monkeypatch.setattr(SystemFiles, "contents", contents)
    status = serve.serve(parse_serve(["--listen", "127.0.0.1:0", "--data-dir", str(tmp_path)]))
    assert status == serve.EXIT_FAILED
    (line,) = [x for x in capfd.readouterr().err.splitlines() if x.startswith("kwire: ")]
    assert str(tmp_path) in line
    assert "no space left" in line
    assert "never retrieved" not in caplog.text
