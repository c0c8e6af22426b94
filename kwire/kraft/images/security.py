"""ACLs, SCRAM credentials and delegation tokens of the metadata image.

Replays AccessControlEntryRecord, RemoveAccessControlEntryRecord, UserScramCredentialRecord,
RemoveUserScramCredentialRecord, DelegationTokenRecord and RemoveDelegationTokenRecord.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from kwire.kraft.images.errors import ImageError
from kwire.kraft.metadata_version import MetadataVersion
from kwire.protocol import messages as m
from kwire.protocol import uuids
from kwire.protocol.metadata_records import VersionedRecord
from kwire.security.acls.binding import AclBinding


class ScramCredential(NamedTuple):
    """What is kept of a SCRAM password: never the password itself."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return "ScramCredential([hidden])"


class DelegationTokenImage(NamedTuple):
    """A delegation token; timestamps in milliseconds since the epoch. The HMAC is not stored."""

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_ms: int
    max_ms: int
    expiration_ms: int


class SecurityChanges(Protocol):
    """Who is told what a replayed record changed; `old` None is new, `new` None is gone."""

    def acl_changed(
        self, acl_id: bytes, old: AclBinding | None, new: AclBinding | None
    ) -> None: ...

    def scram_changed(
        self, key: tuple[int, str], old: ScramCredential | None, new: ScramCredential | None
    ) -> None: ...

    def token_changed(
        self, token_id: str, old: DelegationTokenImage | None, new: DelegationTokenImage | None
    ) -> None: ...


class SecurityImage:
    """ACLs by id, credentials by (mechanism, user), tokens by token id."""

    __slots__ = ("acls", "delegation_tokens", "scram")

    def __init__(self) -> None:
        self.acls: dict[bytes, AclBinding] = {}
        self.scram: dict[tuple[int, str], ScramCredential] = {}
        self.delegation_tokens: dict[str, DelegationTokenImage] = {}

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, SecurityImage)
            and self.acls == other.acls
            and self.scram == other.scram
            and self.delegation_tokens == other.delegation_tokens
        )

    def replay_acl(self, record: m.AccessControlEntryRecord, delta: SecurityChanges | None) -> None:
        acl = AclBinding(
            resource_type=record.resource_type,
            resource_name=record.resource_name,
            pattern_type=record.pattern_type,
            principal=record.principal,
            host=record.host,
            operation=record.operation,
            permission_type=record.permission_type,
        )
        old = self.acls.get(record.id)
        self.acls[record.id] = acl
        if delta is not None:
            delta.acl_changed(record.id, old, acl)

    def replay_remove_acl(
        self, record: m.RemoveAccessControlEntryRecord, delta: SecurityChanges | None
    ) -> None:
        old = self.acls.pop(record.id, None)
        if old is None:
            raise ImageError(f"removal of unknown ACL {uuids.to_text(record.id)}")
        if delta is not None:
            delta.acl_changed(record.id, old, None)

    def replay_scram(
        self, record: m.UserScramCredentialRecord, delta: SecurityChanges | None
    ) -> None:
        key = (record.mechanism, record.name)
        new = ScramCredential(
            bytes(record.salt),
            bytes(record.stored_key),
            bytes(record.server_key),
            record.iterations,
        )
        old = self.scram.get(key)
        self.scram[key] = new
        if delta is not None:
            delta.scram_changed(key, old, new)

    def replay_remove_scram(
        self, record: m.RemoveUserScramCredentialRecord, delta: SecurityChanges | None
    ) -> None:
        key = (record.mechanism, record.name)
        old = self.scram.pop(key, None)
        if old is None:
            raise ImageError(f"removal of unknown SCRAM credential of {record.name}")
        if delta is not None:
            delta.scram_changed(key, old, None)

    def replay_token(self, record: m.DelegationTokenRecord, delta: SecurityChanges | None) -> None:
        token = DelegationTokenImage(
            token_id=record.token_id,
            owner=record.owner,
            requester=record.requester,
            renewers=tuple(record.renewers),
            issue_ms=record.issue_timestamp,
            max_ms=record.max_timestamp,
            expiration_ms=record.expiration_timestamp,
        )
        old = self.delegation_tokens.get(token.token_id)
        self.delegation_tokens[token.token_id] = token
        if delta is not None:
            delta.token_changed(token.token_id, old, token)

    def replay_remove_token(
        self, record: m.RemoveDelegationTokenRecord, delta: SecurityChanges | None
    ) -> None:
        old = self.delegation_tokens.pop(record.token_id, None)
        if old is None:
            raise ImageError(f"removal of unknown delegation token {record.token_id}")
        if delta is not None:
            delta.token_changed(record.token_id, old, None)

    def acls_to_records(self) -> Iterator[VersionedRecord]:
        for acl_id in sorted(self.acls):
            yield acl_record(acl_id, self.acls[acl_id]), 0

    def scram_to_records(self, gates: MetadataVersion) -> Iterator[VersionedRecord]:
        if not gates.scram:
            return
        for mechanism, user in sorted(self.scram):
            credential = self.scram[mechanism, user]
            yield scram_record(user, mechanism, credential), 0

    def tokens_to_records(self, gates: MetadataVersion) -> Iterator[VersionedRecord]:
        if not gates.delegation_token:
            return
        for token_id in sorted(self.delegation_tokens):
            yield token_record(self.delegation_tokens[token_id]), 0


def acl_record(acl_id: bytes, acl: AclBinding) -> m.AccessControlEntryRecord:
    """The AccessControlEntryRecord of an ACL."""
    return m.AccessControlEntryRecord(id=acl_id, **acl._asdict())


def scram_record(
    user: str, mechanism: int, credential: ScramCredential
) -> m.UserScramCredentialRecord:
    """The UserScramCredentialRecord of a credential."""
    return m.UserScramCredentialRecord(
        name=user,
        mechanism=mechanism,
        salt=credential.salt,
        stored_key=credential.stored_key,
        server_key=credential.server_key,
        iterations=credential.iterations,
    )


def token_record(token: DelegationTokenImage) -> m.DelegationTokenRecord:
    """The DelegationTokenRecord of a token."""
    return m.DelegationTokenRecord(
        owner=token.owner,
        requester=token.requester,
        renewers=list(token.renewers),
        issue_timestamp=token.issue_ms,
        max_timestamp=token.max_ms,
        expiration_timestamp=token.expiration_ms,
        token_id=token.token_id,
    )
