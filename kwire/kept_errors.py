"""Errors that outlive the handler that caught them.

An exception that was raised holds the frames that it passed through, and these their local
variables and their callers: the request, the buffer that it was received into, often enough
whatever keeps the exception itself. Such a cycle goes only when the garbage collector comes by. So
whoever keeps an error (returns it, stores it, fails a Pending with it) keeps `kept(error)`, and a
kept one is raised as `anew(error)`.
"""

from __future__ import annotations

import copy
from typing import TypeVar

E = TypeVar("E", bound=BaseException)


class Outcome:
    """Base of errors that are an answer: where they were raised is nothing to be told."""


def kept(error: E) -> E:
    """The same error without frames, causes and contexts. A fault of ours has them as text, those
    of the first time: a text that quotes the one before doubles each time that it is raised."""
    is_told = bool(getattr(error, "__notes__", ())) or isinstance(error, (Outcome, OSError))
    if error.__traceback__ is not None and not is_told:
        from traceback import format_exception

        error.add_note("".join(format_exception(error)).rstrip())
    error.__traceback__ = error.__context__ = error.__cause__ = None
    return error


def anew(error: E) -> E:
    """A copy to be raised; the error itself where it cannot be copied."""
    try:
        again = copy.copy(error)
    except Exception:  # its class takes other arguments than it gives to its base
        return error
    return again if type(again) is type(error) else error
