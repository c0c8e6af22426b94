"""What is wrong with a job: in its options, or in what it met. One line for the user each."""

from __future__ import annotations

from collections.abc import Sequence

from kwire.urls import without_userinfo


class UsageError(Exception):
    """A wrong option or a missing installation: one line for the user."""


class JobError(Exception):
    """What made a job fail, in one line."""


class FinalError(JobError):
    """A JobError that trying again does not help."""


def check_address(location: str, option: str = "") -> None:
    """UsageError where keys stand in the address of a store: it is told, and kept in summaries."""
    shown = without_userinfo(location)
    if shown != location:
        raise UsageError(
            f"{option} {shown}: keys in an address are not accepted, as it is shown; settings and "
            "the environment are for them (docs/SPARK.md, Object stores)".lstrip()
        )


def pairs(texts: Sequence[str], option: str) -> dict[str, str]:
    """`NAME=VALUE` options as a dict; UsageError names the one that is none."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"{option} {text}: expected NAME=VALUE")
        found[name.strip()] = value
    return found
