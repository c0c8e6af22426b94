"""Schemas read and compared, as work that another process can do.

    SchemaWork     texts with what they refer to, and what is asked of them
    done(work)     what comes of it; it may take long, as long as the texts tell it to
    WorkNeeded     raised by a decision that needs more than is done on a loop: whoever asked has
                   the work done, tells `Schemas` what came of it, and decides again

What is done on a loop is bounded: the worst of 8 KB that is known takes 0.3 s on one core.
"""

from __future__ import annotations

import json
from enum import Enum
from typing import NamedTuple, TypeAlias

from kwire.schemas.compatibility import Compatibility, reasons_against
from kwire.schemas.formats import InvalidSchema, Parsed, parse

INLINE_CHARACTERS_MAX = 8 * 1024
"""Of all texts together; work with more of them is done elsewhere."""
CHARACTERS_MAX = 32 * 1024 * 1024
PARTS_MAX = 10_000


class Kind(Enum):
    """CHECK: whether it can be read; READ: as it is printed; DESCRIBE: a Protobuf schema as its
    descriptor; COMPARE: whether the first of the roots may follow the others, the oldest of which
    is the second."""

    CHECK = "check"
    READ = "read"
    DESCRIBE = "describe"
    COMPARE = "compare"


class Part(NamedTuple):
    """`references`: a name, and which part it stands for; that one comes before."""

    schema_type: str
    text: str
    references: tuple[tuple[str, int], ...]


class SchemaWork(NamedTuple):
    """See the module."""

    kind: Kind
    parts: tuple[Part, ...]
    roots: tuple[int, ...]
    level: Compatibility = Compatibility.NONE

    @property
    def characters(self) -> int:
        return sum(len(part.text) for part in self.parts)

    @property
    def is_inline(self) -> bool:
        """Small enough for a loop."""
        return self.characters <= INLINE_CHARACTERS_MAX


class ReadSchema(NamedTuple):
    """A schema by its texts alone: see `Parsed`."""

    canonical: str
    normalized: str
    record_name: str | None


class Readable(NamedTuple):
    """It can be read, within what a schema may take."""


class Compared(NamedTuple):
    """Why a schema may not follow, and which of the earlier ones; none where it may."""

    reasons: list[str]
    at: int | None


class Descriptor(NamedTuple):
    base64: str


class Refused(NamedTuple):
    """`why` it is no schema; or `package` is not installed."""

    why: str
    package: str = ""


WorkDone: TypeAlias = Readable | ReadSchema | Compared | Descriptor | Refused
_SHAPES = (Readable, ReadSchema, Compared, Descriptor, Refused)


class WorkNeeded(Exception):
    """See the module."""

    def __init__(self, work: SchemaWork) -> None:
        super().__init__(f"{work.characters} characters of schemas are to be read")
        self.work = work


def parsed_parts(parts: tuple[Part, ...]) -> list[Parsed]:
    """Each with its references; InvalidSchema, ImportError."""
    found: list[Parsed] = []
    for part in parts:
        references = {name: found[at] for name, at in part.references}
        one = parse(part.schema_type, part.text, references)
        try:
            one.canonical.encode()
            one.normalized.encode()
        except UnicodeEncodeError:
            raise InvalidSchema("The schema has half of a surrogate pair") from None
        found.append(one)
    return found


def compared(level: Compatibility, new: Parsed, earlier: list[Parsed]) -> Compared:
    """InvalidSchema where they are too large to compare."""
    return Compared(*reasons_against(level, new, earlier))


def described(parsed: Parsed) -> Descriptor:
    from kwire.schemas.formats.protobuf import ProtobufSchema, as_base64

    assert isinstance(parsed, ProtobufSchema), "only these have one"
    return Descriptor(as_base64(parsed.file))


def done(work: SchemaWork) -> WorkDone:
    """See the module; it raises nothing."""
    try:
        parsed = parsed_parts(work.parts)
        if work.kind is Kind.CHECK:
            return Readable()
        first, *others = (parsed[at] for at in work.roots)
        if work.kind is Kind.COMPARE:
            return compared(work.level, first, others)
        if work.kind is Kind.DESCRIBE:
            return described(first)
        return ReadSchema(first.canonical, first.normalized, first.record_name)
    except InvalidSchema as error:
        return Refused(str(error))
    except ImportError as error:
        return Refused("its format is not installed", error.name or "")
    except MemoryError:
        return Refused("It takes too much memory to read")


# -- as bytes, between processes of one version of kwire


def encoded(work: SchemaWork) -> bytes:
    """In pieces that are short, so that a thread that does it lets a loop run."""
    told = {"kind": work.kind.value, "level": work.level.value, "roots": work.roots}
    lines = [json.dumps(told).encode(), *(json.dumps(part).encode() for part in work.parts)]
    return b"\n".join(lines)


def decoded(data: bytes) -> SchemaWork:
    first, *others = data.split(b"\n")
    told = json.loads(first)
    parts = tuple(
        Part(kind, text, tuple((name, at) for name, at in references))
        for kind, text, references in map(json.loads, others)
    )
    return SchemaWork(Kind(told["kind"]), parts, tuple(told["roots"]), Compatibility(told["level"]))


def encoded_done(found: WorkDone) -> bytes:
    return json.dumps([type(found).__name__, *found]).encode()


def decoded_done(data: bytes) -> WorkDone:
    name, *fields = json.loads(data)
    shape = next(shape for shape in _SHAPES if shape.__name__ == name)
    return shape(*fields)
