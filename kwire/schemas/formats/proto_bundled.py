"""Files that compilers and serializers bring, so that no schema needs a reference for them.

Source: the Protocol Buffers documentation (well-known types), the types of Google's APIs, and those
that Confluent's serializers register nothing for: options of fields, decimals, variants.
"""

from __future__ import annotations

import functools
import importlib

from google.protobuf import descriptor_pb2

from kwire.schemas.formats.proto_text import read

OF_LANGUAGE = (
    *("any", "api", "descriptor", "duration", "empty", "field_mask", "source_context"),
    *("struct", "timestamp", "type", "wrappers"),
)
OF_APIS = (
    *("calendar_period", "color", "date", "datetime", "dayofweek", "decimal", "expr", "fraction"),
    *("interval", "latlng", "localized_text", "money", "month", "phone_number"),
    *("postal_address", "quaternion", "timeofday"),
)
_OPTIONS = "".join(
    f"extend google.protobuf.{kind}Options {{ Meta {name}_meta = 1088; }}\n"
    for kind, name in (
        *(("File", "file"), ("Message", "message"), ("Field", "field"), ("Enum", "enum")),
        ("EnumValue", "enum_value"),
    )
)
OF_SERIALIZERS = {
    "confluent/meta.proto": f"""
        syntax = "proto3";
        package confluent;
        import "google/protobuf/descriptor.proto";
        message Meta {{
            string doc = 1;
            map<string, string> params = 2;
            repeated string tags = 3;
            repeated Rule rules = 4;
        }}
        message Rule {{ string name = 1; string doc = 2; string expr = 3; string sql = 4; }}
        {_OPTIONS}""",
    "confluent/type/decimal.proto": """
        syntax = "proto3";
        package confluent.type;
        message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }""",
    "confluent/type/variant.proto": """
        syntax = "proto3";
        package confluent.type;
        message Variant { bytes metadata = 1; bytes value = 2; }""",
    # Where Python's serializer had it.
    "confluent/types/decimal.proto": """
        syntax = "proto3";
        import public "confluent/type/decimal.proto";""",
}


@functools.cache
def bundled(name: str) -> descriptor_pb2.FileDescriptorProto | None:
    """The file of an import; None where the schema has to bring it."""
    text = OF_SERIALIZERS.get(name)
    if text is not None:
        return read(text)
    for folder, known in (("google/protobuf", OF_LANGUAGE), ("google/type", OF_APIS)):
        for short in known:
            if name == f"{folder}/{short}.proto":
                return _compiled(f"{folder.replace('/', '.')}.{short}_pb2")
    return None


def _compiled(module: str) -> descriptor_pb2.FileDescriptorProto | None:
    """None where the package with those of Google's APIs is not installed."""
    try:
        found = importlib.import_module(module)
    except ImportError:
        return None
    return descriptor_pb2.FileDescriptorProto.FromString(found.DESCRIPTOR.serialized_pb)
