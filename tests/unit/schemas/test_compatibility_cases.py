"""What may follow what: 218 changes of schemas over the three formats, and the seven modes.

`compatibility_cases.tsv`: one change a line, of what is written to what reads, and the kinds of
incompatibility a registry names (`-`: compatible). From public documentation: the Avro
specification (schema resolution), the JSON Schema specifications and Confluent's content models,
the language guide of Protocol Buffers ("Updating a message type").
"""

from __future__ import annotations

import pathlib
import re

import pytest

from kwire.schemas.compatibility import Compatibility, reasons_against
from kwire.schemas.formats import Parsed, Sides, incompatibilities, parse

CASES = [
    line.split("\t")
    for line in pathlib.Path(__file__)
    .with_name("compatibility_cases.tsv")
    .read_text()
    .splitlines()[1:]
]


@pytest.mark.parametrize(
    ("schema_type", "writer", "reader", "kinds"),
    [pytest.param(row[0], *row[2:], id=f"{row[0]}: {row[1]}") for row in CASES],
)
def test_change(schema_type: str, writer: str, reader: str, kinds: str) -> None:
    old, new = parse(schema_type, writer, {}), parse(schema_type, reader, {})
    reasons = incompatibilities(new, old)
    found = [re.match(r"\{errorType:'(\w+)', description:'.+'\}$", reason) for reason in reasons]
    assert all(found), reasons
    assert (",".join(dict.fromkeys(x[1] for x in found if x)) or "-") == kinds
    assert incompatibilities(new, new) == incompatibilities(old, old) == []
    # The printed texts mean the same, and printing them again changes nothing.
    for text in (new.canonical, new.normalized):
        printed = parse(schema_type, text, {})
        assert bool(incompatibilities(printed, old)) == bool(reasons)
        assert printed.normalized == new.normalized
    assert parse(schema_type, new.canonical, {}).canonical == new.canonical


def test_every_format_has_its_share() -> None:
    counts = {name: sum(row[0] == name for row in CASES) for name in ("AVRO", "JSON", "PROTOBUF")}
    assert min(counts.values()) >= 50
    assert len({(row[0], row[1]) for row in CASES}) == len(CASES)


A = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
AB = A.replace("]", ',{"name":"b","type":"int"}]')  # may follow A forward only
AC = A.replace("]", ',{"name":"c","type":"int","default":0}]')  # both ways
B = AB.replace('{"name":"a","type":"int"},', "").replace("}]", ',"default":1}]')
NAMES = {"A": A, "AB": AB, "AC": AC, "B": B}


@pytest.mark.parametrize(
    ("mode", "earlier", "new", "misfit"),
    [
        ("NONE", "A", "AB", None),
        ("BACKWARD", "", "A", None),
        ("BACKWARD", "A", "AB", 0),
        ("BACKWARD", "AB", "A", None),
        ("BACKWARD", "A AB", "AC", None),
        ("BACKWARD", "A AB", "AB", None),
        ("BACKWARD_TRANSITIVE", "A AB", "AB", 0),
        ("BACKWARD_TRANSITIVE", "A AB", "A", None),
        ("BACKWARD_TRANSITIVE", "B A", "A", 0),
        ("FORWARD", "A", "AB", None),
        ("FORWARD", "AB", "A", 0),
        ("FORWARD", "AB A", "AC", None),
        ("FORWARD_TRANSITIVE", "AB A", "AC", 0),
        ("FORWARD_TRANSITIVE", "A AB", "AB", None),
        ("FULL", "A", "AC", None),
        ("FULL", "A", "AB", 0),
        ("FULL", "AB", "A", 0),
        ("FULL", "AB A", "AC", None),
        ("FULL_TRANSITIVE", "AB A", "AC", 0),
        ("FULL_TRANSITIVE", "A AC", "AC", None),
        ("FULL_TRANSITIVE", "A AB", "B", 1),
    ],
)
def test_modes_look_at_versions_and_directions(
    mode: str, earlier: str, new: str, misfit: int | None
) -> None:
    versions = [parse("AVRO", NAMES[name], {}) for name in earlier.split()]
    reasons, at = reasons_against(Compatibility(mode), parse("AVRO", NAMES[new], {}), versions)
    assert at == misfit
    assert bool(reasons) == (misfit is not None)


def test_reasons_name_the_schema_that_reads() -> None:
    old, new = parse("AVRO", AB, {}), parse("AVRO", A, {})
    (reason,) = reasons_against(Compatibility.FORWARD, new, [old])[0]
    assert "'b' of the old schema has no default value and is missing in the new schema" in reason
    assert reason.startswith("{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'")
    assert reason.endswith("', additionalInfo:'b'}")


def test_a_schema_of_another_type_follows_none() -> None:
    old, new = parse("AVRO", A, {}), parse("JSON", "{}", {})
    assert "SCHEMA_TYPE_MISMATCH" in incompatibilities(new, old, Sides())[0]


def with_reference(schema_type: str, text: str, name: str, referenced: Parsed) -> Parsed:
    return parse(schema_type, text, {name: referenced})


@pytest.mark.parametrize(
    ("schema_type", "name", "text", "old", "fits", "misfits"),
    [
        (
            "AVRO",
            "I",
            '{"type":"record","name":"O","fields":[{"name":"i","type":"I"}]}',
            '{"type":"record","name":"I","fields":[]}',
            '{"type":"record","name":"I","fields":[{"name":"x","type":"int","default":0}]}',
            '{"type":"record","name":"I","fields":[{"name":"x","type":"int"}]}',
        ),
        ("JSON", "i.json", '{"$ref":"i.json"}', '{"type":"integer"}', "{}", '{"type":"string"}'),
        (
            "JSON",
            "http://x/i.json",
            '{"$id":"http://x/o.json","items":{"$ref":"i.json#/$defs/a"}}',
            '{"$defs":{"a":{"type":"integer"}}}',
            '{"$defs":{"a":{"type":"number"}}}',
            '{"$defs":{"a":{"type":"string"}}}',
        ),
        (
            "PROTOBUF",
            "i.proto",
            'syntax = "proto3"; import "i.proto"; message O { p.I i = 1; }',
            'syntax = "proto3"; package p; message I { int32 x = 1; }',
            'syntax = "proto3"; package p; message I { int64 x = 1; }',
            'syntax = "proto3"; package p; message I { string x = 1; }',
        ),
    ],
)
def test_what_references_say_counts(
    schema_type: str, name: str, text: str, old: str, fits: str, misfits: str
) -> None:
    before, good, bad = (
        with_reference(schema_type, text, name, parse(schema_type, referenced, {}))
        for referenced in (old, fits, misfits)
    )
    assert before.canonical == good.canonical == bad.canonical
    assert incompatibilities(good, before) == []
    assert incompatibilities(bad, before)
