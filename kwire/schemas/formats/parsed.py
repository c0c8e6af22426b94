"""What a schema of any format is once it is parsed, and the bounds that all formats keep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

TEXT_BYTES_MAX = 1_048_576
DEPTH_MAX = 100  # objects and arrays inside of each other
REFERENCES_MAX = 500  # all together, those of references too
REASONS_MAX = 100  # of one comparison; more say nothing that helps
STEPS_MAX = 20_000  # pairs of types that one comparison looks at


class InvalidSchema(ValueError):
    """A text that is no schema; `str()` says what is wrong in one line."""

    def __init__(self, message: str) -> None:
        line = " ".join(message.split()).encode(errors="backslashreplace").decode()
        super().__init__(line if len(line) <= 1000 else line[:1000] + "...")


@dataclass(frozen=True, kw_only=True)
class Parsed:
    """A schema, equal to another of its type when their `canonical` texts and references are.

    `normalized` is the text that `normalize=true` stores. `record_name` is what RecordNameStrategy
    calls its records: the full name of the type, or of the first message; None where it has none.
    """

    schema_type: str
    canonical: str
    normalized: str
    record_name: str | None
    references: Mapping[str, Parsed] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Sides:
    """What a reason calls reader and writer: the schema that is being registered is the new one."""

    reader: str = "new"
    writer: str = "old"


def all_references(references: Mapping[str, Parsed]) -> dict[str, Parsed]:
    """Name -> schema, those of references before the schema that names them.

    Two schemas under one name are refused.
    """
    found: dict[str, Parsed] = {}
    ahead = [(name, parsed, False) for name, parsed in reversed(list(references.items()))]
    while ahead:
        name, parsed, is_entered = ahead.pop()
        known = found.get(name)
        if known is not None:
            if known.canonical != parsed.canonical:
                raise InvalidSchema(f"Two schemas are referenced as {name}")
            continue
        if is_entered:
            found[name] = parsed
            continue
        if len(ahead) + len(found) > 2 * REFERENCES_MAX:
            raise InvalidSchema(f"More than {REFERENCES_MAX} schemas are referenced")
        ahead.append((name, parsed, True))
        ahead += [(at, inner, False) for at, inner in reversed(list(parsed.references.items()))]
    if len(found) > REFERENCES_MAX:
        raise InvalidSchema(f"More than {REFERENCES_MAX} schemas are referenced")
    return found
