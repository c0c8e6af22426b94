"""A broker in a thread keeps the end of its log, however long it runs."""

from __future__ import annotations

import logging
import threading

import pytest

from kwire.testing.brokers import thread_logs


def test_the_last_lines_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_logs, "LINES_MAX", 2)
    log = thread_logs.ThreadLog("kwire-test-of-logs")
    log.open()
    try:

        def speak() -> None:
            for number in range(3):
                logging.getLogger("kwire.test").info("line %d", number)

        speaker = threading.Thread(target=speak, name="kwire-test-of-logs-1")
        speaker.start()
        speaker.join()
    finally:
        log.close()
    lines = log.text().splitlines()
    assert [line.rpartition(": ")[2] for line in lines] == ["line 1", "line 2"]
