"""Where the error codes of a response are: the fields of structs by their names."""

from __future__ import annotations

from kwire.protocol import schema

CODE_FIELDS = ("error_code", "partition_error_code")


def has_code(struct: schema.Struct) -> bool:
    """Whether a struct has an error code itself."""
    return any(field.name in CODE_FIELDS for field in struct.fields)


def holds_code(struct: schema.Struct) -> bool:
    """Whether a struct, or one inside of it, has an error code."""
    return has_code(struct) or any(
        field.struct is not None and holds_code(field.struct) for field in struct.fields
    )


def path_of_codes(struct: schema.Struct) -> list[schema.Field] | None:
    """The arrays, one in another, to the only struct inside `struct` that has an error code; empty
    where none has one. None where there are several, or one that is no array's."""
    inner = [field for field in struct.fields if field.struct and holds_code(field.struct)]
    if not inner:
        return []
    (field, *others) = inner
    assert field.struct is not None
    if others or not field.is_array:
        return None
    if not has_code(field.struct):
        behind = path_of_codes(field.struct)
        return None if behind is None else [field, *behind]
    codes = [each for each in field.struct.fields if each.name in CODE_FIELDS]
    deeper = any(each.struct and holds_code(each.struct) for each in field.struct.fields)
    return None if deeper or len(codes) > 1 else [field]
