"""What happens in words, on standard output."""

from __future__ import annotations

import sys

from kwire.trace.events import Event
from kwire.trace.explaining import Explainer


class Narration:
    """Says what is to be said of each event."""

    def __init__(self) -> None:
        self._explainer = Explainer()

    def tell(self, event: Event) -> None:
        """A line a sentence."""
        for told in self._explainer.event(event):
            sys.stdout.write(f"{_printable(str(told))}\n")
            sys.stdout.flush()


def _printable(text: str) -> str:
    """Names of clients are in it: nothing of them moves a terminal's cursor."""
    return text if text.isprintable() else ascii(text)[1:-1]
