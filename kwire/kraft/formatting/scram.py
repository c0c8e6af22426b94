"""`--add-scram` of formatting: `MECHANISM=[name=...,password=...]` to a credential (KIP-900).

Either `password`, salted with `salt` (base64, by default random) and `iterations` (4096), or
`saltedpassword` with the `salt` it was salted with. Imported only when it is used.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac

from kwire.clock import Random
from kwire.kraft.formatting.errors import FormatError
from kwire.protocol import messages as m

MECHANISMS = {"SCRAM-SHA-256": (1, "sha256"), "SCRAM-SHA-512": (2, "sha512")}
ITERATIONS_MIN, ITERATIONS_MAX = 4096, 16384
SALT_LENGTH = 26
_SALT_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"
_FIELDS = ("name", "password", "salt", "iterations", "saltedpassword")


def scram_records(arguments: list[str], random: Random) -> list[m.UserScramCredentialRecord]:
    """A UserScramCredentialRecord for each argument. Raises FormatError."""
    return [_record(argument, random) for argument in arguments]


def _record(argument: str, random: Random) -> m.UserScramCredentialRecord:
    mechanism, fields = _parse(argument)
    number, algorithm = MECHANISMS[mechanism]
    if not fields.get("name"):
        raise FormatError("You must supply 'name' to add-scram")
    label = mechanism.replace("-", "_")
    iterations = _iterations(fields.get("iterations"), label)
    salted_text = fields.get("saltedpassword")
    password = fields.get("password")
    salt_text = fields.get("salt")
    if salted_text is None and password is None:
        raise FormatError("You must supply one of 'password' or 'saltedpassword' to add-scram")
    if salted_text is not None and password is not None:
        raise FormatError("You must only supply one of 'password' or 'saltedpassword' to add-scram")
    if salted_text is not None:
        if salt_text is None:
            raise FormatError("You must supply 'salt' with 'saltedpassword' to add-scram")
        salt, salted = _base64("salt", salt_text), _base64("saltedpassword", salted_text)
    else:
        assert password is not None
        salt = _random_salt(random) if salt_text is None else _base64("salt", salt_text)
        salted = hashlib.pbkdf2_hmac(algorithm, password.encode(), salt, iterations)
    client_key = hmac.new(salted, b"Client Key", algorithm).digest()
    return m.UserScramCredentialRecord(
        name=fields["name"],
        mechanism=number,
        salt=salt,
        stored_key=hashlib.new(algorithm, client_key).digest(),
        server_key=hmac.new(salted, b"Server Key", algorithm).digest(),
        iterations=iterations,
    )


def _parse(argument: str) -> tuple[str, dict[str, str]]:
    mechanism, equals, rest = argument.partition("=")
    rest = rest.strip()
    if not equals or not rest.startswith("[") or not rest.endswith("]"):
        raise FormatError("Failed to parse add-scram: it must be MECHANISM=[name=...,...]")
    if mechanism.strip() not in MECHANISMS:
        raise FormatError(f"The add-scram mechanism {mechanism.strip()} is not supported.")
    fields: dict[str, str] = {}
    for part in rest[1:-1].split(","):
        key, equals, value = part.partition("=")
        key, value = key.strip(), value.strip()
        if not equals or key not in _FIELDS:
            raise FormatError(f"Unknown component in add-scram: {key or part!r}")
        if len(value) >= 2 and value[0] == value[-1] == '"':
            value = value[1:-1]
        fields[key] = value
    return mechanism.strip(), fields


def _iterations(text: str | None, label: str) -> int:
    if text is None:
        return ITERATIONS_MIN
    if not text.isdecimal() or len(text) > 9:
        raise FormatError(f"The 'iterations' value {text} is no number")
    iterations = int(text)
    if iterations < ITERATIONS_MIN:
        raise FormatError(
            f"The 'iterations' value must be >= {ITERATIONS_MIN} for add-scram using {label}"
        )
    if iterations > ITERATIONS_MAX:
        raise FormatError(
            f"The 'iterations' value must be <= {ITERATIONS_MAX} for add-scram using {label}"
        )
    return iterations


def _base64(name: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise FormatError(f"Failed to decode given {name}: {text}") from None


def _random_salt(random: Random) -> bytes:
    return "".join(_SALT_ALPHABET[random.below(36)] for _ in range(SALT_LENGTH)).encode()
