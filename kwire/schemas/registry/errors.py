"""What a request is refused with: an error code, its HTTP status, one line.

The codes are those of the public REST API of Confluent's Schema Registry.
"""

from __future__ import annotations

from enum import IntEnum


class Code(IntEnum):
    """A status alone, or a status and two digits."""

    BAD_REQUEST = 400
    FORBIDDEN = 403
    NOT_FOUND = 404
    UNSUPPORTED_MEDIA_TYPE = 415
    UNPROCESSABLE = 422
    SUBJECT_NOT_FOUND = 40401
    VERSION_NOT_FOUND = 40402
    SCHEMA_NOT_FOUND = 40403
    SUBJECT_SOFT_DELETED = 40404
    SUBJECT_NOT_SOFT_DELETED = 40405
    VERSION_SOFT_DELETED = 40406
    VERSION_NOT_SOFT_DELETED = 40407
    NO_SUBJECT_CONFIG = 40408
    NO_SUBJECT_MODE = 40409
    INCOMPATIBLE = 40901
    INVALID_SCHEMA = 42201
    INVALID_VERSION = 42202
    INVALID_COMPATIBILITY = 42203
    INVALID_MODE = 42204
    NOT_PERMITTED = 42205
    REFERENCED = 42206
    INVALID_SUBJECT = 42208
    TOO_LARGE = 42209
    INVALID_RULE_SET = 42210
    CONTEXT_NOT_EMPTY = 42211
    NOT_INSTALLED = 501
    STORE_FAILED = 50001
    TIMED_OUT = 50002


# Kafka cannot be written or read at the moment: not a fault of this process, and worth a retry.
_UNAVAILABLE = 503


class RegistryError(Exception):
    """A request that is refused: `status` is HTTP's, `code` the registry's."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def status(self) -> int:
        if self.code in (Code.STORE_FAILED, Code.TIMED_OUT):
            return _UNAVAILABLE
        return int(self.code) if self.code < 1000 else int(self.code) // 100


def subject_not_found(subject: str) -> RegistryError:
    return RegistryError(Code.SUBJECT_NOT_FOUND, f"Subject '{subject}' not found.")


def version_not_found(version: int | str) -> RegistryError:
    return RegistryError(Code.VERSION_NOT_FOUND, f"Version {version} not found.")


def schema_not_found(what: int | str | None = None) -> RegistryError:
    named = "" if what is None else f"{what} "
    return RegistryError(Code.SCHEMA_NOT_FOUND, f"Schema {named}not found")


def invalid_schema(why: str) -> RegistryError:
    return RegistryError(Code.INVALID_SCHEMA, why)
