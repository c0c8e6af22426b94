"""The text of a schema in another form: the parameter `format`.

default             as it was registered
resolved            Avro: with what it refers to in it; here for schemas that refer to nothing
ignore_extensions   Protobuf: as it was registered, which has no extensions of others in it
serialized          Protobuf: the FileDescriptorProto in base64, as Python's deserializer asks
"""

from __future__ import annotations

from kwire.schemas.registry.errors import Code, RegistryError
from kwire.schemas.registry.machine import Registry
from kwire.schemas.registry.version import AVRO, Version

PROTOBUF = "PROTOBUF"


def formatted(registry: Registry, version: Version, form: str) -> str:
    """RegistryError 422 for a form that there is not of such a schema, WorkNeeded."""
    match version.schema_type, form.strip().lower():
        case (_, "" | "default"):
            return version.schema
        case (kind, "resolved") if kind == AVRO and not version.references:
            return version.schema
        case (kind, "ignore_extensions") if kind == PROTOBUF:
            return version.schema
        case (kind, "serialized") if kind == PROTOBUF:
            return registry.schemas.described(version)
    raise RegistryError(
        Code.UNPROCESSABLE,
        f"Invalid value {form[:100]!r} for parameter format: a schema of type "
        f"{version.schema_type} has no such form",
    )
