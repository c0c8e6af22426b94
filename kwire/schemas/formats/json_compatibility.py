"""Whether one JSON Schema accepts everything that another accepts.

The reader has to accept what the writer's schema lets through, for every part of it: `allOf` and a
reference beside other keywords are parts, one branch of each `anyOf` and `oneOf` is chosen by the
writer, and one has to be found in the reader. Where it is not certain, the answer is no. The names
of the kinds of change are those of registries' replies. Source: the JSON Schema specifications;
Confluent's documentation of JSON Schema compatibility (content models).
"""

from __future__ import annotations

import itertools

from kwire.schemas.formats.json_objects import object_reasons
from kwire.schemas.formats.json_parts import (
    allowed_values,
    conjuncts,
    group,
    items,
    limit,
    number,
    one,
    plain,
    resolved,
    strings,
    types,
)
from kwire.schemas.formats.json_schema import Place
from kwire.schemas.formats.json_walk import Reason, Walk
from kwire.schemas.formats.parsed import Sides

ALTERNATIVES_MAX = 1024
SUMS = ("anyOf", "oneOf")
COUNTS = {
    "string": ("Length",),
    "array": ("Items",),
    "object": ("Properties",),
}


def incompatibilities(reader: Place, writer: Place, sides: Sides) -> list[str]:
    """The reasons, none when compatible: `{errorType:'', description:''}`."""
    return [reason.told(sides) for reason in Comparison().reasons(reader, (writer,), "#")]


class Comparison(Walk):
    def reasons(self, reader: Place, writer: tuple[Place, ...], path: str) -> list[Reason]:
        """Why values that all of `writer` accept may not be accepted by `reader`."""
        if plain(reader):
            return []
        parts = [part for place in writer for part in conjuncts(place)]
        if any(part.schema is False for part in parts):
            return []
        if reader.schema is False:
            return [Reason("TYPE_CHANGED", path)]
        pair = (reader.where, tuple(place.where for place in writer))
        if pair in self.decided:
            return self.decided[pair]
        self.step()
        self.decided[pair] = []  # while it is being looked at: of itself it says nothing
        self.decided[pair] = found = self._compared(reader, parts, path)
        return found

    def _compared(self, reader: Place, parts: list[Place], path: str) -> list[Reason]:
        alternatives = self._alternatives(parts)
        found: list[Reason] = []
        own = resolved(reader).where
        for wanted in conjuncts(reader):
            for each in alternatives:
                reasons = self._part(wanted, each, path)
                if reasons and (len(alternatives) > 1 or wanted.where != own):
                    is_sum = len(alternatives) > 1
                    kind = "SUM_TYPE_NARROWED" if is_sum else "PRODUCT_TYPE_EXTENDED"
                    reasons = [Reason(kind, path), *reasons]
                found += reasons
                if reasons:
                    break
        return list(dict.fromkeys(found))

    def _alternatives(self, parts: list[Place]) -> list[list[Place]]:
        """The parts with one branch chosen in each `anyOf` and `oneOf` of the writer."""
        done: list[list[Place]] = []
        ahead = [(parts, 0)]
        while ahead:
            self.step()
            chosen, at = ahead.pop()
            while at < len(chosen) and not any(k in chosen[at].keywords for k in SUMS):
                at += 1
            if at == len(chosen):
                done.append(chosen)
                continue
            part = chosen[at]
            alone = {k: v for k, v in part.keywords.items() if k not in SUMS}
            sums = [branches for k in SUMS if (branches := group(part, k))]
            for picked in itertools.product(*sums):
                more = [each for branch in picked for each in conjuncts(branch)]
                rest = [*chosen[:at], part.instead(alone, "-"), *chosen[at + 1 :], *more]
                ahead.append((rest, at + 1))
                if len(done) + len(ahead) > ALTERNATIVES_MAX:
                    self.give_up()
        possible = [each for each in done if not any(part.schema is False for part in each)]
        return list(reversed(possible))

    def _by_type(self, chosen: list[Place]) -> list[list[Place]]:
        """The same parts for each type that the first to name several leaves."""
        for at, part in enumerate(chosen):
            if isinstance(part.keywords.get("type"), list):
                return [
                    [
                        *chosen[:at],
                        part.instead({**part.keywords, "type": kind}, kind),
                        *chosen[at + 1 :],
                    ]
                    for kind in strings(part.keywords["type"])
                ]
        return [chosen]

    def _part(self, wanted: Place, chosen: list[Place], path: str) -> list[Reason]:
        """What one part of the reader says of values that all `chosen` accept."""
        if wanted.schema is False:
            return [Reason("TYPE_CHANGED", path)]
        found = self._fewest([self._plain(wanted, part, path) for part in chosen])
        for keyword in SUMS:
            branches = group(wanted, keyword)
            if branches and any(
                all(self.reasons(branch, tuple(each), path) for branch in branches)
                for each in self._by_type(chosen)
            ):
                told = any(k in part.keywords for part in chosen for k in ("allOf", *SUMS))
                kind = "COMBINED_TYPE_CHANGED" if told else "COMBINED_TYPE_SUBSCHEMAS_CHANGED"
                found = [*found, Reason(kind, path)]
        if "not" in wanted.keywords:
            refused = one(wanted, "not")
            if not any(
                "not" in part.keywords and not self.reasons(one(part, "not"), (refused,), path)
                for part in chosen
            ):
                found = [*found, Reason("NOT_TYPE_EXTENDED", f"{path}/not")]
        if "if" in wanted.keywords and not any(self._same_condition(wanted, p) for p in chosen):
            found = [*found, Reason("COMBINED_TYPE_CHANGED", f"{path}/if")]
        return found

    @staticmethod
    def _same_condition(one: Place, other: Place) -> bool:
        names = ("if", "then", "else")
        return all(one.keywords.get(name) == other.keywords.get(name) for name in names)

    @staticmethod
    def _fewest(each: list[list[Reason]]) -> list[Reason]:
        return min(each, key=len, default=[])

    def _plain(self, reader: Place, writer: Place, path: str) -> list[Reason]:
        """Of all keywords but those that combine schemas."""
        self.step()
        written = types(writer)
        missing = [kind for kind in written if kind not in types(reader)]
        if missing:
            some = len(missing) < len(written)
            return [Reason("TYPE_NARROWED" if some else "TYPE_CHANGED", path)]
        found = self._values(reader, writer, path)
        for kind, names in COUNTS.items():
            if kind in written:
                for name in names:
                    found += self._bound(reader, writer, path, f"max{name}", 1)
                    found += self._bound(reader, writer, path, f"min{name}", -1)
        if "string" in written:
            found += self._pattern(reader, writer, path)
        if "integer" in written or "number" in written:
            found += self._numbers(reader, writer, path)
        if "object" in written:
            found += object_reasons(self, reader, writer, path)
        if "array" in written:
            found += self._arrays(reader, writer, path)
        return found

    def _values(self, reader: Place, writer: Place, path: str) -> list[Reason]:
        accepted, written = allowed_values(reader), allowed_values(writer)
        if accepted is None:
            return []
        if written is None:
            return [Reason("ENUM_ARRAY_CHANGED", f"{path}/enum")]
        if all(value in accepted for value in written):
            return []
        is_narrowed = all(value in written for value in accepted)
        kind = "ENUM_ARRAY_NARROWED" if is_narrowed else "ENUM_ARRAY_CHANGED"
        return [Reason(kind, f"{path}/enum")]

    def _bound(self, reader: Place, writer: Place, path: str, name: str, sign: int) -> list[Reason]:
        """Of a count: `maxLength` (sign 1), `minItems` (-1) and their like."""
        new, old = number(reader.keywords.get(name)), number(writer.keywords.get(name))
        if new is None or (sign < 0 and new <= 0):
            return []
        word = "".join(f"_{c}" if c.isupper() else c for c in name).upper()
        if old is None:
            return [Reason(f"{word}_ADDED", f"{path}/{name}")]
        if sign * new < sign * old:
            return [Reason(f"{word}_{'DE' if sign > 0 else 'IN'}CREASED", f"{path}/{name}")]
        return []

    def _pattern(self, reader: Place, writer: Place, path: str) -> list[Reason]:
        new, old = reader.keywords.get("pattern"), writer.keywords.get("pattern")
        if new is None or new == old:
            return []
        kind = "PATTERN_ADDED" if old is None else "PATTERN_CHANGED"
        return [Reason(kind, f"{path}/pattern")]

    def _numbers(self, reader: Place, writer: Place, path: str) -> list[Reason]:
        found = []
        for name, sign in (("maximum", 1), ("minimum", -1)):
            new, old = limit(reader, name, sign), limit(writer, name, sign)
            if new is None:
                continue
            word = new.keyword.replace("M", "_M").upper()
            if old is None:
                found.append(Reason(f"{word}_ADDED", f"{path}/{new.keyword}"))
            elif sign * old.value > sign * new.value or (
                old.value == new.value and new.is_exclusive and not old.is_exclusive
            ):
                change = "DECREASED" if sign > 0 else "INCREASED"
                found.append(Reason(f"{word}_{change}", f"{path}/{new.keyword}"))
        step, old_step = (number(p.keywords.get("multipleOf")) for p in (reader, writer))
        if step:
            if not old_step and "number" not in types(writer):
                old_step = number(1)  # an integer is a multiple of one
                if old_step and old_step % step:
                    found.append(Reason("MULTIPLE_OF_ADDED", f"{path}/multipleOf"))
            elif not old_step:
                found.append(Reason("MULTIPLE_OF_ADDED", f"{path}/multipleOf"))
            elif old_step % step:
                kind = "MULTIPLE_OF_CHANGED" if step % old_step else "MULTIPLE_OF_EXPANDED"
                found.append(Reason(kind, f"{path}/multipleOf"))
        return found

    def _arrays(self, reader: Place, writer: Place, path: str) -> list[Reason]:
        found: list[Reason] = []
        unique, was_unique = (p.keywords.get("uniqueItems") is True for p in (reader, writer))
        if unique and not was_unique:
            found.append(Reason("UNIQUE_ITEMS_ADDED", f"{path}/uniqueItems"))
        if "contains" in reader.keywords:
            held = writer.keywords.get("contains")
            if held is None or self.reasons(
                one(reader, "contains"), (one(writer, "contains"),), path
            ):
                found.append(Reason("CONTAINS_ADDED", f"{path}/contains"))
            found += self._bound(reader, writer, path, "maxContains", 1)
            if number(reader.keywords.get("minContains")) != 1:
                found += self._bound(reader, writer, path, "minContains", -1)
        (first, rest), (old_first, old_rest) = items(reader), items(writer)
        for at, (new, old) in enumerate(zip(first, old_first)):
            found += self.reasons(new, (old,), f"{path}/items/{at}")
        for at, new in enumerate(first[len(old_first) :], len(old_first)):
            if self.reasons(new, (old_rest,), f"{path}/items/{at}"):
                model = "OPEN_CONTENT_MODEL"
                kind = (
                    f"ADDED_TO_{model}"
                    if plain(old_rest)
                    else f"ADDED_NOT_COVERED_BY_PARTIALLY_{model}"
                )
                found.append(Reason(f"ITEM_{kind}", f"{path}/items/{at}"))
        for at, old in enumerate(old_first[len(first) :], len(first)):
            if self.reasons(rest, (old,), f"{path}/items/{at}"):
                kind = (
                    "REMOVED_FROM_CLOSED_CONTENT_MODEL"
                    if rest.schema is False
                    else "REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
                )
                found.append(Reason(f"ITEM_{kind}", f"{path}/items/{at}"))
        if first or old_first:
            if self.reasons(rest, (old_rest,), f"{path}/additionalItems"):
                kind = "REMOVED" if rest.schema is False else "NARROWED"
                found.append(Reason(f"ADDITIONAL_ITEMS_{kind}", f"{path}/additionalItems"))
        else:
            found += self.reasons(rest, (old_rest,), f"{path}/items")
        return found
