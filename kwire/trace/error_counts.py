"""The error codes in a response by their names."""

from __future__ import annotations

from kwire.protocol.errors import ErrorCode
from kwire.protocol.structs import Message, Struct


def error_names(response: Message) -> dict[str, int]:
    """Name -> how often, of all codes but 0, in the structs of the response too."""
    counts: dict[str, int] = {}
    ahead: list[Struct] = [response]
    while ahead:
        struct = ahead.pop()
        for name in struct.FIELDS:
            value = getattr(struct, name)
            if name.endswith("error_code"):
                if value:
                    known = name_of(value)
                    counts[known] = counts.get(known, 0) + 1
            elif isinstance(value, Struct):
                ahead.append(value)
            elif isinstance(value, list) and value and isinstance(value[0], Struct):
                ahead += value
    return counts


def name_of(code: int) -> str:
    """Kafka's name of a code; the number of one that is not known here."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error {code}"
