"""Configs by Kafka's names, as the values of their types."""

from __future__ import annotations

from collections.abc import Mapping

from kwire.config.values import Value

Values = Mapping[str, Value]


class TypedValues:
    """Reads configs; what is not set is the default. Raises TypeError for one of another type."""

    __slots__ = ("_values",)

    def __init__(self, values: Values) -> None:
        self._values = values

    def integer(self, name: str, default: int) -> int:
        value = self._values.get(name)
        if value is None:
            return default
        if not isinstance(value, int):
            raise _wrong(name, value)
        return value

    def number(self, name: str, default: float) -> float:
        value = self._values.get(name)
        if value is None:
            return default
        if not isinstance(value, int | float):
            raise _wrong(name, value)
        return value

    def flag(self, name: str, default: bool) -> bool:
        value = self._values.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise _wrong(name, value)
        return value

    def text(self, name: str, default: str) -> str:
        value = self._values.get(name)
        if value is None:
            return default
        if not isinstance(value, str):
            raise _wrong(name, value)
        return value

    def texts(self, name: str, default: tuple[str, ...]) -> tuple[str, ...]:
        value = self._values.get(name)
        if value is None:
            return default
        if not isinstance(value, list | tuple):
            raise _wrong(name, value)
        return tuple(value)


def _wrong(name: str, value: Value) -> TypeError:
    return TypeError(f"{name} has a value of type {type(value).__name__}")
