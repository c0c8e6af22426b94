"""What only the broker knows: questions by name, answered in slices between its other work.

A part of the broker registers a function; the HTTP process asks by the name. The function gives an
iterator of bytes: each step of it is to take less than a millisecond, and the loop does other work
between two turns. So an answer of any size holds nobody up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

Question: TypeAlias = Callable[[Mapping[str, str]], Iterator[bytes]]
"""`question(arguments)`: pieces of the answer, none over `control.PIECE_BYTES_MAX`. A ValueError
is an argument that is wrong; its text goes to whoever asked."""


class Questions:
    """The registered questions of one broker."""

    def __init__(self) -> None:
        self._by_name: dict[str, Question] = {}

    def register(self, name: str, question: Question) -> None:
        """`question` answers to `name` from now on."""
        assert name not in self._by_name, f"{name} is registered already"
        self._by_name[name] = question

    def ask(self, name: str, arguments: Mapping[str, str]) -> Iterator[bytes]:
        """The pieces of an answer; ValueError for an unknown name or wrong arguments."""
        question = self._by_name.get(name)
        if question is None:
            raise ValueError(f"nobody answers to {name!r}")
        return question(arguments)
