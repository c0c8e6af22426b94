"""Kafka's StandardAuthorizer: ACLs of the metadata log decide.

- A super user may do everything.
- A denial that fits outweighs every permission. READ, WRITE, DELETE and ALTER allow DESCRIBE too,
  ALTER_CONFIGS allows DESCRIBE_CONFIGS; denials imply nothing.
- A resource that no ACL covers is for super users only, or, with
  `allow.everyone.if.no.acl.found`, for everybody.
- Until the committed metadata is known nobody but super users can be answered.

It decides by published metadata only, which changes at once between two requests. Decisions are
kept until the next change of ACLs: the operations that a client may do on a resource, as bits.
Source: KIP-801, KIP-290, KIP-679; StandardAuthorizer of Apache Kafka 4.4.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from itertools import islice

from kwire.protocol import uuids
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.acl import Operation
from kwire.security.acls.binding import WILDCARD, PermissionType
from kwire.security.acls.hosts import address_text
from kwire.security.acls.index import DENY_SHIFT, AclIndex, Changes, faults, fits_host, rule_of
from kwire.security.authorizer import Requester

logger = logging.getLogger(__name__)

DECISIONS_KEPT = 16_384
KEY_LENGTH_MAX = 1024
"""Characters of a principal and a name: of longer ones, which anybody may ask about, decisions are
not kept."""
SLICE = 500
"""How many ACLs are put into the index in one go while requests wait."""
UNUSABLE_NAMED = 20
"""How many ACLs of one change that cannot be used are named one by one."""
ANY_NAME = "hardcode"
"""The resource that Kafka asks for first where one of a type is enough."""

ALL = 1 << Operation.ALL
EVERY_OPERATION = (1 << DENY_SHIFT) - 1
DESCRIBE = 1 << Operation.DESCRIBE
IMPLY_DESCRIBE = sum(
    1 << each for each in (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER)
)
DESCRIBE_CONFIGS = 1 << Operation.DESCRIBE_CONFIGS
IMPLY_DESCRIBE_CONFIGS = 1 << Operation.ALTER_CONFIGS


def allowed_operations(bits: int) -> int:
    """Of what ACLs say (`AclIndex.bits`), the operations that are allowed, as bits."""
    denied = bits >> DENY_SHIFT
    if denied & ALL:
        return 0
    allowed = bits & EVERY_OPERATION
    if allowed & ALL:
        allowed = EVERY_OPERATION
    if allowed & IMPLY_DESCRIBE:
        allowed |= DESCRIBE
    if allowed & IMPLY_DESCRIBE_CONFIGS:
        allowed |= DESCRIBE_CONFIGS
    return allowed & ~denied


class StandardAuthorizer:
    """See the module. `super_users` are principals like `User:admin`."""

    def __init__(self, super_users: Iterable[str] = (), allow_everyone: bool = False) -> None:
        self.super_users = frozenset(super_users)
        self.allow_everyone = allow_everyone
        self.is_loaded = False
        self._index = AclIndex()
        self._decisions: dict[tuple[str, str, int, str], int] = {}
        self._decisions_of_types: dict[tuple[str, str, int, int], bool] = {}

    def loaded(self) -> None:
        """What was applied so far is the committed metadata: from now on everybody is answered."""
        self.is_loaded = True

    def apply(self, changes: Changes) -> None:
        """Decide by changed ACLs from now on; what is known already changes nothing."""
        if self._index.apply(changes):
            self._forget()
            _name_unusable(changes)

    def news(self, changes: Changes) -> Changes:
        """Those changes that are not known already."""
        acls = self._index.acls
        return {key: change for key, change in changes.items() if acls.get(key) != change[1]}

    def rebuild(self, changes: Changes) -> Iterator[None]:
        """What `apply` does, in slices of `SLICE` ACLs: the old ones decide until all are in."""
        acls = dict(self._index.acls)
        for acl_id, (_, new) in changes.items():
            if new is None:
                acls.pop(acl_id, None)
            else:
                acls[acl_id] = new
        yield
        index = AclIndex()
        left = iter(acls.items())
        while batch := dict(islice(left, SLICE)):
            index.apply({acl_id: (None, acl) for acl_id, acl in batch.items()})
            _name_unusable({key: changes[key] for key in batch if key in changes})
            yield
        old, self._index = self._index, index
        self._forget()
        yield from old.dismantle(SLICE)

    def _forget(self) -> None:
        self._decisions = {}
        self._decisions_of_types = {}

    def authorize(
        self, requester: Requester, operation: int, resource_type: int, resource_name: str, /
    ) -> bool:
        """Whether the requester may do the operation; raises KafkaError before ACLs are known."""
        key = (requester.principal, requester.client_host, resource_type, resource_name)
        allowed = self._decisions.get(key)
        if allowed is None:
            allowed = self._decide(key)
        return allowed >> operation & 1 == 1

    def _decide(self, key: tuple[str, str, int, str]) -> int:
        principal, client_host, resource_type, name = key
        if principal in self.super_users:
            allowed = EVERY_OPERATION
        elif not self.is_loaded:
            raise not_ready()
        else:
            bits = self._index.bits(principal, address_text(client_host), resource_type, name)
            if bits is not None:
                allowed = allowed_operations(bits)
            else:
                allowed = EVERY_OPERATION if self.allow_everyone else 0
        if len(principal) + len(name) > KEY_LENGTH_MAX:
            return allowed
        if len(self._decisions) >= DECISIONS_KEPT:
            self._decisions = {}
        self._decisions[key] = allowed
        return allowed

    def authorize_by_resource_type(
        self, requester: Requester, operation: int, resource_type: int, /
    ) -> bool:
        """Whether there can be a resource of a type on which the requester may do the operation.

        The operation has to be named, or ALL: what implies it does not count (KIP-679).
        """
        if self.authorize(requester, operation, resource_type, ANY_NAME):
            return True
        key = (requester.principal, requester.client_host, operation, resource_type)
        allowed = self._decisions_of_types.get(key)
        if allowed is None:
            allowed = self._decide_by_type(*key)
            if len(self._decisions_of_types) >= DECISIONS_KEPT:
                self._decisions_of_types = {}
            self._decisions_of_types[key] = allowed
        return allowed

    def _decide_by_type(
        self, principal: str, client_host: str, operation: int, resource_type: int
    ) -> bool:
        """No denial outweighs a permission: by the same literal name, or a prefix of its name."""
        allowed: list[tuple[bool, str]] = []
        denied: set[tuple[bool, str]] = set()
        address = address_text(client_host)
        wanted = ALL | 1 << operation
        for acl in self._index.of_principal(resource_type, principal):
            rule = rule_of(acl)
            if fits_host(rule, address):
                if rule.bits >> DENY_SHIFT & wanted:
                    denied.add((rule.is_prefix, rule.pattern[1]))
                elif rule.bits & wanted:
                    allowed.append((rule.is_prefix, rule.pattern[1]))
        if (False, WILDCARD) in denied or (True, "") in denied:
            return False
        if (False, WILDCARD) in allowed:
            return True
        longest = max((len(name) for is_prefix, name in denied if is_prefix), default=-1)
        return any(not _is_denied(each, denied, longest) for each in allowed)


def _is_denied(pattern: tuple[bool, str], denied: set[tuple[bool, str]], longest: int) -> bool:
    """Whether a denied pattern covers all that an allowed one does."""
    is_prefix, name = pattern
    if not is_prefix and pattern in denied:
        return True
    lengths = range(min(longest, len(name)) + 1)
    return any((True, name[:length]) in denied for length in lengths)


def not_ready() -> KafkaError:
    """What is said before the ACLs are known."""
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "The authorizer has not been loaded yet.")


def _name_unusable(changes: Changes) -> None:
    unusable = [(key, new) for key, (_, new) in changes.items() if new and faults(new)]
    for acl_id, acl in unusable[:UNUSABLE_NAMED]:
        effect = "allows nothing" if acl.permission_type == PermissionType.ALLOW else "denies"
        logger.warning(
            "ACL %s of the metadata cannot be used: %s; it %s",
            uuids.to_text(acl_id),
            ", ".join(faults(acl)),
            effect,
        )
    if len(unusable) > UNUSABLE_NAMED:
        logger.warning("%d more ACLs cannot be used", len(unusable) - UNUSABLE_NAMED)
