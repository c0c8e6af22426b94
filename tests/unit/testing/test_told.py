"""The suite finds a secret wherever it is told (`tests/support/told.py`), and the test fails."""

from __future__ import annotations

import http.client
import socket

import pytest

from kwire.testing.cluster import process
from tests.conftest import _search
from tests.support import told

SECRET = "-".join(["alice", "secret"])  # this file's own text is no secret told


def report_of(*sections: tuple[str, str]) -> pytest.TestReport:
    return pytest.TestReport(
        "a test", ("a file", 1, "a test"), {}, "passed", None, "call", list(sections)
    )


def failed(report: pytest.TestReport) -> bool:
    _search(report, process)
    return report.failed


def test_what_a_test_prints_and_logs_is_searched() -> None:
    assert not failed(report_of(("Captured stdout call", "alice has no secret")))
    report = report_of(("Captured log call", f"password={SECRET};"))
    assert failed(report)
    assert "Captured log call: ...password=" in str(report.longrepr)
    assert not failed(report_of())


def test_a_response_is_searched() -> None:
    told.search(b"\0\1" + SECRET.encode(), "a response")
    assert failed(report_of())


def test_what_is_read_by_http_is_searched() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(f"HTTP/1.1 200 OK\r\n\r\nlogin {SECRET}\n".encode())
        theirs.shutdown(socket.SHUT_WR)
        response = http.client.HTTPResponse(ours)
        response.begin()
        assert SECRET.encode() in response.read()
        response.close()
    assert failed(report_of())


@pytest.mark.parametrize("is_closed", [False, True])
def test_the_log_of_a_node_is_searched_also_when_it_is_closed(is_closed: bool) -> None:
    told.watch(process)
    node = process.ServeProcess("node")
    node.log_path.write_text("started\n")
    assert not failed(report_of())
    with node.log_path.open("a") as log:
        log.write(f"hello {SECRET}\n")
    if is_closed:
        node.close()
    assert failed(report_of())
    node.close()
    assert not failed(report_of())
