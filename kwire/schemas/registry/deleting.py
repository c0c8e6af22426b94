"""Versions, subjects and contexts go: hidden first, and for good only after that.

What others refer to stays. The id of a version that is gone for good is never given again: see
`records.Writer`.
"""

from __future__ import annotations

from kwire.schemas.registry import records
from kwire.schemas.registry.errors import (
    Code,
    RegistryError,
    subject_not_found,
    version_not_found,
)
from kwire.schemas.registry.machine import Decision, Registry, check_writable
from kwire.schemas.registry.names import Name
from kwire.schemas.registry.records import Written
from kwire.schemas.registry.version import LATEST, Version


def delete_version(registry: Registry, subject: str, number: int, *, permanent: bool) -> Decision:
    """The answer is the version. RegistryError 40401, 40402, 40406, 40407, 42205, 42206."""
    state = registry.state
    version = state.latest(subject) if number == LATEST else state.version(subject, number)
    if version is None:
        raise version_not_found(number) if state.versions(subject) else subject_not_found(subject)
    if version.is_deleted and not permanent:
        raise RegistryError(
            Code.VERSION_SOFT_DELETED,
            f"Subject '{subject}' Version {version.version} was soft deleted. Set permanent=true "
            "to delete permanently",
        )
    check_writable(registry, subject)
    _check_unreferenced(registry, version, permanent)
    if not permanent:
        return Decision(
            [records.version_record(version._replace(is_deleted=True))], version.version
        )
    if not version.is_deleted:
        raise RegistryError(
            Code.VERSION_NOT_SOFT_DELETED,
            f"Subject '{subject}' Version {version.version} was not deleted first before being "
            "permanently deleted",
        )
    gone: list[Written] = [(records.schema_key(*version.key), None)]
    if len(state.versions(subject)) == 1:
        gone += _settings(registry, subject)
    return Decision(gone, version.version)


def delete_subject(registry: Registry, subject: str, *, permanent: bool) -> Decision:
    """The answer is the list of the versions. RegistryError 40401, 40404, 40405, 42205, 42206."""
    state = registry.state
    versions = state.versions(subject)
    if not versions:
        raise subject_not_found(subject)
    live = state.live(subject)
    if not permanent and not live:
        raise RegistryError(
            Code.SUBJECT_SOFT_DELETED,
            f"Subject '{subject}' was soft deleted. Set permanent=true to delete permanently",
        )
    check_writable(registry, subject)
    chosen = versions if permanent else live
    for version in chosen:
        _check_unreferenced(registry, version, permanent, within=subject)
    numbers = [version.version for version in chosen]
    if not permanent:
        key = records.subject_key(records.DELETE_SUBJECT, subject)
        value = records.of_subject(subject, {"version": numbers[-1]})
        return Decision([(key, value)], list(numbers))
    if live:
        raise RegistryError(
            Code.SUBJECT_NOT_SOFT_DELETED,
            f"Subject '{subject}' was not deleted first before being permanently deleted",
        )
    gone: list[Written] = [(records.schema_key(*one.key), None) for one in reversed(chosen)]
    return Decision([*gone, *_settings(registry, subject)], list(numbers))


def delete_context(registry: Registry, context: str) -> Decision:
    """A context without subjects is forgotten; RegistryError 42211."""
    prefix = Name(context, "").qualified_context
    if registry.state.matching(prefix):
        raise RegistryError(Code.CONTEXT_NOT_EMPTY, f"The context {context} has subjects")
    if not prefix or not registry.state.has_context(context):
        return Decision([], None)
    return Decision([records.context_record(context, is_there=False)], None)


def _settings(registry: Registry, subject: str) -> list[Written]:
    """What is set for a subject goes with its last version."""
    found: list[Written] = []
    if registry.state.mode(subject) is not None:
        found.append((records.subject_key(records.MODE, subject), None))
    if registry.state.config(subject) is not None:
        found.append((records.subject_key(records.CONFIG, subject), None))
    return found


def _check_unreferenced(
    registry: Registry, version: Version, permanent: bool, *, within: str | None = None
) -> None:
    for other in registry.state.referrers(*version.key):
        if other.subject != within and (permanent or not other.is_deleted):
            raise RegistryError(
                Code.REFERENCED,
                f"Version {version.version} of subject {version.subject} is referenced by version "
                f"{other.version} of {other.subject}",
            )
