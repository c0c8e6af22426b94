"""Types that several calls have in common, with their bounds."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

from kwire.http.purposes.rest.problems import Offset

__all__ = ["Base64", "Group", "GroupOffset", "GroupOffsets", "OfTopic", "Offset", "Topic"]

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
LIST_MAX = 10_000
BASE64 = r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"


WORDS: dict[str, str] = {}
"""What a text may be, by the pattern that says so to programs."""


def whole(pattern: str, words: str) -> Meta:
    """A text that is this from its first character to its last, to Python, whose `$` takes a line
    feed behind it, and to JSON Schema, which has no other; `words` say it to people."""
    found = rf"^{pattern}$(?!\n)"
    WORDS[found] = words
    return Meta(pattern=found)


Topic: TypeAlias = Annotated[
    str, whole("[a-zA-Z0-9._-]{1,249}", "1 to 249 letters, digits, dots, underscores and hyphens")
]
Group: TypeAlias = Annotated[str, whole("[^/]{1,249}", "1 to 249 characters, none of them a slash")]
Partition: TypeAlias = Annotated[int, Meta(ge=0, le=INT32_MAX)]
AnOffset: TypeAlias = Annotated[int, Meta(ge=0, le=INT64_MAX)]
Base64: TypeAlias = Annotated[bytes, Meta(extra_json_schema={"pattern": BASE64})]


class OfTopic(Struct, frozen=True, forbid_unknown_fields=True):
    """What is asked of a topic."""

    topic: Topic


class OfGroup(Struct, frozen=True, forbid_unknown_fields=True):
    """What is asked of a group."""

    group: Group


class GroupOffset(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a group reads on in a partition."""

    topic: Topic
    partition: Partition
    offset: AnOffset


class GroupOffsets(Struct, frozen=True, forbid_unknown_fields=True):
    """Of some partitions."""

    offsets: Annotated[list[GroupOffset], Meta(max_length=LIST_MAX)]
