"""Metadata and rule sets, which the registry keeps for the serializers: checked and merged.

metadata   {"tags": {PATH: [TAG, ...]}, "properties": {NAME: VALUE}, "sensitive": [NAME, ...]}
ruleSet    {"migrationRules": [RULE, ...], "domainRules": [...], "encodingRules": [...]}
rule       {"name", "doc", "kind", "mode", "type", "tags", "params", "expr", "onSuccess",
            "onFailure", "disabled"}
"""

from __future__ import annotations

from kwire.schemas.registry.errors import Code, RegistryError
from kwire.schemas.registry.json_values import Json, JsonObject, texts

CONFLUENT_VERSION = "confluent:version"
"""A property that serializers put into a schema to have it told from others of the same text."""

KINDS = ("TRANSFORM", "CONDITION")
MIGRATION_MODES = ("UPGRADE", "DOWNGRADE", "UPDOWN")
OTHER_MODES = ("WRITE", "READ", "WRITEREAD")
RULES = {
    "migrationRules": MIGRATION_MODES,
    "domainRules": OTHER_MODES,
    "encodingRules": OTHER_MODES,
}
_METADATA = ("tags", "properties", "sensitive")
_RULE_TEXTS = ("name", "doc", "kind", "mode", "type", "expr", "onSuccess", "onFailure")
_RULE = (*_RULE_TEXTS, "tags", "params", "disabled")


def checked_metadata(given: Json) -> JsonObject | None:
    """Metadata of a request in the order in which records have it; RegistryError 422."""
    if given is None:
        return None
    if not isinstance(given, dict):
        raise _wrong("metadata", "an object")
    _check_names("metadata", given, _METADATA)
    found: JsonObject = {}
    tags = given.get("tags")
    if tags is not None:
        if not isinstance(tags, dict) or not all(_are_texts(one) for one in tags.values()):
            raise _wrong("metadata.tags", "an object of lists of texts")
        found["tags"] = {path: tags[path] for path in sorted(tags)}
    properties = given.get("properties")
    if properties is not None:
        named = texts(properties)
        if named is None:
            raise _wrong("metadata.properties", "an object of texts")
        found["properties"] = {name: named[name] for name in sorted(named)}
    sensitive = given.get("sensitive")
    if sensitive is not None:
        if not _are_texts(sensitive):
            raise _wrong("metadata.sensitive", "a list of texts")
        found["sensitive"] = _sorted_texts(sensitive)
    return found


def checked_rule_set(given: Json) -> JsonObject | None:
    """A rule set of a request; RegistryError 422 for its shape, 42210 for what it says."""
    if given is None:
        return None
    if not isinstance(given, dict):
        raise _wrong("ruleSet", "an object")
    _check_names("ruleSet", given, (*RULES, "enableAt"))
    found: JsonObject = {}
    names: dict[str, None] = {}
    for kind, modes in RULES.items():
        rules = given.get(kind)
        if rules is None:
            continue
        if not isinstance(rules, list):
            raise _wrong(f"ruleSet.{kind}", "a list of rules")
        found[kind] = [_rule(kind, rule, modes, names) for rule in rules]
    enable_at = given.get("enableAt")
    if enable_at is not None:
        if not isinstance(enable_at, str):
            raise _wrong("ruleSet.enableAt", "a text")
        found["enableAt"] = enable_at
    return found


def _rule(kind: str, given: Json, modes: tuple[str, ...], names: dict[str, None]) -> JsonObject:
    if not isinstance(given, dict):
        raise _wrong(f"ruleSet.{kind}", "a list of rules")
    _check_names(f"ruleSet.{kind}", given, _RULE)
    for field in _RULE_TEXTS:
        if given.get(field) is not None and not isinstance(given[field], str):
            raise _wrong(f"ruleSet.{kind}.{field}", "a text")
    if given.get("tags") is not None and not _are_texts(given["tags"]):
        raise _wrong(f"ruleSet.{kind}.tags", "a list of texts")
    if given.get("params") is not None and texts(given["params"]) is None:
        raise _wrong(f"ruleSet.{kind}.params", "an object of texts")
    if not isinstance(given.get("disabled", False), bool):
        raise _wrong(f"ruleSet.{kind}.disabled", "true or false")
    name = given.get("name")
    if not isinstance(name, str) or not name:
        raise _invalid_rules(f"a rule of {kind} has no name")
    if name in names:
        raise _invalid_rules(f"two rules are called {name!r}")
    names[name] = None
    if given.get("kind", KINDS[0]) not in KINDS:
        raise _invalid_rules(f"rule {name!r}: kind is one of {', '.join(KINDS)}")
    if given.get("mode") not in modes:
        raise _invalid_rules(f"rule {name!r} of {kind}: mode is one of {', '.join(modes)}")
    if not given.get("type"):
        raise _invalid_rules(f"rule {name!r} has no type")
    found: JsonObject = {field: given[field] for field in _RULE if given.get(field) is not None}
    if found.get("tags"):
        found["tags"] = _sorted_texts(found["tags"])
    params = texts(found.get("params"))
    if params is not None:
        found["params"] = {param: params[param] for param in sorted(params)}
    found["disabled"] = bool(given.get("disabled"))
    return found


def merged_metadata(*all_of: JsonObject | None) -> JsonObject | None:
    """Later ones before earlier ones, name by name; None where there is none."""
    found: JsonObject | None = None
    for one in all_of:
        if one is None:
            continue
        if found is None:
            found = dict(one)
            continue
        for part in ("tags", "properties"):
            before, after = found.get(part), one.get(part)
            if isinstance(after, dict):
                both = {**(before if isinstance(before, dict) else {}), **after}
                found[part] = {name: both[name] for name in sorted(both)}
        if isinstance(one.get("sensitive"), list):
            names = [*_sorted_texts(found.get("sensitive")), *_sorted_texts(one["sensitive"])]
            found["sensitive"] = [*sorted(dict.fromkeys(map(str, names)))]
    return found


def merged_rule_sets(*all_of: JsonObject | None) -> JsonObject | None:
    """Later rules in the place of earlier ones of their name."""
    found: JsonObject | None = None
    for one in all_of:
        if one is None:
            continue
        if found is None:
            found = dict(one)
            continue
        for kind in RULES:
            after, before = one.get(kind), found.get(kind)
            if not isinstance(after, list):
                continue
            replaced = [_name(rule) for rule in after]
            kept = [
                rule
                for rule in (before if isinstance(before, list) else [])
                if _name(rule) not in replaced
            ]
            found[kind] = [*kept, *after]
        if "enableAt" in one:
            found["enableAt"] = one["enableAt"]
    return found


def with_version(metadata: JsonObject | None, version: int) -> JsonObject:
    """With the property that tells the version."""
    return merged_metadata(metadata, {"properties": {CONFLUENT_VERSION: str(version)}}) or {}


def told_version(metadata: JsonObject | None) -> str | None:
    """What that property says."""
    return property_of(metadata, CONFLUENT_VERSION)


def property_of(metadata: JsonObject | None, name: str) -> str | None:
    """A property of a schema."""
    properties = texts((metadata or {}).get("properties"))
    return None if properties is None else properties.get(name)


def without_version(metadata: JsonObject | None) -> JsonObject | None:
    """The same with the version left out, to compare."""
    properties = texts((metadata or {}).get("properties"))
    if metadata is None or properties is None or CONFLUENT_VERSION not in properties:
        return metadata
    rest: JsonObject = {
        name: text for name, text in properties.items() if name != CONFLUENT_VERSION
    }
    found = {part: value for part, value in metadata.items() if part != "properties"}
    if rest:
        found["properties"] = rest
    return found or None


def _name(rule: Json) -> Json:
    return rule.get("name") if isinstance(rule, dict) else None


def _are_texts(value: Json) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _sorted_texts(value: Json) -> list[Json]:
    if not isinstance(value, list):
        return []
    return [*sorted(dict.fromkeys(str(one) for one in value))]


def _check_names(where: str, given: JsonObject, known: tuple[str, ...]) -> None:
    for name in given:
        if name not in known:
            raise RegistryError(
                Code.UNPROCESSABLE,
                f"Unrecognized field: {where}.{name[:100]}; known are {', '.join(known)}",
            )


def _wrong(where: str, expected: str) -> RegistryError:
    return RegistryError(Code.UNPROCESSABLE, f"{where}: expected {expected}")


def _invalid_rules(why: str) -> RegistryError:
    return RegistryError(Code.INVALID_RULE_SET, f"Invalid rule set: {why}")
