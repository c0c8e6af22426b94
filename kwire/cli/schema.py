"""`kwire schema`: list, show, check, register, diff. Of kwire's registry and of others."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from kwire.cli import output, schema_files
from kwire.cli.options import DEFAULT_REGISTRY, AsJson
from kwire.cli.options import Registry as RegistryOption
from kwire.cli.output import Json
from kwire.cli.registry import Registry
from kwire.cli.schema_files import AVRO
from kwire.cli.verbs import Verbs
from kwire.client.errors import ClientError

EXIT_INCOMPATIBLE = 1
EXIT_DIFFERENT = 1
COLUMNS = ("subject", "versions", "type", "id", "compatibility")

schema_app = typer.Typer(
    cls=Verbs,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="List, show, check, register, compare schemas of a registry.",
)
Subject = Annotated[str, typer.Argument(help="orders-value; :.team:orders-value in a context.")]
File = Annotated[
    Path, typer.Argument(help="The schema: .avsc, .json or .proto.", exists=True, dir_okay=False)
]
Kind = Annotated[
    str | None,
    typer.Option("--type", help="AVRO, JSON or PROTOBUF, where the file's name does not say it."),
]
References = Annotated[
    list[str] | None,
    typer.Option("--reference", help="NAME=SUBJECT:VERSION, what the schema calls another one."),
]


@schema_app.command("list")
def schema_list(
    prefix: Annotated[str, typer.Argument(help="Only subjects that begin so.")] = "",
    deleted: Annotated[bool, typer.Option("--deleted", help="Also those deleted.")] = False,
    as_json: AsJson = False,
    registry: RegistryOption = DEFAULT_REGISTRY,
) -> None:
    """The subjects with their versions, and the id of the last one."""
    asked = Registry(registry)
    flag = "true" if deleted else "false"
    found = asked.get("subjects", subjectPrefix=prefix or ":*:", deleted=flag)
    rows: list[tuple[Json, ...]] = []
    for subject in _strings(found):
        versions = asked.get("subjects", subject, "versions", deleted=flag)
        numbers = [str(one) for one in versions] if isinstance(versions, list) else []
        last = _object(asked.get("subjects", subject, "versions", numbers[-1], deleted=flag), asked)
        config = _object(asked.get("config", subject, defaultToGlobal="true"), asked)
        kind = last.get("schemaType", AVRO)
        rows.append(
            (subject, ",".join(numbers), kind, last.get("id"), config.get("compatibilityLevel"))
        )
    output.table(COLUMNS, rows, as_json=as_json)


@schema_app.command("show")
def schema_show(
    subject: Annotated[str, typer.Argument(help="A subject, or the id of a schema.")],
    version: Annotated[str, typer.Argument(help="A number, or latest.")] = "latest",
    as_json: AsJson = False,
    registry: RegistryOption = DEFAULT_REGISTRY,
) -> None:
    """A schema, of a subject's version or by its id; --json tells all that belongs to it."""
    asked = Registry(registry)
    if subject.isdecimal() and version == "latest":
        found: Mapping[str, Json] = _object(asked.get("schemas", "ids", subject), asked)
    else:
        found = _version(asked, subject, version)
    if as_json:
        output.say_json(found)
    else:
        output.say(_printed(found))


@schema_app.command("check")
def schema_check(
    subject: Subject,
    file: File,
    version: Annotated[
        str | None, typer.Option("--version", help="Only against this one: a number, or latest.")
    ] = None,
    kind: Kind = None,
    reference: References = None,
    as_json: AsJson = False,
    registry: RegistryOption = DEFAULT_REGISTRY,
) -> None:
    """Whether a schema may be the next one of a subject, and why not. Exit status 1 when not."""
    body = _body(file, kind, reference)
    against = [version] if version is not None else []
    path = ["compatibility", "subjects", subject, "versions", *against]
    asked = Registry(registry)
    found = _object(asked.post(*path, body=body, verbose="true"), asked)
    if as_json:
        output.say_json(found)
    elif found.get("is_compatible"):
        output.say(f"{file} may follow in {subject}")
    else:
        output.say(f"{file} may not follow in {subject}:")
        for message in _strings(found.get("messages")):
            output.say(f"  {message}")
    if not found.get("is_compatible"):
        raise typer.Exit(EXIT_INCOMPATIBLE)


@schema_app.command("register")
def schema_register(
    subject: Subject,
    file: File,
    kind: Kind = None,
    reference: References = None,
    normalize: Annotated[
        bool, typer.Option("--normalize", help="In the form that equal schemas have.")
    ] = False,
    as_json: AsJson = False,
    registry: RegistryOption = DEFAULT_REGISTRY,
) -> None:
    """Make a schema the next version of a subject; one that is there already stays what it is."""
    body = _body(file, kind, reference)
    asked = Registry(registry)
    found = _object(
        asked.post(*("subjects", subject, "versions"), body=body, normalize=str(normalize).lower()),
        asked,
    )
    if "version" not in found:  # an older registry tells the id alone
        found = _object(asked.post("subjects", subject, body=body), asked)
    if as_json:
        output.say_json(found)
    else:
        output.say(f"{subject} version {found.get('version')} has id {found.get('id')}")


@schema_app.command("diff")
def schema_diff(
    subject: Subject,
    left: Annotated[str, typer.Argument(help="A version, or a file.")],
    right: Annotated[str, typer.Argument(help="A version, a file, or latest.")] = "latest",
    registry: RegistryOption = DEFAULT_REGISTRY,
) -> None:
    """What differs between two versions, or between a version and a file. Exit status 1 when
    something does."""
    asked = Registry(registry)
    before, after = (_lines(asked, subject, one) for one in (left, right))
    names = _name(subject, left), _name(subject, right)
    lines = list(difflib.unified_diff(before, after, *names, lineterm=""))
    for line in lines:
        output.say(line)
    if lines:
        raise typer.Exit(EXIT_DIFFERENT)


def _lines(registry: Registry, subject: str, given: str) -> list[str]:
    if _is_version(given):
        return _printed(_version(registry, subject, given)).splitlines()
    path = Path(given)
    found = schema_files.body_of(path, schema_files.type_of(path) or AVRO)
    return _printed(found).splitlines()


def _name(subject: str, given: str) -> str:
    return f"{subject} {given}" if _is_version(given) else given


def _is_version(given: str) -> bool:
    return given == "latest" or given.isdecimal()


def _version(registry: Registry, subject: str, version: str) -> Mapping[str, Json]:
    return _object(registry.get("subjects", subject, "versions", version), registry)


def _printed(found: Mapping[str, Json]) -> str:
    """A schema for people: JSON in lines."""
    text = str(found.get("schema", ""))
    if found.get("schemaType", AVRO) == "PROTOBUF":
        return text.rstrip("\n")
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def _body(file: Path, kind: str | None, references: Sequence[str] | None) -> dict[str, Json]:
    schema_type = kind.upper() if kind is not None else schema_files.type_of(file)
    if schema_type is None:
        expected = ", ".join(schema_files.TYPES.values())
        raise typer.BadParameter(f"{file}: --type says what it is, {expected}")
    body = schema_files.body_of(file, schema_type)
    if references:
        body["references"] = [_reference(one) for one in references]
    return body


def _reference(given: str) -> dict[str, Json]:
    name, equals, target = given.rpartition("=")
    subject, colon, version = target.rpartition(":")
    if not (equals and name and colon and subject and version.isdecimal()):
        raise typer.BadParameter(f"{given}: expected NAME=SUBJECT:VERSION")
    return {"name": name, "subject": subject, "version": int(version)}


def _object(found: Json, registry: Registry) -> dict[str, Json]:
    if not isinstance(found, dict):
        raise ClientError(f"{registry.shown}: no answer of a schema registry")
    return found


def _strings(found: Json) -> list[str]:
    return [str(one) for one in found] if isinstance(found, list) else []
