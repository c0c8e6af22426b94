"""Files of schemas, as the commands take them."""

from __future__ import annotations

from pathlib import Path

from kwire.cli.output import Json
from kwire.client.errors import ClientError

AVRO = "AVRO"
TYPES = {".avsc": AVRO, ".json": "JSON", ".proto": "PROTOBUF"}


def type_of(file: Path) -> str | None:
    """What its name says that it is."""
    return TYPES.get(file.suffix.lower())


def body_of(file: Path, schema_type: str) -> dict[str, Json]:
    """What a registry is sent of it. ClientError where it cannot be read."""
    return {"schema": text_of(file), "schemaType": schema_type}


def text_of(file: Path) -> str:
    """ClientError where it cannot be read."""
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ClientError(f"{file} is no text in UTF-8") from None
    except OSError as error:
        raise ClientError(f"{file}: {error.strerror}") from None
