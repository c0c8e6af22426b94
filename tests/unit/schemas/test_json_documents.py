"""Documents of JSON Schemas are checked within bounds, whatever the schema and the document are."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("jsonschema")

from kwire.schemas.formats import InvalidSchema, json_patterns, parse
from kwire.schemas.formats.json_text import Json
from kwire.schemas.validation.allowance import (
    READ_BYTES_MAX,
    Allowance,
    AllowanceSpentError,
    of_record,
)
from kwire.schemas.validation.avro_bytes import UndecodableError
from kwire.schemas.validation.prepared import BYTES_PER_STEP, prepared


def check(schema: Json, document: Json) -> None:
    check_text(schema, json.dumps(document))


def check_text(schema: Json, text: str) -> None:
    data = text.encode()
    allowance = Allowance(of_record(len(data)))
    prepared(parse("JSON", json.dumps(schema), {})).decode(data, 0, allowance)


TREE: Json = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$ref": "#/$defs/t",
    "$defs": {
        "t": {
            "properties": {"v": {"type": "integer"}, "next": {"$ref": "#/$defs/t"}},
            "patternProperties": {"^x-": {"type": "string"}},
        }
    },
}


@pytest.mark.parametrize(
    ("schema", "document", "why"),
    [
        (True, [], None),
        (False, [], "False schema"),
        ({"type": "integer"}, 1, None),
        ({"type": "integer"}, "x", "is not of type 'integer'"),
        ({"pattern": "^(a+)+$"}, "a" * 5000 + "b", "does not match"),
        ({"pattern": "^(a+)+$"}, "a" * 5000, None),
        ({"uniqueItems": True}, [1, True, "1", [1], {"a": 1}], None),
        ({"uniqueItems": True}, [{"a": 1}, {"b": 2}, {"a": 1.0}], "there twice"),
        ({"uniqueItems": True}, [{"a": at} for at in range(5_000)], None),
        (TREE, {"v": 1, "next": {"v": 2, "next": {}}}, None),
        (TREE, {"v": 1, "next": {"v": 2, "next": {"v": "x"}}}, "is not of type 'integer'"),
        (TREE, {"next": {"x-a": 1}}, "is not of type 'string'"),
    ],
)
def test_document(schema: Json, document: Json, why: str | None) -> None:
    if why is None:
        check(schema, document)
    else:
        with pytest.raises(UndecodableError, match=why):
            check(schema, document)


def test_references_that_double_come_to_an_end() -> None:
    """2^40 ways lead through these definitions to the last one."""
    names: dict[str, Json] = {
        str(at): {"allOf": [{"$ref": f"#/definitions/{at + 1}"}] * 2} for at in range(40)
    }
    schema: Json = {"$ref": "#/definitions/0", "definitions": {**names, "40": {}}}
    with pytest.raises(AllowanceSpentError):
        check(schema, 1)


def test_a_document_deeper_than_its_checker_can_go() -> None:
    document: Json = {}
    for _ in range(400):
        document = {"next": document}
    with pytest.raises(UndecodableError, match="too deep"):
        check(TREE, document)


LATEST = "https://json-schema.org/draft/2020-12/schema"
EARLIER = "https://json-schema.org/draft/2019-09/schema"
EXPLODING = "^(a+)+$"
NAMES: Json = {"a" * 5000 + "b": 1}


@pytest.mark.parametrize(
    ("schema", "document"),
    [
        ({"patternProperties": {EXPLODING: {}}, "additionalProperties": False}, NAMES),
        (
            {
                "$schema": LATEST,
                "patternProperties": {EXPLODING: {}},
                "unevaluatedProperties": False,
            },
            NAMES,
        ),
        ({"propertyNames": {"pattern": EXPLODING}}, NAMES),
    ],
)
def test_no_keyword_matches_a_pattern_in_exponential_time(schema: Json, document: Json) -> None:
    """Python's `re` needs 2^5000 steps."""
    with pytest.raises(UndecodableError, match=r"not allowed|does not match"):
        check(schema, document)


DRAFT_3 = "http://json-schema.org/draft-03/schema#"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
EVIL: Json = {"pattern": EXPLODING}


@pytest.mark.parametrize("draft", [LATEST, EARLIER, DRAFT_7, "urn:unknown"])
@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": EVIL}},
        {"allOf": [{"properties": {"a": EVIL}}]},
        {"patternProperties": {"^a": {"not": {"not": EVIL}}}},
        {"$ref": "#/definitions/a", "definitions": {"a": {"additionalProperties": EVIL}}},
        {"$ref": "other"},
    ],
)
def test_a_schema_with_a_draft_of_its_own_in_another_takes_steps(
    schema: dict[str, Json], draft: str
) -> None:
    """Python's `re` needs 2^5000 steps."""
    own = json.loads(json.dumps(schema).replace('{"pattern"', f'{{"$schema":"{draft}","pattern"'))
    other = parse("JSON", json.dumps({"$schema": draft, "properties": {"a": EVIL}}), {})
    one = prepared(parse("JSON", json.dumps({"$schema": LATEST, **own}), {"other": other}))
    data = json.dumps({"a": "a" * 5000 + "b"}).encode()
    with pytest.raises(UndecodableError, match=r"does not match|^\$\.a: .aaaa"):
        one.decode(data, 0, Allowance(of_record(len(data))))
    with pytest.raises(AllowanceSpentError):
        one.decode(data, 0, Allowance(20))


def doubling(keyword: str) -> Json:
    """2^40 ways lead to the last definition, by references in the place of a keyword."""
    names: dict[str, Json] = {
        str(at): {"allOf": [{"$ref": f"#/$defs/{at + 1}"}] * 2} for at in range(40)
    }
    return {"$schema": LATEST, "$ref": "#/$defs/0", keyword: False, "$defs": {**names, "40": {}}}


@pytest.mark.parametrize(
    ("schema", "document"),
    [
        ({"items": {"allOf": [{"type": "integer"}] * 600}}, [1] * 600),
        ({"items": {"enum": [[at] for at in range(600)]}}, [[599]] * 600),
        ({"allOf": [{"items": {}}] * 600}, [1] * 600),
        ({"anyOf": [{"type": "string"}] * 600}, ["x" * 100] * 600),
        ({"allOf": [{"uniqueItems": True}] * 600}, [[at, at, at] for at in range(600)]),
        ({"allOf": [{"pattern": "^(x+x*)+$"}] * 600}, "x" * 500_000),
        (
            {"patternProperties": {f"^{at}$": {} for at in range(600)}},
            {f"n{at}": 1 for at in range(600)},
        ),
        (
            {
                "patternProperties": {f"^{at}$": {} for at in range(600)},
                "additionalProperties": {},
            },
            {f"n{at}": 1 for at in range(600)},
        ),
        (doubling("unevaluatedProperties"), {"a": 1}),
        (doubling("unevaluatedItems"), [1]),
        ({"$ref": "#/definitions/a", "definitions": {"a": {"allOf": [{"$ref": "#"}] * 2}}}, 1),
    ],
)
def test_what_takes_long_is_given_up(schema: Json, document: Json) -> None:
    data = json.dumps(document).encode()
    one = prepared(parse("JSON", json.dumps(schema), {}))
    with pytest.raises((AllowanceSpentError, UndecodableError), match=r"too deep|^$"):
        one.decode(data, 0, Allowance(50_000))


@pytest.mark.parametrize(
    ("schema", "text", "why"),
    [
        ({"multipleOf": 0.01}, "1" + "0" * 400, None),
        ({"multipleOf": 0.5}, "1" * 400, None),
        ({"multipleOf": 7}, "1" + "0" * 400, "is not a multiple of 7"),
        ({"multipleOf": 0.01}, "4.35", None),
        ({"multipleOf": 0.01}, "-19.99", None),
        ({"multipleOf": 0.01}, "19.995", "is not a multiple of 0.01"),
        ({"multipleOf": 0.1}, "0.3", None),
        ({"multipleOf": 0.1}, "[true]", None),
        ({"multipleOf": 1e-300}, "1e300", None),
        ({"multipleOf": 0.123456789}, "1e308", "is not a multiple"),
        ({"multipleOf": 2}, "1e400000", "inf is not a multiple of 2"),
        ({"multipleOf": 2}, "4.0", None),
        ({"$schema": DRAFT_3, "divisibleBy": 0.01}, "4.35", None),
        ({"allOf": [{"$ref": "#/x"}], "x": {"multipleOf": 0}}, "1", None),
        ({"multipleOf": 0.5}, "1e300", None),
        ({"type": "integer"}, "1" + "0" * 4000, None),
        ({}, "1" + "0" * 5000, "no JSON"),
        ({"pattern": "^a"}, r'"\ud800"', "cannot be checked: UnicodeEncodeError"),
        ({"type": "number"}, "NaN", "no JSON"),
        ({"type": "number"}, "-Infinity", "no JSON"),
        ({"type": "object"}, '{"a":1,"a":2}', None),
    ],
)
def test_odd_values_have_an_answer(schema: Json, text: str, why: str | None) -> None:
    if why is None:
        check_text(schema, text)
    else:
        with pytest.raises(UndecodableError, match=why):
            check_text(schema, text)


def test_patterns_that_take_long_to_make_ready_are_not_matched_on_the_loop() -> None:
    """RE2 takes 200 ms for five times [a-z]{1,900}, and forgets that a pattern was too large."""
    one = prepared(parse("JSON", json.dumps({"pattern": "^[a-z]{1,901}$"}), {}))
    on_loop = Allowance(1000, is_of_loop=True)
    with pytest.raises(AllowanceSpentError):
        one.decode(b'"abc"', 0, on_loop)
    one.decode(b'"abc"', 0, Allowance(1000))
    one.decode(b'"abc"', 0, on_loop)
    with pytest.raises(UndecodableError, match="does not match"):
        one.decode(b'"ABC"', 0, on_loop)
    assert json_patterns.matches("[a-z]{1,900}" * 5, "abc") is None
    assert json_patterns.matches(r"^\p{L}{1,50}$", "abc") is True


WIDE = [f"^(?:[ab]*a[ab]{{800}}{end})" for end in "cdef"]


@pytest.mark.parametrize(
    "schema",
    [
        {"patternProperties": dict.fromkeys(WIDE, True)},
        {"patternProperties": dict.fromkeys(WIDE, True), "additionalProperties": {}},
        {
            "$schema": LATEST,
            "patternProperties": dict.fromkeys(WIDE, True),
            "unevaluatedProperties": {},
        },
        {"propertyNames": {"allOf": [{"pattern": pattern} for pattern in WIDE[:1]] * 4}},
    ],
)
def test_a_name_takes_steps_by_its_length_and_by_the_size_of_patterns(schema: Json) -> None:
    """RE2 takes 40 ms for each of these: 3,000 characters, at each of which 800 may come next."""
    name = "ab" * 1500
    one = prepared(parse("JSON", json.dumps(schema), {}))
    allowance = Allowance(1_000_000)
    with contextlib.suppress(UndecodableError):
        one.decode(json.dumps({name: 1}).encode(), 0, allowance)
    assert 1_000_000 - allowance.left > len(name) * 800 // 1000


@pytest.mark.parametrize("keyword", ["additionalProperties", "unevaluatedProperties"])
@pytest.mark.parametrize("pattern", ["^(?!x)a", "^[a-z]{1,900}" * 3])
def test_a_pattern_that_is_not_known_refuses_no_name(keyword: str, pattern: str) -> None:
    schema: Json = {"$schema": LATEST, "patternProperties": {pattern: False}, keyword: False}
    check(schema, {"a": 1})
    with pytest.raises(UndecodableError, match="not allowed"):
        check({"$schema": LATEST, "patternProperties": {"^b": {}}, keyword: False}, {"a": 1})


def test_a_short_pattern_takes_few_steps() -> None:
    allowance = Allowance(1000)
    prepared(parse("JSON", '{"pattern":"^[a-z]+$"}', {})).decode(
        b'"' + b"a" * 1000 + b'"', 0, allowance
    )
    assert allowance.left > 950


@pytest.mark.parametrize("keyword", ["$ref", "$id", "$dynamicRef"])
def test_an_address_is_not_long(keyword: str) -> None:
    """It is taken apart each time that it is followed."""
    text = json.dumps({"$schema": LATEST, "not": {keyword: "#" + "/a" * 1000}})
    with pytest.raises(InvalidSchema, match=rf"\{keyword} has 2001 characters, of at most 2000: #"):
        parse("JSON", text, {})


@pytest.mark.parametrize("keyword", ["items", "unevaluatedItems"])
def test_a_reference_takes_steps_by_its_length_and_parts(keyword: str) -> None:
    inner: Json = True
    for _ in range(90):
        inner = {"a": inner}
    base = "https://example.org/" + "b" * 1900
    schema: Json = {
        "$schema": LATEST,
        "$id": base,
        "$defs": inner,
        keyword: {"$ref": "#/$defs" + "/a" * 90},
    }
    allowance = Allowance(100_000)
    one = prepared(parse("JSON", json.dumps(schema), {}))
    one.decode(json.dumps([1] * 100).encode(), 0, allowance)
    assert 100_000 - allowance.left > 100 * (90 + 1900 // 64)


def test_a_base_that_grows_takes_steps() -> None:
    """`$id` below `$id`: each makes the address of what is below it longer."""
    schema: dict[str, Json] = {"type": "integer"}
    document: Json = 1
    for _ in range(30):
        schema = {"$id": "b" * 1900 + "/", "properties": {"a": schema}}
        document = {"a": document}
    allowance = Allowance(100_000)
    check_with = prepared(parse("JSON", json.dumps({"$schema": LATEST, **schema}), {}))
    check_with.decode(json.dumps(document).encode(), 0, allowance)
    assert 100_000 - allowance.left > sum(1900 * at // 64 for at in range(30))


@pytest.mark.parametrize("keyword", ["const", "enum"])
def test_what_is_compared_takes_steps_for_all_that_is_in_it(keyword: str) -> None:
    document: Json = [[[at] * 100 for at in range(10)]]
    schema: Json = {keyword: [document] if keyword == "enum" else document}
    allowance = Allowance(10_000)
    prepared(parse("JSON", json.dumps(schema), {})).decode(
        json.dumps(document).encode(), 0, allowance
    )
    assert 10_000 - allowance.left > 1000
    with pytest.raises(UndecodableError, match=r"^\$: \[\[\["):
        check(schema, [[[at] * 100 for at in range(9)] + [[9] * 99 + [8]]])


def test_each_value_of_an_enum_that_may_be_equal_takes_steps() -> None:
    values: Json = [[[1] * 100 + [at]] for at in range(100)]
    allowance = Allowance(20_000)
    one = prepared(parse("JSON", json.dumps({"enum": values}), {}))
    one.decode(json.dumps([[1] * 100 + [99]]).encode(), 0, allowance)
    assert 20_000 - allowance.left > 100 * 100


def test_faults_that_show_much_of_the_schema_take_steps() -> None:
    """The library writes one for each item that is no such."""
    schema: Json = {"contains": {"not": {"title": "x" * 100_000}}}
    allowance = Allowance(1_000_000)
    one = prepared(parse("JSON", json.dumps(schema), {}))
    with pytest.raises(UndecodableError, match="None of"):
        one.decode(json.dumps([1] * 100).encode(), 0, allowance)
    assert 1_000_000 - allowance.left > 100 * 100_000 // 64


PROTO = 'syntax = "proto3"; message M { repeated M next = 1; bytes text = 2; }'


@pytest.mark.parametrize(
    ("kind", "schema", "start", "head"),
    [("JSON", "true", b'"', b'"'), ("PROTOBUF", PROTO, b"\0\x12\xfc\xff\x3f", b"")],
)
def test_the_size_of_what_is_read_at_once_is_bounded(
    kind: str, schema: str, start: bytes, head: bytes
) -> None:
    """Whatever it is read into: no other thread runs meanwhile."""
    one = prepared(parse(kind, schema, {}))
    size = READ_BYTES_MAX - len(start) - len(head) + (kind == "PROTOBUF")
    data = start + b"a" * size + head
    steps = READ_BYTES_MAX // BYTES_PER_STEP
    one.decode(b"head!" + data, 5, Allowance(2 * steps))
    with pytest.raises(AllowanceSpentError):
        one.decode(b"head!" + data, 5, Allowance(steps - 1))
    with pytest.raises(UndecodableError, match="it has 1048577 bytes, of at most 1048576 that"):
        one.decode(b"head!" + data + b" ", 5, Allowance(2 * steps))
    if kind == "JSON":
        one.decode(b"head!" + data + b" ", 5, Allowance(2 * steps, read_bytes_max=2_000_000))


def test_a_schema_whose_patterns_take_long_together_is_refused() -> None:
    schema: Json = {"patternProperties": {f"^[a-z]{{1,900}}{at}$": {} for at in range(200)}}
    parsed = parse("JSON", json.dumps(schema), {})
    with pytest.raises(InvalidSchema, match=r"patterns have 18\d+ characters and repetitions"):
        prepared(parsed)
    with pytest.raises(InvalidSchema, match="patterns have"):
        prepared(parse("JSON", '{"$ref":"other"}', {"other": parsed}))


def test_the_patterns_that_are_kept_are_bounded() -> None:
    for at in range(json_patterns.KEPT_MAX + 10):
        json_patterns.matches(f"^a{at}$", "a")
    assert len(json_patterns._kept) == json_patterns.KEPT_MAX


LEAVES: st.SearchStrategy[Json] = st.sampled_from(
    [
        *(True, {}, {"type": "object"}, {"type": "array"}, {"required": ["b"]}, {"minItems": 2}),
        *({"properties": {"a": True}}, {"properties": {"b": {"type": "integer"}}}),
        *({"patternProperties": {"^[bc]": True}}, {"prefixItems": [True]}, {"items": True}),
        *({"prefixItems": [True, {"type": "string"}]}, {"contains": {"type": "integer"}}),
        *({"additionalProperties": {"type": "integer"}}, {"unevaluatedProperties": True}),
        {"unevaluatedItems": True},
    ]
)
REFERENCES: st.SearchStrategy[Json] = st.sampled_from(
    [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}]
)
SCHEMAS: st.SearchStrategy[Json] = st.recursive(
    LEAVES | REFERENCES,
    lambda inner: st.one_of(
        st.builds(
            lambda keyword, several: {keyword: several},
            st.sampled_from(["allOf", "anyOf", "oneOf"]),
            st.lists(inner, min_size=1, max_size=3),
        ),
        st.builds(lambda a, b, c: {"if": a, "then": b, "else": c}, inner, inner, inner),
        st.builds(lambda one: {"dependentSchemas": {"a": one}}, inner),
        st.builds(lambda one: {"not": one}, inner),
    ),
    max_leaves=6,
)
DOCUMENTS = st.one_of(
    st.dictionaries(st.sampled_from("abcd"), st.sampled_from([1, "x"]), max_size=4),
    st.lists(st.sampled_from([1, "x"]), max_size=4),
)


@settings(max_examples=80, deadline=None)
@given(SCHEMAS, LEAVES, LEAVES, st.sampled_from([LATEST, EARLIER]), DOCUMENTS)
def test_what_is_unevaluated_as_another_validator_finds_it(
    schema: Json, a: Json, b: Json, draft: str, document: Json
) -> None:
    jsonschema_rs = pytest.importorskip("jsonschema_rs")
    told: Json = {
        "$schema": draft,
        "allOf": [schema],
        "unevaluatedProperties": False,
        "unevaluatedItems": {"type": "string"},
        "$defs": {"a": a, "b": b},
    }
    try:
        check(told, document)
        is_valid = True
    except UndecodableError:
        is_valid = False
    assert is_valid == jsonschema_rs.is_valid(told, document)
