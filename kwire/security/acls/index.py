"""All ACLs of a cluster, so that few of them are looked at for a decision.

    (type, name) of a literal pattern  -> its rules; `*` is one of them
    (type, name) of a prefixed pattern -> its rules; a look-up for each length that a type has
    rules of a pattern                 -> (principal, host) -> bits
                                       -> principal, size of the range -> network -> bits

Bits: `1 << operation` of what is allowed, `1 << DENY_SHIFT + operation` of what is denied. Which
operation another one implies is decided on these bits, not kept in them. A change costs its own
entries only.

An ACL that cannot be used never opens anything: one that allows counts as an ACL of the resource,
no more; one that denies, or whose permission is not known, denies everybody whom it can mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeVar

from kwire.security.acl import Operation, ResourceType
from kwire.security.acls.binding import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclBinding,
    PatternType,
    PermissionType,
)
from kwire.security.acls.hosts import RANGE_MARK, AddressRange, address_number, parse_range

KeyT = TypeVar("KeyT")

DENY_SHIFT = 32
EVERYBODY = ""
"""The principal and the host of a denial that names none which could be used."""

Changes = Mapping[bytes, tuple[AclBinding | None, AclBinding | None]]
"""Id of an ACL -> (what it was, what it is)."""

_LITERAL, _PREFIXED = int(PatternType.LITERAL), int(PatternType.PREFIXED)
_ALLOW, _DENY = int(PermissionType.ALLOW), int(PermissionType.DENY)
_OPERATIONS = range(Operation.ALL, Operation.TWO_PHASE_COMMIT + 1)
_TYPES = range(ResourceType.TOPIC, ResourceType.USER + 1)


class Rule(NamedTuple):
    """An ACL as it stands in the index; `addresses` instead of a host that is a range."""

    is_prefix: bool
    pattern: tuple[int, str]
    principal: str
    host: str
    addresses: AddressRange | None
    bits: int


def faults(acl: AclBinding) -> list[str]:
    """Why an ACL cannot be used; empty where it can."""
    found = []
    if acl.resource_type not in _TYPES:
        found.append(f"resource type {acl.resource_type}")
    if acl.pattern_type not in (_LITERAL, _PREFIXED):
        found.append(f"pattern type {acl.pattern_type}")
    if acl.operation not in _OPERATIONS:
        found.append(f"operation {acl.operation}")
    if acl.permission_type not in (_ALLOW, _DENY):
        found.append(f"permission type {acl.permission_type}")
    if ":" not in acl.principal:
        found.append(f"principal {acl.principal!r} without a type")
    if RANGE_MARK in acl.host and isinstance(parse_range(acl.host), str):
        found.append(f"host {acl.host!r}")
    return found


def rule_of(acl: AclBinding) -> Rule:
    """What an ACL means. One that cannot be used opens nothing; see the module."""
    kind, name, pattern_type, principal, host, operation, permission = acl
    addresses = None
    usable = ":" in principal and pattern_type in (_LITERAL, _PREFIXED)
    if RANGE_MARK in host:
        parsed = parse_range(host)
        if isinstance(parsed, str):
            usable = False
        else:
            addresses = parsed
    if permission == _ALLOW:
        bits = 1 << operation if usable and operation in _OPERATIONS else 0
    else:
        bits = 1 << DENY_SHIFT + operation if operation in _OPERATIONS else 0
        if ":" not in principal:
            principal = EVERYBODY
        if RANGE_MARK in host and addresses is None:
            host = EVERYBODY
        if pattern_type not in (_LITERAL, _PREFIXED):
            name = ""
    return Rule(pattern_type != _LITERAL, (kind, name), principal, host, addresses, bits)


def fits_host(rule: Rule, address: str) -> bool:
    """Whether a rule is about clients at an address, as ACLs have it."""
    addresses = rule.addresses
    if addresses is None:
        return rule.host in (address, WILDCARD, EVERYBODY)
    number = address_number(address)
    if number is None or number[0] != addresses.bits:
        return False
    return number[1] >> addresses.bits - addresses.length == addresses.network


class PatternRules:
    """The rules of one pattern. `ranges` is made when there is one."""

    __slots__ = ("exact", "ranges")

    def __init__(self) -> None:
        self.exact: dict[tuple[str, str], list[int]] = {}
        self.ranges: dict[str, dict[tuple[int, int], dict[int, list[int]]]] | None = None

    @property
    def is_empty(self) -> bool:
        return not self.exact and not self.ranges

    def add(self, rule: Rule) -> None:
        addresses = rule.addresses
        if addresses is None:
            self.exact.setdefault((rule.principal, rule.host), []).append(rule.bits)
            return
        if self.ranges is None:
            self.ranges = {}
        sizes = self.ranges.setdefault(rule.principal, {})
        networks = sizes.setdefault((addresses.bits, addresses.length), {})
        networks.setdefault(addresses.network, []).append(rule.bits)

    def remove(self, rule: Rule) -> None:
        addresses = rule.addresses
        if addresses is None:
            key = (rule.principal, rule.host)
            _drop(self.exact, key, rule.bits)
            return
        if self.ranges is None:
            raise AssertionError(f"{rule} is not in the index")
        sizes = self.ranges[rule.principal]
        size = (addresses.bits, addresses.length)
        _drop(sizes[size], addresses.network, rule.bits)
        if not sizes[size]:
            del sizes[size]
        if not sizes:
            del self.ranges[rule.principal]

    def bits(
        self, principals: tuple[str, ...], hosts: tuple[str, ...], address: tuple[int, int] | None
    ) -> int:
        """What the rules say of a client."""
        found = 0
        exact = self.exact
        for principal in principals:
            for host in hosts:
                for bits in exact.get((principal, host), ()):
                    found |= bits
            if self.ranges and address is not None:
                for (width, length), networks in self.ranges.get(principal, {}).items():
                    if width == address[0]:
                        for bits in networks.get(address[1] >> width - length, ()):
                            found |= bits
        return found


def _drop(slots: dict[KeyT, list[int]], key: KeyT, bits: int) -> None:
    slots[key].remove(bits)
    if not slots[key]:
        del slots[key]


class AclIndex:
    """The ACLs by id, by pattern and by principal; `apply` is the only thing that changes them."""

    def __init__(self) -> None:
        self.acls: dict[bytes, AclBinding] = {}
        self._literal: dict[tuple[int, str], PatternRules] = {}
        self._prefixed: dict[tuple[int, str], PatternRules] = {}
        self._lengths: dict[int, dict[int, int]] = {}
        self._of_principal: dict[tuple[int, str], dict[bytes, AclBinding]] = {}

    def apply(self, changes: Changes) -> bool:
        """Take over what has changed, as far as it is news; whether anything was."""
        acls = self.acls
        changed = False
        for acl_id, (_, new) in changes.items():
            old = acls.get(acl_id)
            if old == new:
                continue
            changed = True
            if old is not None:
                self._remove(acl_id, old)
            if new is not None:
                acls[acl_id] = new
                self._add(acl_id, new)
        return changed

    def _add(self, acl_id: bytes, acl: AclBinding) -> None:
        rule = rule_of(acl)
        kind, name = rule.pattern
        patterns = self._prefixed if rule.is_prefix else self._literal
        rules = patterns.get(rule.pattern)
        if rules is None:
            rules = patterns[rule.pattern] = PatternRules()
            if rule.is_prefix:
                lengths = self._lengths.setdefault(kind, {})
                lengths[len(name)] = lengths.get(len(name), 0) + 1
        rules.add(rule)
        self._of_principal.setdefault((kind, rule.principal), {})[acl_id] = acl

    def _remove(self, acl_id: bytes, acl: AclBinding) -> None:
        del self.acls[acl_id]
        rule = rule_of(acl)
        kind, name = rule.pattern
        patterns = self._prefixed if rule.is_prefix else self._literal
        rules = patterns[rule.pattern]
        rules.remove(rule)
        if rules.is_empty:
            del patterns[rule.pattern]
            if rule.is_prefix:
                lengths = self._lengths[kind]
                lengths[len(name)] -= 1
                if not lengths[len(name)]:
                    del lengths[len(name)]
        of_principal = self._of_principal[kind, rule.principal]
        del of_principal[acl_id]
        if not of_principal:
            del self._of_principal[kind, rule.principal]

    def dismantle(self, count: int) -> Iterator[None]:
        """Give back the memory of an index out of use, `count` patterns at a time."""
        for table in (self._literal, self._prefixed, self._of_principal):
            while table:
                for _ in range(min(count, len(table))):
                    table.popitem()
                yield

    def bits(self, principal: str, host: str, resource_type: int, name: str) -> int | None:
        """What the ACLs of a resource say of a client, `host` as ACLs have it; None where no ACL
        covers the resource."""
        found = None
        principals = (principal, WILDCARD_PRINCIPAL, EVERYBODY)
        hosts = (host, WILDCARD, EVERYBODY)
        address: tuple[int, int] | None = None
        for rules in self._covering(resource_type, name):
            if rules.ranges and address is None:
                address = address_number(host)
            found = (found or 0) | rules.bits(principals, hosts, address)
        return found

    def _covering(self, resource_type: int, name: str) -> Iterator[PatternRules]:
        rules = self._literal.get((resource_type, name))
        if rules is not None:
            yield rules
        if not name.startswith(WILDCARD):
            # Kafka lets `*` not cover names that begin with it.
            rules = self._literal.get((resource_type, WILDCARD))
            if rules is not None:
                yield rules
        prefixed = self._prefixed
        for length in self._lengths.get(resource_type, ()):
            rules = prefixed.get((resource_type, name[:length]))
            if rules is not None and length <= len(name):
                yield rules

    def of_principal(self, resource_type: int, principal: str) -> Iterator[AclBinding]:
        """The ACLs on resources of a type that name this principal, every one, or nobody."""
        for key in dict.fromkeys((principal, WILDCARD_PRINCIPAL, EVERYBODY)):
            yield from self._of_principal.get((resource_type, key), {}).values()
