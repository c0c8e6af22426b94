"""What a broker in a thread logs: records of the package's logger, told apart by their threads."""

from __future__ import annotations

import logging
from collections import deque

LINES_MAX = 100_000

_package = logging.getLogger("kwire")
_open: list[ThreadLog] = []
_before: tuple[int, bool] = (logging.NOTSET, True)


class ThreadLog(logging.Handler):
    """The log of one broker: that of threads whose names begin with `prefix`.

    While any is open, the package logs at INFO, and to these alone. The last LINES_MAX are kept.
    """

    def __init__(self, prefix: str) -> None:
        super().__init__()
        self._prefix = prefix
        self._lines: deque[str] = deque(maxlen=LINES_MAX)
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))

    def open(self) -> None:
        """Begin to listen; nothing when it does."""
        global _before
        if self in _open:
            return
        if not _open:
            _before = _package.level, _package.propagate
            _package.setLevel(logging.INFO)
            _package.propagate = False
        _open.append(self)
        _package.addHandler(self)

    def close(self) -> None:
        """No more; what was logged stays."""
        if self in _open:
            _open.remove(self)
            _package.removeHandler(self)
            if not _open:
                level, _package.propagate = _before
                _package.setLevel(level)
        super().close()

    def emit(self, record: logging.LogRecord) -> None:
        if (record.threadName or "").startswith(self._prefix):
            self._lines.append(self.format(record))

    def text(self) -> str:
        return "".join(f"{line}\n" for line in self._lines)
