"""JSON Schemas, drafts 4 to 2020-12: checked against their meta-schema, their references found.

By the libraries jsonschema (meta-schemas) and referencing (`$ref`, `$id`, anchors). Nothing is
fetched: a `$ref` leads into the text itself, to a reference by its name or `$id`, or to a
meta-schema. Source: the JSON Schema specifications.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from kwire.schemas.formats.json_text import Json, dump, load, sort_keys
from kwire.schemas.formats.parsed import InvalidSchema, Parsed, all_references

if TYPE_CHECKING:
    import referencing

ADDRESS_CHARACTERS_MAX = 2000
# Keywords that are an address, or that are looked for by one.
ADDRESSES = (
    *("$anchor", "$dynamicAnchor", "$dynamicRef", "$id", "$recursiveRef", "$ref", "$schema"),
    "id",
)
VALUES_MAX = 20_000  # of one text: its meta-schema is applied to each
# Keywords by what they hold: a schema, an array of such, an object of such.
ONE = (
    *("additionalItems", "additionalProperties", "contains", "else", "if", "items", "not"),
    *("propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"),
)
MANY = ("allOf", "anyOf", "items", "oneOf", "prefixItems")
NAMED = (
    *("$defs", "definitions", "dependencies", "dependentSchemas"),
    *("patternProperties", "properties"),
)


@dataclass(frozen=True, eq=False)
class Place:
    """A schema inside of a document: `where` is its address, the same for all who refer to it."""

    schema: Json
    resolver: referencing._core.Resolver[Json]
    where: str

    def below(self, schema: Json, *steps: str | int) -> Place:
        return Place(schema, self.resolver, "/".join((self.where, *map(str, steps))))

    @property
    def keywords(self) -> dict[str, Json]:
        return self.schema if isinstance(self.schema, dict) else {}


@dataclass(frozen=True, kw_only=True)
class JsonSchema(Parsed):
    root: Place


def subschemas(place: Place) -> Iterator[Place]:
    """The schemas that stand directly in one; what is data (enum, default) is none."""
    for keyword, value in place.keywords.items():
        if keyword in ONE and isinstance(value, (dict, bool)):
            yield place.below(value, keyword)
        elif keyword in MANY and isinstance(value, list):
            yield from (place.below(item, keyword, at) for at, item in enumerate(value))
        elif keyword in NAMED and isinstance(value, dict):
            yield from (
                place.below(item, keyword, name)
                for name, item in value.items()
                if isinstance(item, (dict, bool))
            )


def target(place: Place) -> Place:
    """Where the `$ref` of a schema leads; InvalidSchema when nowhere."""
    import referencing.exceptions

    ref = place.keywords.get("$ref", place.keywords.get("$dynamicRef"))
    if not isinstance(ref, str):
        raise InvalidSchema("A $ref must be a string")
    try:
        found = place.resolver.lookup(ref)
    except (referencing.exceptions.Unresolvable, ValueError):
        raise InvalidSchema(f"Nothing is found at $ref {ref}: it is neither in the schema nor "
                            "a reference") from None  # fmt: skip
    return Place(found.contents, found.resolver, urljoin(place.where.partition("#")[0], ref))


def parse(text: str, references: Mapping[str, Parsed]) -> JsonSchema:
    """Raises InvalidSchema for every text that is no JSON Schema with these references."""
    value = load(text)
    if not isinstance(value, (dict, bool)):
        raise InvalidSchema("A JSON Schema is an object or a boolean")
    title = value.get("title") if isinstance(value, dict) else None
    canonical = dump(value)
    try:
        check_meta_schema(value)
        root = place_of(value, references)
        check_references(root)
    except InvalidSchema:
        raise
    except RecursionError:
        raise InvalidSchema("The schema nests too deep") from None
    except Exception as error:
        # The libraries raise what they meet: errors of URIs, of types, their own.
        raise InvalidSchema(str(error) or type(error).__name__) from None
    return JsonSchema(
        schema_type="JSON",
        canonical=canonical,
        normalized=dump(sort_keys(value)),
        record_name=title if isinstance(title, str) else None,
        references=references,
        root=root,
    )


def check_meta_schema(value: Json) -> None:
    from jsonschema import Draft7Validator, FormatChecker
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for

    count, ahead = 0, [value]
    while ahead:
        item = ahead.pop()
        count += 1
        if count > VALUES_MAX:
            raise InvalidSchema(f"The schema has more than {VALUES_MAX} values")
        if isinstance(item, dict):
            _check_addresses(item)
            ahead += item.values()
        elif isinstance(item, list):
            ahead += item
    chosen = validator_for(value, default=Draft7Validator)
    try:
        # No format is checked: a pattern is one of ECMA's, which Python's `re` may refuse.
        chosen.check_schema(value, format_checker=FormatChecker(formats=()))
    except SchemaError as error:
        raise InvalidSchema(f"{error.json_path}: {error.message}") from None


def _check_addresses(item: dict[str, Json]) -> None:
    """To follow one takes longer the longer it is, each time."""
    for keyword in ADDRESSES:
        address = item.get(keyword)
        if isinstance(address, str) and len(address) > ADDRESS_CHARACTERS_MAX:
            raise InvalidSchema(
                f"{keyword} has {len(address)} characters, of at most {ADDRESS_CHARACTERS_MAX}: "
                f"{address[:40]}..."
            )


def place_of(value: Json, references: Mapping[str, Parsed]) -> Place:
    import referencing
    from jsonschema_specifications import REGISTRY
    from referencing.jsonschema import DRAFT7

    base = value.get("$id", value.get("id", "")) if isinstance(value, dict) else ""
    base = base if isinstance(base, str) else ""
    registry = REGISTRY
    for name, reference in all_references(references).items():
        if not isinstance(reference, JsonSchema):
            raise InvalidSchema(f"The reference {name} is no JSON Schema")
        schema = reference.root.schema
        resource = referencing.Resource.from_contents(schema, default_specification=DRAFT7)
        for uri in dict.fromkeys((name, urljoin(base, name))):
            registry = registry.with_resource(uri, resource)
    resource = referencing.Resource.from_contents(value, default_specification=DRAFT7)
    # Whoever looks for an anchor crawls what was not crawled: all of it, each time.
    uri = resource.id() or ""
    resolver = registry.with_resource(uri, resource).crawl().resolver(uri)
    return Place(value, resolver, f"{base.partition('#')[0]}#")


def check_references(root: Place) -> None:
    ahead = [root]
    while ahead:
        place = ahead.pop()
        if "$ref" in place.keywords:
            target(place)
        ahead += subschemas(place)
