"""Writes encoders that tell whether a response is as nearly all of its API are.

Such a response has one error code at the top, where its API has one, and one inside, where there
are any: each array on the way to it has one element. All of them are NONE. Who counts codes
(`kwire/server/request_counts.py`) has nothing to look for then. The encoder passes by all fields
anyway: asking there takes a third of a walk of its own.

The function is that of `encoder.py`, and returns whether the response is another. It is always
another where that cannot be told: where codes are in several structs, or in an array that the
version lacks.
"""

from __future__ import annotations

from kwire.protocol import schema
from kwire.protocol.encoder import Classes, EncoderWriter, Function
from kwire.protocol.error_fields import CODE_FIELDS, path_of_codes


def build_answer_encoder(message: schema.Message, version: int, classes: Classes) -> Function:
    """The function (message, parts) -> whether it is an unusual one."""
    return _AnswerWriter(message, version, classes).build()


class _AnswerWriter(EncoderWriter):
    def __init__(self, message: schema.Message, version: int, classes: Classes) -> None:
        super().__init__(message, version, classes)
        path = path_of_codes(message.root)
        self._is_told = path is not None and all(
            schema.within(version, field.versions) and field.tag is None for field in path
        )
        self._path = path if path is not None and self._is_told else []
        self._structs = [message.root] if self._is_told else []
        if self._path and (last := self._path[-1].struct) is not None:
            self._structs.append(last)
        self._hot = message.root, ""

    def _begin(self) -> None:
        self.line(f"is_unusual = {not self._is_told}")

    def _end(self) -> None:
        self.line("return is_unusual")

    def _struct(self, struct: schema.Struct, name: str) -> None:
        self._ask(struct, name)
        super()._struct(struct, name)

    def _ask(self, struct: schema.Struct, name: str) -> None:
        if any(struct is each for each in self._structs):
            for field in struct.fields:
                if field.name in CODE_FIELDS:
                    with self.block(f"if {name}.{field.name}:"):
                        self.line("is_unusual = True")

    def _counted(self, field: schema.Field, count: str, usual: int) -> None:
        if any(field is each for each in self._path):
            with self.block(f"if {count} != {usual}:"):
                self.line("is_unusual = True")

    def _hot_elements(self, struct: schema.Struct, array: str, item: str) -> None:
        self._hot = struct, item
        super()._hot_elements(struct, array, item)

    def _hot_element(self, values: list[tuple[str, str]], records: str, owed: str) -> None:
        self._ask(*self._hot)
        super()._hot_element(values, records, owed)
