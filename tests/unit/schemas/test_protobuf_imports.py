"""What a Protobuf schema may import without a reference: serializers register nothing for it."""

import base64

import pytest
from confluent_kafka.schema_registry.confluent import meta_pb2
from confluent_kafka.schema_registry.confluent.type import decimal_pb2, variant_pb2
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import FileDescriptor

from kwire.schemas.formats import InvalidSchema, parse
from kwire.schemas.formats.proto_bundled import OF_APIS, bundled
from kwire.schemas.formats.protobuf import ProtobufSchema, as_base64


def protobuf(text: str) -> ProtobufSchema:
    found = parse("PROTOBUF", text, {})
    assert isinstance(found, ProtobufSchema)
    return found


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("confluent/type/decimal.proto", "confluent.type.Decimal"),
        ("confluent/types/decimal.proto", "confluent.type.Decimal"),
        ("confluent/type/variant.proto", "confluent.type.Variant"),
        ("confluent/meta.proto", "confluent.Meta"),
        ("google/type/date.proto", "google.type.Date"),
        ("google/type/datetime.proto", "google.type.DateTime"),
        ("google/protobuf/wrappers.proto", "google.protobuf.StringValue"),
    ],
)
def test_an_import_that_serializers_bring_needs_no_reference(name: str, kind: str) -> None:
    text = f'syntax = "proto3"; import "{name}"; message M {{ {kind} a = 1; }}'
    assert f'import "{name}";' in parse("PROTOBUF", text, {}).canonical


def test_options_of_fields_that_serializers_bring_are_kept() -> None:
    text = """
        syntax = "proto3";
        import "confluent/meta.proto";
        message M { string a = 1 [(confluent.field_meta).tags = "PII"]; }"""
    assert "confluent.field_meta" in parse("PROTOBUF", text, {}).canonical


def test_tags_of_fields_are_in_the_descriptor_of_a_text_and_in_the_text_of_a_descriptor() -> None:
    text = """
        syntax = "proto3";
        import "confluent/meta.proto";
        option (confluent.file_meta) = { doc: "a file" };
        message M {
          option (confluent.message_meta) = { params: [{key: "k", value: "v"}] };
          string a = 1 [(confluent.field_meta).tags = "PII",
            (confluent.field_meta).tags = "\u00e9\\"",
            deprecated = true];
          string b = 2 [(other.option) = { tags: "x" }, (confluent.field_meta).nothing = "y"];
          enum E { Z = 0 [(confluent.enum_value_meta).doc = "zero"]; }
        }"""
    sent = as_base64(protobuf(text).file)
    file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(sent))
    (message,) = file.message_type
    meta = message.field[0].options.Extensions[meta_pb2.field_meta]
    assert list(meta.tags) == ["PII", '\u00e9"']
    assert message.field[0].options.deprecated
    assert message.options.Extensions[meta_pb2.message_meta].params == {"k": "v"}
    assert file.options.Extensions[meta_pb2.file_meta].doc == "a file"
    assert not message.field[1].options.HasExtension(meta_pb2.field_meta)
    assert len(message.field[1].options.uninterpreted_option) == 2
    back = protobuf(sent)
    assert 'tags : "PII"' in back.canonical
    assert protobuf(back.canonical).canonical == back.canonical
    assert as_base64(back.file) == sent


def test_all_types_of_apis_are_there() -> None:
    assert [name for name in OF_APIS if bundled(f"google/type/{name}.proto") is None] == []


@pytest.mark.parametrize("name", ["google/type/none.proto", "confluent/other.proto", "x.proto"])
def test_any_other_import_needs_a_reference(name: str) -> None:
    with pytest.raises(InvalidSchema, match=f"The import {name} is no reference"):
        parse("PROTOBUF", f'syntax = "proto3"; import "{name}"; message M {{}}', {})


@pytest.mark.parametrize(
    "brought", [meta_pb2.DESCRIPTOR, decimal_pb2.DESCRIPTOR, variant_pb2.DESCRIPTOR]
)
def test_what_is_bundled_has_the_fields_that_serializers_write(brought: FileDescriptor) -> None:
    theirs = descriptor_pb2.FileDescriptorProto.FromString(brought.serialized_pb)
    ours = bundled(brought.name)
    assert ours is not None

    def fields(file: descriptor_pb2.FileDescriptorProto) -> list[tuple[str, str, int]]:
        found = [(m.name, f.name, f.number) for m in file.message_type for f in m.field]
        return sorted(found + [(f.name, "", f.number) for f in file.extension])

    assert fields(ours) == fields(theirs)
