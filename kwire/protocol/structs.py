"""What every message and every struct inside one is: named fields, compared by value, and a codec.

The classes themselves are in `messages`: one per message and one per struct in it, covering all
versions; never a class per version. The decoder and the encoder of a version are written and
compiled when that version is first used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Generic, Protocol, TypeVar, cast, overload

from kwire.protocol import schema
from kwire.protocol.errors import UnsupportedVersionError

__all__ = ["UNSET", "Message", "Records", "Request", "Struct", "Tagged", "Tags"]

Buffer = bytes | bytearray | memoryview


class FilePart(Protocol):
    """Bytes that are in a file still: whoever sends them puts them in the place of this."""

    def __len__(self) -> int: ...

    def read(self) -> bytes: ...

    def view(self) -> memoryview: ...


Records = Buffer | list[Buffer] | list[Buffer | FilePart]
"""Record batches: a view of the receive buffer when decoded, one buffer or a list to encode."""
Tags = Sequence[tuple[int, bytes]]
"""Tagged fields that the schema does not know, as (tag, bytes) in the order in which they came."""
Parts = list[Any]
"""Buffers and `FilePart`s, to be written one after another."""
Decode = Callable[[memoryview, int], tuple[Any, int]]
"""(view, position) -> (message, position behind it): the decoder of a message's version."""
Encode = Callable[["Message", Parts], None]
"""Appends what a message is at a version to the parts."""
EncodeAnswer = Callable[["Message", Parts], bool]
"""The same of a response, and whether it is an unusual one (`answer_encoder.py`)."""
Self = TypeVar("Self", bound="Struct")
SelfMessage = TypeVar("SelfMessage", bound="Message")
Value = TypeVar("Value")
Response = TypeVar("Response", bound="Message", covariant=True)

UNSET: Any = ...
"""The argument of a field that is left out and whose default is a new list or struct, or a tag."""


SECRETS = ("auth_bytes", "hmac", "salt", "salted_password", "server_key", "stored_key")
"""Fields that let somebody in, or help to: they are in no text about a message."""
HIDDEN = "[hidden]"
_NONE_TAGGED: Mapping[str, Any] = MappingProxyType({})


class Struct:
    """Base of every message and struct: named fields, compared by value.

    `FIELDS` are the names of the fields. Tagged fields are rarely set: they share one slot, a dict
    that is None while all of them have their defaults, so that the hot path has one thing to look
    at.
    """

    __slots__ = ("_tagged",)
    __hash__ = None  # type: ignore[assignment]

    FIELDS: ClassVar[tuple[str, ...]] = ()
    NAME: ClassVar[str] = ""
    PLAIN: ClassVar[type[Struct]]
    """The class that callers construct; see `bare_classes.py`."""

    _tagged: dict[str, Any] | None

    def __init_subclass__(cls, bare: bool = False) -> None:
        super().__init_subclass__()
        if not bare:
            cls.PLAIN = cls
            cls.NAME = cls.__qualname__

    @property
    def unknown_tags(self) -> Tags:
        return () if self._tagged is None else self._tagged.get("unknown_tags", ())

    @unknown_tags.setter
    def unknown_tags(self, tags: Tags) -> None:
        if tags or self._tagged is not None:
            _set_tagged(self, "unknown_tags", tags)

    @property
    def tagged(self) -> Mapping[str, Any]:
        """The tagged fields that were given a value, by name; asking makes no defaults."""
        return _NONE_TAGGED if self._tagged is None else self._tagged

    def is_set(self, name: str) -> bool:
        """Whether a tagged field was given a value, maybe its default; asking makes none."""
        return self._tagged is not None and name in self._tagged

    def copy(self: Self, **changes: Any) -> Self:
        """A copy with some fields changed; lists and structs inside are shared with this one."""
        made = cast("Self", object.__new__(self.PLAIN))
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
        fields = [
            f"{name}={HIDDEN if name in SECRETS else _shown(getattr(self, name))}"
            for name in self.FIELDS
        ]
        if self.unknown_tags:
            fields.append(f"unknown_tags={self.unknown_tags!r}")
        return f"{self.NAME}({', '.join(fields)})"


class Tagged(Generic[Value]):
    """A tagged field, kept in the dict that all of a struct share.

    `maker` makes the default where that can be changed: it is made when the field is read.
    """

    __slots__ = ("_default", "_maker", "_name")

    def __init__(self, default: Value = UNSET, maker: Callable[[], Value] | None = None) -> None:
        self._default = default
        self._maker = maker

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, struct: None, owner: type) -> Tagged[Value]: ...

    @overload
    def __get__(self, struct: Struct, owner: type) -> Value: ...

    def __get__(self, struct: Struct | None, owner: type) -> Tagged[Value] | Value:
        if struct is None:
            return self
        tagged = struct._tagged
        if tagged is not None and self._name in tagged:
            return cast("Value", tagged[self._name])
        if self._maker is None:
            return self._default
        made = self._maker()
        _set_tagged(struct, self._name, made)
        return made

    def __set__(self, struct: Struct, value: Value) -> None:
        _set_tagged(struct, self._name, value)


class _Schema:
    """The definition of a message, read when it is first asked for."""

    def __get__(self, message: Message | None, owner: type[Message]) -> schema.Message:
        definition = schema.load(owner.NAME)
        type.__setattr__(owner, "SCHEMA", definition)
        return definition


class Message(Struct):
    """Base of every message. See `messages` for what a class has beside this."""

    __slots__ = ()

    API_KEY: ClassVar[int | None] = None
    """API key, type of the metadata record or of the coordinator record; None without one."""
    KIND: ClassVar[str] = ""
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = -1
    SCHEMA = _Schema()
    STRUCTS: ClassVar[dict[str, type[Struct]]]
    """The classes of the structs by name, the message's own included."""
    _decoders: ClassVar[dict[int, Decode]] = {}
    _encoders: ClassVar[dict[int, Encode]] = {}
    _answer_encoders: ClassVar[dict[int, EncodeAnswer]] = {}
    _array_encoders: ClassVar[dict[tuple[bool, str, int], Callable[..., None]]] = {}

    def __init_subclass__(cls, bare: bool = False) -> None:
        super().__init_subclass__(bare)
        members = vars(cls).values()
        structs = [each for each in members if isinstance(each, type) and issubclass(each, Struct)]
        cls.STRUCTS = {struct.__name__: struct for struct in (*structs, cls)}
        cls._decoders = {}
        cls._encoders = {}
        cls._answer_encoders = {}
        cls._array_encoders = {}

    @classmethod
    def is_flexible(cls, version: int) -> bool:
        """Whether this version has compact lengths and tag sections."""
        return schema.within(version, cls.SCHEMA.flexible)

    @classmethod
    def decoder(cls, version: int) -> Decode:
        """The function (memoryview, position) -> (message, end) for one version."""
        function = cls._decoders.get(version)
        if function is None:
            from kwire.protocol.decoder import build_decoder

            cls._check_version(version)
            function = cls._decoders[version] = build_decoder(cls.SCHEMA, version, cls.STRUCTS)
        return function

    @classmethod
    def encoder(cls, version: int) -> Encode:
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

    def encode_parts(self, version: int) -> Parts:
        """The message as buffers to be written one after another; `records` are not copied.

        Raises EncodeError for values that do not fit, UnsupportedVersionError for a version that
        there is not, or that lacks a field which is set and may not be left out.
        """
        parts: Parts = []
        encode = self._encoders.get(version) or self.encoder(version)
        encode(self, parts)
        return parts

    def encode_answer(self, version: int, parts: Parts) -> bool:
        """Append what `encode_parts` gives to `parts`: whether the response has other error codes
        than one NONE at the top and one inside, where its API has such."""
        encode = self._answer_encoders.get(version) or self._answer_encoder(version)
        return encode(self, parts)

    @classmethod
    def _answer_encoder(cls, version: int) -> EncodeAnswer:
        from kwire.protocol.answer_encoder import build_answer_encoder

        cls._check_version(version)
        function: EncodeAnswer = build_answer_encoder(cls.SCHEMA, version, cls.STRUCTS)
        cls._answer_encoders[version] = function
        return function

    def encode(self, version: int) -> bytes:
        """The message as bytes; raises as `encode_parts`."""
        return b"".join(self.encode_parts(version))

    @classmethod
    def encode_elements(cls, array: str, elements: Sequence[Struct], version: int) -> bytes:
        """Elements of an array of this message, as `encode_around` takes them; raises as
        `encode_parts`. An array within the elements of an array is named by both:
        `groups.topics`."""
        return b"".join(cls.encode_element_parts(array, elements, version))

    @classmethod
    def encode_element_parts(cls, array: str, elements: Sequence[Struct], version: int) -> Parts:
        """As `encode_elements` and `encode_parts`: `records` are not copied."""
        parts: Parts = []
        if elements:
            encode = cls._array_encoder(True, array, version)
            encode(elements, parts)
        return parts

    def encode_around(self, array: str, elements: tuple[int, bytes], version: int) -> bytes:
        """The message as bytes, with (count, encoded) as the elements of an array of it."""
        encode = self._array_encoder(False, array, version)
        parts: Parts = []
        encode(self, parts, *elements)
        return b"".join(parts)

    def encode_parts_around(
        self, array: str, count: int, elements: Sequence[Buffer], version: int
    ) -> Parts:
        """As `encode_around` and `encode_parts`: pieces of what is encoded are not copied."""
        return self.encode_element_parts_around(array, self, count, elements, version)

    @classmethod
    def encode_element_parts_around(
        cls, array: str, element: Struct, count: int, elements: Sequence[Buffer], version: int
    ) -> Parts:
        """The element that has an array which is named by both, as `encode_element_parts` gives
        it; what is encoded of its own is not copied."""
        encode = cls._array_encoder(False, array, version)
        parts: Parts = []
        place = bytearray()
        encode(element, parts, count, place)
        at = next(at for at, part in enumerate(parts) if part is place)
        return [*parts[:at], *elements, *parts[at + 1 :]]

    @classmethod
    def _array_encoder(cls, of_elements: bool, array: str, version: int) -> Callable[..., None]:
        key = (of_elements, array, version)
        function = cls._array_encoders.get(key)
        if function is None:
            from kwire.protocol.encoder import build_element_encoder, build_frame_encoder

            cls._check_version(version)
            build = build_element_encoder if of_elements else build_frame_encoder
            function = cls._array_encoders[key] = build(cls.SCHEMA, version, cls.STRUCTS, array)
        return function

    @classmethod
    def _check_version(cls, version: int) -> None:
        if not cls.MIN_VERSION <= version <= cls.MAX_VERSION:
            raise UnsupportedVersionError(
                f"{cls.NAME} has versions {cls.MIN_VERSION} to {cls.MAX_VERSION}, not {version}"
            )


class Request(Message, Generic[Response]):
    """Base of every request. The parameter is what answers it: who sends one knows by its type
    what comes back."""

    __slots__ = ()

    API_KEY: ClassVar[int]


def _set_tagged(struct: Struct, name: str, value: Any) -> None:
    if struct._tagged is None:
        struct._tagged = {}
    struct._tagged[name] = value


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
