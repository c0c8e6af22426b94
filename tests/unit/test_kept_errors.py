"""Errors that are kept beyond their handler: without frames, raised as copies."""

from __future__ import annotations

import errno
import gc
import weakref
from typing import Any

import pytest

from kwire.kept_errors import anew, kept
from kwire.pending import Pending, after
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records.header import NoBatchError
from kwire.protocol.records.validation import InvalidRecordsError


class Request:
    """What a frame holds."""


def raised(error: Exception, cause: Exception | None = None) -> Exception:
    """The error after it was raised, by a frame that has a request."""
    try:
        try:
            if cause is not None:
                raise cause
        except Exception as first:
            raise error from first
        raise error
    except Exception as caught:
        return caught


ERRORS = [
    KafkaError(ErrorCode.INVALID_TXN_STATE, "why"),
    InvalidRecordsError(ErrorCode.INVALID_RECORD, "two", []),
    NoBatchError("three"),
    OSError(errno.ENOSPC, "No space left on device", "/file"),
    ValueError("a fault of ours"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_what_is_kept_has_no_frames(error: Exception) -> None:
    found = kept(raised(error, ValueError("first")))
    assert found is error
    assert found.__traceback__ is found.__cause__ is found.__context__ is None


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_copy_says_the_same(error: Exception) -> None:
    again = anew(error)
    assert type(again) is type(error)
    assert again is not error
    assert str(again) == str(error)
    assert vars(again) == vars(error)


def test_what_cannot_be_copied_is_raised_itself() -> None:
    class Odd(Exception):
        def __init__(self, one: int, two: int) -> None:
            super().__init__(f"{one} and {two}")

    error = Odd(1, 2)
    assert anew(error) is error


def test_a_fault_of_ours_keeps_its_place_as_text() -> None:
    found = kept(raised(ValueError("a fault"), OSError("its cause")))
    (note,) = found.__notes__
    assert "in raised" in note
    assert "its cause" in note
    assert not hasattr(kept(raised(KafkaError(ErrorCode.INVALID_TXN_STATE))), "__notes__")


def test_a_fault_that_is_raised_over_and_over_does_not_grow() -> None:
    """Its text quoted the texts before it: each time twice as much."""
    error = kept(raised(ValueError("a fault")))
    notes = list(error.__notes__)
    for _ in range(20):
        again = kept(raised(anew(error)))
        assert again.__notes__ == error.__notes__ == notes


@pytest.mark.parametrize("reads", [1, 3])
def test_a_failed_pending_keeps_nothing_of_who_failed_or_read_it(reads: int) -> None:
    """Each reader's frame held the Pending, and the Pending, by its error, each reader's frame."""

    def fail(pending: Pending[Any], request: Request) -> None:
        try:
            raise KafkaError(ErrorCode.INVALID_TXN_STATE)
        except KafkaError as error:
            pending.fail(error)

    def read(pending: Pending[Any], request: Request) -> None:
        with pytest.raises(KafkaError):
            pending.result()

    gc.collect()
    gc.disable()
    try:
        pending: Pending[Any] = Pending()
        outcome = after(pending, lambda done: done.result())
        request = Request()
        alive = weakref.ref(request)
        fail(pending, request)
        for _ in range(reads):
            read(pending, request)
            read(outcome, request)
        del request
        assert alive() is None
        ends = weakref.ref(pending.error()), weakref.ref(outcome.error())
        del pending, outcome
        assert [end() for end in ends] == [None, None]
    finally:
        gc.enable()
