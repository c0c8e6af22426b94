"""Write the classes of the messages from their schema (`make messages`).

`kwire/protocol/schema/api/fetch.txt` becomes `kwire/protocol/messages/api/fetch.py`, and so on,
and `messages/index.py` names them all for type checkers. `--check` only tells whether the files
are up to date; `tests/unit/protocol/test_generated_messages.py` calls the same functions.
"""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from kwire.protocol import schema  # noqa: E402

SCHEMA = ROOT / "kwire/protocol/schema"
MESSAGES = ROOT / "kwire/protocol/messages"
LINE_LENGTH = 100

KINDS = {
    "request": "request",
    "response": "response",
    "header": "header",
    "data": "data",
    "metadata": "metadata record",
    "coordinator-key": "key of a coordinator record",
    "coordinator-value": "value of a coordinator record",
}

TYPES = {
    "bool": "bool",
    "bytes": "bytes",
    "float64": "float",
    "records": "Records",
    "string": "str",
    "uuid": "bytes",
}
"""Python's types of the schema's; the integers are `int`."""


def type_of(message: schema.Message, field: schema.Field) -> str:
    """The annotation of a field."""
    name = TYPES.get(field.type, "int")
    if field.struct is not None:
        name = f"{message.name}.{field.type}"
    if field.is_array:
        name = f"list[{name}]"
    is_nullable = field.nullable != schema.NONE or field.default is None
    return f"{name} | None" if is_nullable else name


def new_default(message: schema.Message, field: schema.Field) -> str:
    """The expression that makes a default which can be changed."""
    return "[]" if field.is_array else f"{message.name}.{field.type}()"


def literal(value: object) -> str:
    """A value as the formatter writes it."""
    if value == bytes(16):
        return "ZERO"
    if isinstance(value, str):
        return f'"{value}"'
    return repr(value).replace("b''", 'b""')


def names_tuple(head: str, names: list[str], depth: int) -> list[str]:
    """`head = ("a", "b")` in one line, or a name a line."""
    quoted = [f'"{name}"' for name in names]
    inside = f"{quoted[0]}," if len(quoted) == 1 else ", ".join(quoted)
    line = f"{head} = ({inside})"
    if len(line) + 4 * depth <= LINE_LENGTH:
        return [line]
    return [f"{head} = (", *(f"    {name}," for name in quoted), ")"]


def class_lines(
    message: schema.Message, struct: schema.Struct, depth: int, inner: list[str]
) -> list[str]:
    """A class: its constants, the structs inside, tagged fields, `__init__`."""
    is_root = struct is message.root
    plain = [field for field in struct.fields if field.tag is None]
    tagged = [field for field in struct.fields if field.tag is not None]
    body = []
    if is_root:
        low, high = message.versions
        of = "version" if low == high else "versions"
        versions = f"{low}" if low == high else f"{low}-{high}"
        body += [f'"""{message.name}, {of} {versions}: a {KINDS[message.kind]}."""', ""]
    if plain:
        body += names_tuple("__slots__", sorted(field.name for field in plain), depth + 1)
    else:
        body.append("__slots__ = ()")
    if struct.fields:
        body += names_tuple("FIELDS", [field.name for field in struct.fields], depth + 1)
    if is_root:
        if message.key is not None:
            body.append(f"API_KEY = {message.key}")
        body.append(f'KIND = "{message.kind}"')
        body.append(f"MIN_VERSION, MAX_VERSION = {message.versions[0]}, {message.versions[1]}")
    body.append("")
    body += inner
    for field in tagged:
        body += tagged_lines(message, field)
    if tagged:
        body.append("")
    body += initialiser(message, plain, tagged)
    base = "Struct"
    if is_root:
        is_request = message.kind == "request"
        answer = f"{message.name.removesuffix('Request')}Response"
        base = f'Request["{answer}"]' if is_request else "Message"
    return [f"class {struct.name}({base}):", *(f"    {line}" if line else "" for line in body)]


def tagged_lines(message: schema.Message, field: schema.Field) -> list[str]:
    """A tagged field: its default, or what makes it."""
    what = type_of(message, field)
    if field.default is not ...:
        return [f'{field.name} = Tagged["{what}"]({literal(field.default)})']
    maker = "list" if field.is_array else f"lambda: {message.name}.{field.type}()"
    return [f'{field.name} = Tagged["{what}"](maker={maker})']


def initialiser(
    message: schema.Message, plain: list[schema.Field], tagged: list[schema.Field]
) -> list[str]:
    """`__init__` with every field as a keyword that has the schema's default."""
    lines = ["def __init__(", "    self,", "    *,"]
    for field in plain + tagged:
        made = field.default is ... or field.tag is not None
        default = "UNSET" if made else literal(field.default)
        lines.append(f"    {field.name}: {type_of(message, field)} = {default},")
    lines += ["    unknown_tags: Tags = (),", ") -> None:"]
    for field in plain:
        value = field.name
        if field.default is ...:
            value = f"{new_default(message, field)} if {value} is UNSET else {value}"
        lines.append(f"    self.{field.name} = {value}")
    lines.append("    self._tagged = None")
    for field in tagged:
        lines.append(f"    if {field.name} is not UNSET:")
        lines.append(f"        self.{field.name} = {field.name}")
    lines += ["    if unknown_tags:", "        self.unknown_tags = unknown_tags"]
    return lines


def message_lines(message: schema.Message) -> list[str]:
    """The class of a message with the classes of its structs inside."""
    inner: list[str] = []
    for struct in message.structs.values():
        inner += [*class_lines(message, struct, 1, []), ""]
    return class_lines(message, message.root, 0, inner)


def messages_of(path: pathlib.Path) -> list[schema.Message]:
    """The messages of a schema file, in its order."""
    lines = path.read_text().splitlines()
    return [schema.load(line.split()[1]) for line in lines if line and line[0] != " "]


def module_text(source: str, messages: list[schema.Message]) -> str:
    """A generated module."""
    body: list[str] = []
    for message in messages:
        body += ["", "", *message_lines(message)]
    text = "\n".join(body)
    names = [
        name
        for name in ("UNSET", "Message", "Records", "Request", "Struct", "Tagged", "Tags")
        if re.search(rf"\b{name}\b", text)
    ]
    head = [
        f'"""Generated from `schema/{source}` (`make messages`): not to be edited."""',
        "",
        "from __future__ import annotations",
        "",
        f"from kwire.protocol.structs import {', '.join(names)}",
    ]
    if " = ZERO," in text or "(ZERO)" in text:
        head.append("from kwire.protocol.uuids import ZERO")
    return "\n".join(head) + text + "\n"


def formatted(made: dict[str, str]) -> dict[str, str]:
    """The same files as the project's formatter writes them."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "ruff.toml").write_text(f"line-length = {LINE_LENGTH}\n")
        for path, text in made.items():
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_text(text)
        subprocess.run([sys.executable, "-m", "ruff", "format", "-q", name], check=True)
        return {path: (folder / path).read_text() for path in made}


def files() -> dict[str, str]:
    """Path below `messages/` -> text, of every generated file."""
    made: dict[str, str] = {}
    imports: list[str] = []
    for path in sorted(SCHEMA.rglob("*.txt")):
        source = path.relative_to(SCHEMA).as_posix()
        target = source.replace(".txt", ".py")
        messages = messages_of(path)
        made[target] = module_text(source, messages)
        module = "kwire.protocol.messages." + target.removesuffix(".py").replace("/", ".")
        names = sorted(message.name for message in messages)
        imports += [f"from {module} import {name} as {name}\n" for name in names]
    made["index.py"] = (
        '"""Generated by `make messages`: every message by its name, for type checkers."""\n\n'
        "from __future__ import annotations\n\n" + "".join(imports)
    )
    return formatted(made)


def outdated(made: dict[str, str]) -> list[str]:
    """Of the generated files, what is not as `files` makes it, or should not be there."""
    there = {path.relative_to(MESSAGES).as_posix() for path in MESSAGES.rglob("*.py")}
    written = {path for path in there if not path.endswith("__init__.py")}
    return sorted(
        {path for path, text in made.items() if not _is(MESSAGES / path, text)}
        | (written - made.keys())
    )


def _is(path: pathlib.Path, text: str) -> bool:
    return path.exists() and path.read_text() == text


def main() -> int:
    made = files()
    stale = outdated(made)
    if "--check" in sys.argv:
        print("\n".join(f"not up to date: {path}" for path in stale) or "up to date")
        return 1 if stale else 0
    for path in stale:
        target = MESSAGES / path
        if path in made:
            target.parent.mkdir(exist_ok=True)
            target.write_text(made[path])
        else:
            target.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
