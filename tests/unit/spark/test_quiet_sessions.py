"""What PySpark would write to stderr beside a job's own lines."""

from __future__ import annotations

import socket
from types import SimpleNamespace

import pytest

pytest.importorskip("pyspark")

from kwire.spark import session


def test_a_jvm_that_ends_leaves_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    """PySpark's server of accumulators wrote one of socketserver, before the line that says why."""
    from pyspark.accumulators import _start_update_server

    server = _start_update_server("secret", False)
    try:
        for silent in (False, True):
            if silent:
                session._say_nothing_of_accumulators(SimpleNamespace(_accumulatorServer=server))
            with socket.create_connection(server.server_address) as jvm:  # type: ignore[arg-type]
                jvm.sendall(b"cut")
                jvm.shutdown(socket.SHUT_WR)
                assert jvm.recv(1) == b""  # the handler has ended
            assert ("Traceback" in capsys.readouterr().err) is not silent
    finally:
        server.shutdown()
