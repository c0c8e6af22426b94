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

    `FIELDS` are the names of the fields. Tagged fields are rarely set: they share one slot, a dict
    that is None while all of them have their defaults, so that the hot path has one thing to look
    at. `unknown_tags` are the tagged fields that the schema does not know, as (tag, bytes) in the
    order in which they came.
    """

    __slots__ = ("_tagged",)
    __hash__ = None  # type: ignore[assignment]

    FIELDS: ClassVar[tuple[str, ...]] = ()
    NAME: ClassVar[str] = ""
    PLAIN: ClassVar[Any] = None
    """The class that callers construct; see `_StructType`."""

    _tagged: dict[str, Any] | None

    @property
    def unknown_tags(self) -> Any:
        return () if self._tagged is None else self._tagged.get("unknown_tags", ())

    @unknown_tags.setter
    def unknown_tags(self, tags: Any) -> None:
        if tags or self._tagged is not None:
            _set_tagged(self, "unknown_tags", tags)

    def is_set(self, name: str) -> bool:
        """Whether a tagged field was given a value, maybe its default; asking makes none."""
        return self._tagged is not None and name in self._tagged

    def copy(self: Self, **changes: Any) -> Self:
        """A copy with some fields changed; lists and structs inside are shared with this one."""
        made: Self = object.__new__(self.PLAIN)
        made._tagged = None
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
        if type(buffer) is not memoryview:
            buffer = memoryview(buffer)
        try:
            decode = cls._decoders[version]
        except KeyError:
            decode = cls.decoder(version)
        result: tuple[SelfMessage, int] = decode(buffer, offset)
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
    root.__init__ = _initialiser(definition.root, classes)
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
    bare = _new_class(struct, f"{message.name}.{struct.name}", Struct, classes)
    members = {"__slots__": (), "__init__": _initialiser(struct, classes), "BARE": bare}
    cls: Any = _StructType(struct.name, (bare,), members)
    cls.__module__, cls.__qualname__ = bare.__module__, bare.__qualname__
    bare.PLAIN = cls
    classes[struct.name] = cls


def _new_class(struct: schema.Struct, name: str, base: type, classes: dict[str, Any]) -> Any:
    fields = tuple(field.name for field in struct.fields)
    members: dict[str, Any] = {
        "__slots__": tuple(field.name for field in struct.fields if field.tag is None),
        "__module__": "kwire.protocol.messages",
        "__qualname__": name,
        "FIELDS": fields,
        "NAME": name,
    }
    for field in struct.fields:
        if field.tag is not None:
            members[field.name] = _tagged_field(field, classes)
    cls: Any = type(struct.name, (base,), members)
    cls.PLAIN = cls
    return cls


class _StructType(type):
    """Type of the struct classes that callers construct.

    Decoders make instances of their base, which has the same fields and no `__init__`: a third
    cheaper to create. Callers need not know: for `isinstance`, `==` and `copy` both are one.
    """

    BARE: Any

    def __instancecheck__(cls, instance: Any) -> bool:
        return type(instance) is cls.BARE or type.__instancecheck__(cls, instance)


def _tagged_field(field: schema.Field, classes: dict[str, Any]) -> property:
    """The property of a tagged field; a default that can be changed is made when it is read."""
    name, default = field.name, field.default
    maker: Any = None
    if default is ...:
        maker = list if field.is_array else classes[field.type]

    def read(self: Struct) -> Any:
        tagged = self._tagged
        if tagged is not None and name in tagged:
            return tagged[name]
        if maker is None:
            return default
        made = maker()
        _set_tagged(self, name, made)
        return made

    def write(self: Struct, value: Any) -> None:
        _set_tagged(self, name, value)

    return property(read, write)


def _set_tagged(struct: Struct, name: str, value: Any) -> None:
    if struct._tagged is None:
        struct._tagged = {}
    struct._tagged[name] = value


def _initialiser(struct: schema.Struct, classes: dict[str, Any]) -> Any:
    """`__init__` with every field as a keyword that has the schema's default."""
    tagged = frozenset(field.name for field in struct.fields if field.tag is not None)
    namespace: dict[str, Any] = {
        "unset": ...,
        "known": tagged | {"unknown_tags"},
        "refuse": _refuse_arguments,
    }
    arguments, body = [], []
    for field in struct.fields:
        if field.tag is not None:
            continue
        if field.default is not ...:
            arguments.append(f"{field.name}={field.default!r}")
            body.append(f"self.{field.name} = {field.name}")
            continue
        arguments.append(f"{field.name}=unset")
        default = "[]"
        if not field.is_array:
            default = f"C_{field.type}()"
            namespace[f"C_{field.type}"] = classes[field.type]
        body.append(f"self.{field.name} = {default} if {field.name} is unset else {field.name}")
    keywords = ", ".join(["self", *(["*", *arguments] if arguments else []), "**tagged"])
    lines = [f"def __init__({keywords}):"]
    body += [
        "if tagged and not tagged.keys() <= known: refuse(self, tagged.keys() - known)",
        "self._tagged = tagged or None",
    ]
    lines += [f"    {line}" for line in body]
    exec(compile("\n".join(lines), f"<{struct.name}>", "exec"), namespace)
    return namespace["__init__"]


def _refuse_arguments(struct: Struct, names: set[str]) -> None:
    raise TypeError(f"{struct.NAME} has no field {min(names)}")


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
