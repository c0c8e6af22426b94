"""Answers that come one after another (`kwire/pending.py`)."""

from __future__ import annotations

from kwire.pending import Pending, then


def test_what_follows_begins_when_the_first_is_there_and_is_waited_for() -> None:
    first: Pending[int] = Pending()
    second: Pending[str] = Pending()
    asked: list[int] = []

    def follow(done: Pending[int]) -> Pending[str]:
        asked.append(done.result())
        return second

    outcome = then(first, follow)
    assert asked == []
    first.complete(7)
    assert (asked, outcome.done) == ([7], False)
    second.complete("x")
    assert outcome.result() == "x"


def test_what_follows_may_be_there_at_once() -> None:
    assert then(Pending.completed(7), lambda done: str(done.result())).result() == "7"


def test_an_error_of_either_is_that_of_the_whole() -> None:
    error = ValueError("x")
    failed: list[Pending[int]] = [
        then(Pending[int].failed(error), lambda done: done.result()),
        then(Pending.completed(1), lambda _: Pending[int].failed(error)),
        then(Pending.completed(1), lambda _: 1 // 0),
    ]
    kinds = [type(each.error()) for each in failed]
    assert kinds == [ValueError, ValueError, ZeroDivisionError]


def test_who_waits_no_more_ends_what_is_under_way() -> None:
    ended: list[str] = []
    first: Pending[int] = Pending(lambda: ended.append("first"))
    second: Pending[int] = Pending(lambda: ended.append("second"))
    then(first, lambda _: second).cancel()
    assert ended == ["first"]
    both = then(Pending.completed(1), lambda _: second)
    both.cancel()
    assert ended == ["first", "second"]
