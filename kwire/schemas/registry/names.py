"""Subjects and their contexts.

orders-value               the subject in the default context, `.`
:.team:orders-value        the same in the context `.team`
:.team:                    that context itself, where a config or a mode is set
:.__GLOBAL:                what holds where nothing else does, for configs and modes
:*:orders                  a prefix in every context, where subjects are listed
"""

from __future__ import annotations

import re
from typing import NamedTuple

from kwire.schemas.registry.errors import Code, RegistryError

DEFAULT = "."
GLOBAL = ".__GLOBAL"
EVERY = ":*:"
SUBJECT_MAX = 1024
"""Characters; the key of a record has it too."""
_RESERVED = ("__GLOBAL", "__EMPTY")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class Name(NamedTuple):
    """A subject in its context; the subject is empty where the context itself is meant."""

    context: str
    subject: str

    @property
    def qualified_context(self) -> str:
        """As it stands before a subject: empty for the default one."""
        return "" if self.context == DEFAULT else f":{self.context}:"

    @property
    def qualified(self) -> str:
        """The one way it is written in records."""
        return self.qualified_context + self.subject

    @property
    def is_default(self) -> bool:
        """Whether it is the default context itself: what is asked of it is asked of all."""
        return self.context == DEFAULT and not self.subject


def name_of(text: str) -> Name:
    """What a qualified text names."""
    if not text.startswith(":."):
        return Name(DEFAULT, text)
    context, _, subject = text[1:].partition(":")
    return Name(context, subject)


def context_of(subject: str) -> str:
    """The context of a qualified subject."""
    return name_of(subject).context


def normalized(text: str) -> str:
    """A qualified subject as it stands in records."""
    return name_of(text).qualified


def context_prefix(context: str) -> str:
    """What stands before the subjects of a context, however that is written: `team`, `.team`,
    `:.team:`."""
    plain = context.strip(":")
    if not plain.startswith("."):
        plain = f".{plain}"
    return Name(plain, "").qualified_context


def check_context(text: str) -> str:
    """The name of a context, however it is written: it has no colon in it, and is not
    that of all. RegistryError 42208."""
    if text == EVERY or ":" in text.strip(":") or _CONTROL.search(text):
        raise RegistryError(Code.INVALID_SUBJECT, f"The context {text[:100]!r} is not valid")
    return text


def beside(parent: str, subject: str) -> str:
    """A subject that `parent` refers to: in the context of that one, unless it names its own."""
    name = name_of(subject)
    if name.context != DEFAULT or subject.startswith(":."):
        return name.qualified
    return Name(context_of(parent), subject).qualified


def check_subject(text: str, *, is_scope: bool = False) -> str:
    """The subject as records have it; RegistryError 42208. `is_scope`: for a config or a mode,
    which contexts have too."""
    name = name_of(text)
    if (
        len(text) > SUBJECT_MAX
        or _CONTROL.search(text)
        or name.subject in _RESERVED
        or text.startswith(EVERY)
        or (not is_scope and (name.context == GLOBAL or name.subject in ("", "*")))
    ):
        shown = repr(text[:100])
        raise RegistryError(Code.INVALID_SUBJECT, f"The subject {shown} is not valid")
    return name.qualified
