"""Faults of authorizers put into the code on purpose, to show that `acls.py` finds them."""

from __future__ import annotations

from typing import Any

from tests.sim.mutations import Mutation


def deny_after_allow(replace: Any) -> None:
    """What is allowed is allowed, whatever is denied."""
    from kwire.security.acls import standard_authorizer

    original = standard_authorizer.allowed_operations

    def allowed(bits: int) -> int:
        return original(bits & standard_authorizer.EVERY_OPERATION) or original(bits)

    replace(standard_authorizer, "allowed_operations", allowed)


def prefix_off_by_one(replace: Any) -> None:
    """A prefixed pattern covers the names that go on by the right letters but one."""
    from kwire.security.acls.index import AclIndex

    original = AclIndex._covering

    def covering(self: Any, resource_type: int, name: str) -> Any:
        return original(self, resource_type, name[:-1] if len(name) > 2 else name)

    replace(AclIndex, "_covering", covering)


def stale_decisions_behind_a_change(replace: Any) -> None:
    """What was decided before stays."""
    from kwire.security.acls.standard_authorizer import StandardAuthorizer

    replace(StandardAuthorizer, "_forget", lambda self: None)


def removals_missed(replace: Any) -> None:
    """An ACL that is deleted goes on deciding."""
    from kwire.security.acls.index import AclIndex

    original = AclIndex.apply

    def apply(self: Any, changes: Any) -> bool:
        return original(self, {key: each for key, each in changes.items() if each[1] is not None})

    replace(AclIndex, "apply", apply)


def large_change_acts_piece_by_piece(replace: Any) -> None:
    """A change that is worked in by slices decides by those that are in already."""
    from kwire.security.acls.standard_authorizer import StandardAuthorizer

    def rebuild(self: Any, changes: Any) -> Any:
        for key, change in changes.items():
            self.apply({key: change})
            yield

    replace(StandardAuthorizer, "rebuild", rebuild)


def change_behind_a_large_one_is_dropped(replace: Any) -> None:
    """What is published while a large change is worked in never acts."""
    from kwire.node.acls import PublishedAcls

    original = PublishedAcls.changed

    def changed(self: Any, changes: Any) -> None:
        if self._work is None:
            original(self, changes)

    replace(PublishedAcls, "changed", changed)


def denial_for_everybody_forgotten(replace: Any) -> None:
    """`User:*` is no principal of anybody's."""
    from kwire.security.acls.index import PatternRules

    original = PatternRules.bits

    def bits(self: Any, principals: Any, hosts: Any, address: Any) -> int:
        return original(self, (principals[0], principals[2]), hosts, address)

    replace(PatternRules, "bits", bits)


def only_the_last_rule_of_a_client(replace: Any) -> None:
    """A second ACL for the same principal and host replaces the first."""
    from kwire.security.acls.index import PatternRules

    original = PatternRules.add

    def add(self: Any, rule: Any) -> None:
        original(self, rule)
        if rule.addresses is None:
            kept = self.exact[rule.principal, rule.host]
            kept[:] = [kept[-1]] * len(kept)

    def remove(self: Any, rule: Any) -> None:
        self.exact.pop((rule.principal, rule.host), None)

    replace(PatternRules, "add", add)
    replace(PatternRules, "remove", remove)


def acknowledged_before_commit(replace: Any) -> None:
    """The controller answers once it has appended."""
    from kwire.kraft.controller_runner import ControllerRunner

    def when_committed(self: Any, offset: int, reply: Any, response: Any) -> None:
        reply.complete(response)

    replace(ControllerRunner, "when_committed", when_committed)


MUTATIONS: dict[str, Mutation] = {
    each.__name__: each
    for each in (
        deny_after_allow,
        prefix_off_by_one,
        stale_decisions_behind_a_change,
        removals_missed,
        large_change_acts_piece_by_piece,
        change_behind_a_large_one_is_dropped,
        denial_for_everybody_forgotten,
        only_the_last_rule_of_a_client,
        acknowledged_before_commit,
    )
}
