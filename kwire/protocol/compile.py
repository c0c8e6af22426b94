"""Classes of messages from their schema, and their codecs, built on first use.

There is one class per message and one per struct in it, covering all versions; never a class
per version. A class is made when its message is first named, the decoder and the encoder of a
version when that version is first used.
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

from kwire.protocol import schema
from kwire.protocol.errors import UnsupportedVersionError

__all__ = ["Message", "Struct", "build_class"]

Buffer = bytes | bytearray | memoryview
Self = TypeVar("Self", bound="Struct")
SelfMessage = TypeVar("SelfMessage", bound="Message")


class Struct:
    """Base of every message and struct: named fields, compared by value.

    `FIELDS` are the names of the fields; `unknown_tags` holds the tagged fields that the schema
    does not know, as (tag, bytes) in the order in which they came.
    """

    __slots__ = ("unknown_tags",)
    __hash__ = None  # type: ignore[assignment]

    FIELDS: ClassVar[tuple[str, ...]] = ()
    NAME: ClassVar[str] = ""
    FROZEN: ClassVar[Any] = None
    """The struct of defaults that fields of this type hold until another is assigned; it refuses
    assignment. None for a struct with arrays or structs inside: there every field has its own."""
    PLAIN: ClassVar[Any] = None

    unknown_tags: Any

    def copy(self: Self, **changes: Any) -> Self:
        """A copy with some fields changed; lists and structs inside are shared with this one."""
        made: Self = object.__new__(self.PLAIN)
        for name in self.FIELDS:
            setattr(made, name, getattr(self, name))
        made.unknown_tags = self.unknown_tags
        for name, value in changes.items():
            if name not in self.FIELDS and name != "unknown_tags":
                raise TypeError(f"{self.NAME} has no field {name}")
            setattr(made, name, value)
        return made

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Struct) or other.PLAIN is not self.PLAIN:
            return NotImplemented
        for name in self.FIELDS:
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs and not _same_bytes(mine, theirs):
                return False
        return list(self.unknown_tags) == list(other.unknown_tags)

    def __repr__(self) -> str:
        fields = [f"{name}={_shown(getattr(self, name))}" for name in self.FIELDS]
        if self.unknown_tags:
            fields.append(f"unknown_tags={self.unknown_tags!r}")
        return f"{self.NAME}({', '.join(fields)})"


class Message(Struct):
    """Base of every message. See `messages` for what a class has beside this."""

    __slots__ = ()

    API_KEY: ClassVar[int | None] = None
    """API key, type of the metadata record or of the coordinator record; None without one."""
    KIND: ClassVar[str] = ""
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = -1
    SCHEMA: ClassVar[Any] = None
    STRUCTS: ClassVar[dict[str, Any]] = {}
    _decoders: ClassVar[dict[int, Any]] = {}
    _encoders: ClassVar[dict[int, Any]] = {}

    @classmethod
    def is_flexible(cls, version: int) -> bool:
        """Whether this version has compact lengths and tag sections."""
        return schema.within(version, cls.SCHEMA.flexible)

    @classmethod
    def decoder(cls, version: int) -> Any:
        """The function (memoryview, position) -> (message, end) for one version."""
        function = cls._decoders.get(version)
        if function is None:
            from kwire.protocol.decoder import build_decoder

            cls._check_version(version)
            function = cls._decoders[version] = build_decoder(cls.SCHEMA, version, cls.STRUCTS)
        return function

    @classmethod
    def encoder(cls, version: int) -> Any:
        """The function (message, parts) that appends buffers to the list `parts`."""
        function = cls._encoders.get(version)
        if function is None:
            from kwire.protocol.encoder import build_encoder

            cls._check_version(version)
            function = cls._encoders[version] = build_encoder(cls.SCHEMA, version, cls.STRUCTS)
        return function

    @classmethod
    def decode_from(
        cls: type[SelfMessage], buffer: Buffer, offset: int, version: int
    ) -> tuple[SelfMessage, int]:
        """(message, position after it). `records` fields are views of `buffer`.

        Raises MalformedError for bytes that are not this message, UnsupportedVersionError.
        """
        view = buffer if type(buffer) is memoryview else memoryview(buffer)
        decode = cls._decoders.get(version) or cls.decoder(version)
        result: tuple[SelfMessage, int] = decode(view, offset)
        return result

    @classmethod
    def decode(cls: type[SelfMessage], buffer: Buffer, version: int) -> SelfMessage:
        """The message at the start of `buffer`; raises as `decode_from`.

        Bytes behind it are ignored, as Kafka does with requests (measured on Apache Kafka 4.4).
        """
        message, _ = cls.decode_from(buffer, 0, version)
        return message

    def encode_parts(self, version: int) -> list[Any]:
        """The message as buffers to be written one after another; `records` are not copied.

        Raises EncodeError for values that do not fit, UnsupportedVersionError for a version that
        there is not, or that lacks a field which is set and may not be left out.
        """
        parts: list[Any] = []
        encode = self._encoders.get(version) or self.encoder(version)
        encode(self, parts)
        return parts

    def encode(self, version: int) -> bytes:
        """The message as bytes; raises as `encode_parts`."""
        return b"".join(self.encode_parts(version))

    @classmethod
    def _check_version(cls, version: int) -> None:
        if not cls.MIN_VERSION <= version <= cls.MAX_VERSION:
            raise UnsupportedVersionError(
                f"{cls.NAME} has versions {cls.MIN_VERSION} to {cls.MAX_VERSION}, not {version}"
            )


def build_class(definition: schema.Message) -> Any:
    """The class of a message, with the classes of its structs as attributes."""
    classes: dict[str, Any] = {}
    for struct in definition.structs.values():
        _struct_class(struct, definition, classes)
    root = _new_class(definition.root, definition.root.name, Message, classes)
    root.API_KEY = definition.key
    root.KIND = definition.kind
    root.MIN_VERSION, root.MAX_VERSION = definition.versions
    root.SCHEMA = definition
    root.STRUCTS = {**classes, definition.root.name: root}
    root._decoders = {}
    root._encoders = {}
    for name, cls in classes.items():
        setattr(root, name, cls)
    return root


def _struct_class(struct: schema.Struct, message: schema.Message, classes: dict[str, Any]) -> None:
    """Make a struct's class after those of the structs inside it, and its frozen defaults."""
    if struct.name in classes:
        return
    for field in struct.fields:
        if field.struct is not None:
            _struct_class(field.struct, message, classes)
    cls = _new_class(struct, f"{message.name}.{struct.name}", Struct, classes)
    if not any(field.is_array or field.struct is not None for field in struct.fields):
        cls.FROZEN = _frozen(cls)
    classes[struct.name] = cls


def _new_class(struct: schema.Struct, name: str, base: type, classes: dict[str, Any]) -> Any:
    fields = tuple(field.name for field in struct.fields)
    members: dict[str, Any] = {
        "__slots__": fields,
        "__init__": _initialiser(struct, classes),
        "__module__": "kwire.protocol.messages",
        "__qualname__": name,
        "FIELDS": fields,
        "NAME": name,
    }
    cls: Any = type(struct.name, (base,), members)
    cls.PLAIN = cls
    return cls


def _initialiser(struct: schema.Struct, classes: dict[str, Any]) -> Any:
    """`__init__` with every field as a keyword that has the schema's default."""
    namespace: dict[str, Any] = {"unset": ...}
    arguments, body = [], []
    for field in struct.fields:
        if field.default is not ...:
            arguments.append(f"{field.name}={field.default!r}")
            body.append(f"self.{field.name} = {field.name}")
            continue
        arguments.append(f"{field.name}=unset")
        default = "[]"
        if not field.is_array:
            cls = classes[field.type]
            default = f"F_{field.type}" if cls.FROZEN is not None else f"F_{field.type}()"
            namespace[f"F_{field.type}"] = cls if cls.FROZEN is None else cls.FROZEN
        body.append(f"self.{field.name} = {default} if {field.name} is unset else {field.name}")
    lines = ["def __init__(self, *, " + ", ".join([*arguments, "unknown_tags=()"]) + "):"]
    lines += [f"    {line}" for line in [*body, "self.unknown_tags = unknown_tags"]]
    exec(compile("\n".join(lines), f"<{struct.name}>", "exec"), namespace)
    return namespace["__init__"]


def _frozen(cls: Any) -> Any:
    """An instance of defaults that refuses to be changed, for fields to share."""

    def refuse(self: Any, name: str, value: Any) -> None:
        raise AttributeError(
            f"{cls.NAME} is the default that messages share: assign a new one to the field"
        )

    frozen_class = type(cls.__name__, (cls,), {"__slots__": ()})
    made = frozen_class()
    frozen_class.__setattr__ = refuse  # type: ignore[assignment, method-assign]
    return made


def _same_bytes(left: Any, right: Any) -> bool:
    """`records` are equal whether they are one buffer or several."""
    if not isinstance(left, list | bytes | bytearray | memoryview):
        return False
    if not isinstance(right, list | bytes | bytearray | memoryview):
        return False
    try:
        return _joined(left) == _joined(right)
    except TypeError:
        return False


def _joined(value: Any) -> bytes:
    return b"".join(value) if isinstance(value, list) else bytes(value)


def _shown(value: Any) -> str:
    if isinstance(value, memoryview):
        return f"<{len(value)} bytes>"
    if isinstance(value, list) and len(value) > 20:
        return f"[{', '.join(map(_shown, value[:20]))}, ... {len(value)} in all]"
    return repr(value)
