"""What a replaced key store must have in common with the one before, as Kafka wants it."""

from __future__ import annotations

from kwire.security.tls.contexts import Material
from kwire.security.tls.distinguished_name import alternative_names, subject_of
from kwire.security.tls.entries import KeyEntry
from kwire.security.tls.errors import ReplacementRefused


def check_replacement(
    before: Material, after: Material, *, allow_dn_changes: bool, allow_san_changes: bool
) -> None:
    """ReplacementRefused for another name, or a name that is missing, where that is not allowed,
    and for a trust store where there was none (measured on Apache Kafka 4.4)."""
    if (not allow_dn_changes or not allow_san_changes) and len(before.keys) != len(after.keys):
        raise ReplacementRefused(
            f"Keystore entries do not match, existing store contains {len(before.keys)} "
            f"entries, new store contains {len(after.keys)} entries"
        )
    for old, new in zip(before.keys, after.keys):
        if not allow_dn_changes:
            _check_name(old, new)
        if not allow_san_changes:
            _check_alternative_names(old, new)
    if before.trusted is None and after.trusted is not None:
        raise ReplacementRefused(
            "Cannot add SSL truststore to an existing listener for which no truststore was "
            "configured."
        )


def _check_name(old: KeyEntry, new: KeyEntry) -> None:
    before, after = subject_of(old.chain[0]), subject_of(new.chain[0])
    if before.lower() != after.lower():
        raise ReplacementRefused(
            f"Keystore DistinguishedName does not match:  existing={{alias={old.alias}, "
            f"DN={before}}}, new={{alias={new.alias}, DN={after}}}"
        )


def _check_alternative_names(old: KeyEntry, new: KeyEntry) -> None:
    before, after = alternative_names(old.chain[0]), alternative_names(new.chain[0])
    if not set(before) <= set(after):
        raise ReplacementRefused(
            "Keystore SubjectAltNames do not match:  existing={alias="
            f"{old.alias}, SAN={_listed(before)}}}, new={{alias={new.alias}, SAN={_listed(after)}}}"
        )


def _listed(names: list[str]) -> str:
    return f"[{', '.join(names)}]"
