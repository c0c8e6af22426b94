"""The messages of Kafka 4.4 as data, and the reader of their notation.

One file per API in `api/` (request and response together), `headers.txt`, and one file per
Kafka module in `records/` for what lives inside records. A file is read when one of its messages
is first used. The notation:

    KIND NAME [key=N] versions=RANGE flexible=RANGE|all|none [listeners=a,b] [unstable]
      FIELD TYPE [v=RANGE] [tag=N[@RANGE]] [default=VALUE] [ignorable] [compact=never]
        FIELD TYPE ...           the fields of the struct that the field above introduces
      struct NAME                a struct that several fields name; its fields stand below it

    KIND       request, response, header, data, metadata, coordinator-key, coordinator-value
    key        API key; type of a metadata record; type of a coordinator record
    RANGE      `a..b`, `a..`, `..b`, `a`: version numbers, both ends included
    flexible   versions with compact lengths and a tag section after every struct
    unstable   the highest version is not advertised unless unstable versions are enabled
    TYPE       bool int8 int16 uint16 int32 uint32 int64 float64 uuid string bytes records, a
               struct's name; `[T]` an array; `T?` may be null, `T?RANGE` in these versions only
    v          versions that have the field; left out: as the struct around it
    tag        the field travels in the tag section, in RANGE if given, in all its versions if not
    default    left out: 0, false, empty, the zero uuid or a struct of defaults
    ignorable  dropped silently where a version lacks it; without it a value other than the
               default cannot be sent in such a version
    compact    `never`: int16 length in flexible versions too
"""

from __future__ import annotations

from typing import Any

__all__ = ["Field", "Message", "Struct", "file_of", "load", "snake_case"]

VersionRange = tuple[int, int]
NONE: VersionRange = (1, 0)
"""The empty range."""

_RECORD_FILES = (
    "metadata",
    "group_coordinator",
    "transaction_coordinator",
    "share_coordinator",
    "clients",
    "raft",
    "storage",
)


class Field:
    """One field of a struct.

    `type` is the element's type for an array; `struct` is the definition of a struct type.
    `versions`, `nullable` and `tagged` are version ranges; `tag` is None for a field that never
    travels in the tag section.
    """

    __slots__ = (
        "default",
        "ignorable",
        "is_array",
        "name",
        "never_compact",
        "nullable",
        "struct",
        "tag",
        "tagged",
        "type",
        "versions",
    )

    name: str
    type: str
    is_array: bool
    versions: VersionRange
    nullable: VersionRange
    tag: int | None
    tagged: VersionRange
    default: Any
    ignorable: bool
    never_compact: bool
    struct: Struct | None


class Struct:
    """A struct: its Kafka name and its fields in the order of the wire."""

    __slots__ = ("fields", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.fields: list[Field] = []


class Message:
    """A message: its root struct, and every struct in it by name."""

    __slots__ = ("flexible", "key", "kind", "listeners", "name", "root", "structs", "versions")

    name: str
    kind: str
    key: int | None
    versions: VersionRange
    flexible: VersionRange
    listeners: tuple[str, ...]
    root: Struct
    structs: dict[str, Struct]


def within(version: int, versions: VersionRange) -> bool:
    """Whether `version` is in the range."""
    return versions[0] <= version <= versions[1]


def snake_case(name: str) -> str:
    """`OffsetFetch` -> `offset_fetch`."""
    return "".join("_" + c.lower() if c.isupper() else c for c in name).lstrip("_")


def load(name: str) -> Message:
    """Read the definition of one message by Kafka's name.

    KeyError when there is none, ValueError with the line that cannot be read.
    """
    _, lines = _find(name)
    return _parse(lines)


def file_of(name: str) -> str:
    """The file that defines a message, without its suffix (`api/fetch`).

    Only where several files may have it they are read, and KeyError is raised when none has.
    """
    paths = _files_of(name)
    path = paths[0] if len(paths) == 1 else _find(name)[0]
    return path.removesuffix(".txt")


def names_in(module: str) -> list[tuple[str, str, int | None]]:
    """(name, kind, key) of every message in `records/<module>.txt`, in the order of the file."""
    text = _read(f"records/{module}.txt")
    if text is None:
        raise KeyError(module)
    found = []
    for line in text.splitlines():
        if line and line[0] != " ":
            words = line.split()
            key = int(words[2][4:]) if words[2].startswith("key=") else None
            found.append((words[1], words[0], key))
    return found


def _find(name: str) -> tuple[str, list[str]]:
    """(path, lines of the definition) of a message."""
    for path in _files_of(name):
        text = _read(path)
        if text is None:
            continue
        start = f"\n{text}".find(f" {name} ")
        if start >= 0:
            start = text.rfind("\n", 0, start) + 1
            end = text.find("\n\n", start)
            return path, text[start : end if end >= 0 else len(text)].splitlines()
    raise KeyError(name)


def _files_of(name: str) -> list[str]:
    if name.endswith("Header"):
        return ["headers.txt"]
    for suffix in ("Request", "Response"):
        if name.endswith(suffix):
            return [f"api/{snake_case(name.removesuffix(suffix))}.txt"]
    return [f"records/{module}.txt" for module in _RECORD_FILES]


def _read(path: str) -> str | None:
    loader: Any = globals()["__loader__"]
    try:
        data: bytes = loader.get_data(f"{__path__[0]}/{path}")
    except OSError:
        return None
    return data.decode()


def _range(text: str, around: VersionRange) -> VersionRange:
    low, dots, high = text.partition("..")
    if not dots:
        return int(low), int(low)
    return int(low) if low else around[0], int(high) if high else around[1]


def _parse(lines: list[str]) -> Message:
    message = Message()
    message.kind, message.name, *options = lines[0].split()
    given = dict(option.partition("=")[::2] for option in options)
    message.key = int(given["key"]) if "key" in given else None
    message.versions = _range(given["versions"], NONE)
    flexible = given["flexible"]
    if flexible in ("all", "none"):
        message.flexible = message.versions if flexible == "all" else NONE
    else:
        message.flexible = _range(flexible, message.versions)
    listeners = given.get("listeners")
    message.listeners = tuple(listeners.split(",")) if listeners else ()
    message.root = Struct(message.name)
    message.structs = {}

    open_structs = [(message.root, message.versions)]
    for line in lines[1:]:
        words = line.split()
        depth = (len(line) - len(line.lstrip())) // 2
        del open_structs[depth:]
        if words[0] == "struct":
            open_structs.append((_struct(message, words[1]), message.versions))
            continue
        if not open_structs:
            raise ValueError(
                f"{message.name}: {line!r} is not indented; a message ends with an empty line"
            )
        struct, versions = open_structs[-1]
        try:
            field = _parse_field(message, words, versions)
        except (KeyError, ValueError) as error:
            raise ValueError(f"{message.name}: cannot read {line.strip()!r}: {error}") from None
        struct.fields.append(field)
        if field.struct is not None:
            open_structs.append((field.struct, field.versions))
    return message


def _struct(message: Message, name: str) -> Struct:
    return message.structs.setdefault(name, Struct(name))


def _parse_field(message: Message, words: list[str], around: VersionRange) -> Field:
    if len(words) < 2:
        raise ValueError("a field needs a type")
    field = Field()
    field.name = words[0]
    options = dict(word.partition("=")[::2] for word in words[2:])
    if unknown := options.keys() - _OPTIONS:
        raise ValueError(f"there is no option {min(unknown)}")
    field.versions = _range(options["v"], around) if "v" in options else around
    name, null, nullable = words[1].partition("?")
    field.nullable = _range(nullable or "..", field.versions) if null else NONE
    field.is_array = name[0] == "["
    field.type = name.strip("[]")
    field.struct = _struct(message, field.type) if field.type[:1].isupper() else None
    if field.struct is None and field.type not in _ZEROS:
        raise ValueError(f"there is no type {field.type}")
    tag, _, tagged = options.get("tag", "").partition("@")
    field.tag = int(tag) if tag else None
    field.tagged = _range(tagged or "..", field.versions) if tag else NONE
    field.ignorable = "ignorable" in options
    field.never_compact = "compact" in options
    field.default = _default(field, options.get("default"))
    return field


def _default(field: Field, text: str | None) -> Any:
    """The default as a Python value; for a struct or an array, None or `...` (a fresh one)."""
    if text == "null":
        return None
    if field.is_array or field.struct is not None:
        return ...
    if text is None:
        nullable_records = field.type == "records" and field.nullable != NONE
        return None if nullable_records else _ZEROS[field.type]
    if field.type == "string":
        return text
    if field.type == "bool":
        return text == "true"
    return float(text) if field.type == "float64" else int(text, 0)


_OPTIONS = frozenset({"v", "tag", "default", "ignorable", "compact"})
_ZEROS: dict[str, Any] = {
    "bool": False,
    "bytes": b"",
    "float64": 0.0,
    "int16": 0,
    "int32": 0,
    "int64": 0,
    "int8": 0,
    "records": b"",
    "string": "",
    "uint16": 0,
    "uint32": 0,
    "uuid": bytes(16),
}
