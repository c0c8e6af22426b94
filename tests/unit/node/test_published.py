"""Whether what is published has all of a time: the quorum's leader has to say so later."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from kwire.node.published import PublishedMetadata


@pytest.mark.parametrize(
    ("complete", "has_all"),
    [
        (None, False),
        ((8, 99), False),  # the answer is older
        ((9, 100), False),  # not published yet
        ((8, 100), True),
        ((5, 200), True),
    ],
)
def test_it_has_all_of_a_time(complete: tuple[int, int] | None, has_all: bool) -> None:
    quorum = SimpleNamespace(kraft_version=1, complete=complete)
    published = PublishedMetadata("internal", (), lambda: quorum)
    published.image.offset = 7
    assert published.has_all_of(100) == has_all
