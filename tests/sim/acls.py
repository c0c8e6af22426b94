"""ACLs that change while nodes die: no decision by rules that were never committed together.

A cluster of three with StandardAuthorizer; one administrator makes and deletes ACLs, several in a
request, each until it is acknowledged, while nodes are killed, lose power or are cut off. All
connections are a super user's: what is looked at are the authorizers of the nodes, which are asked
the same questions at every metadata change, at every slice of a large one and again and again in
between, so that their answers are kept ones.

    promise                                           checked when
    all answers are those of one committed state      an authorizer is asked
    ... of the newest that its node has published     it is not working many changes in
    the same metadata is the same everywhere          a node publishes
    what was acknowledged stays                       a node has published it; at the end
"""

from __future__ import annotations

import asyncio
from typing import Any

from kwire.client.acl_requests import create_request
from kwire.node import acls as node_acls
from kwire.node.node import Node
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.security.acl import Operation, ResourceType
from kwire.security.acls import standard_authorizer
from kwire.security.acls.binding import AclBinding, matches_filter
from kwire.testing.simulation import Simulation
from tests.sim.client import Retry, RoutingClient
from tests.sim.cluster import IDS, Cluster
from tests.sim.driving import end_all, run_until
from tests.sim.model import Violation
from tests.support.acls import STANDARD_AUTHORIZER, Client, model_allows

SETTINGS = {
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "super.users": "User:ANONYMOUS",
    "metadata.log.max.record.bytes.between.snapshots": "2000",
}
SLICE = 3
"""Changes of more ACLs are worked in slice by slice here."""
CHANGES = 40
START_LIMIT_S, END_LIMIT_S = 60.0, 120.0
TOPIC = ResourceType.TOPIC
NAMES = ("*", "t", "ta", "tab", "u")
PRINCIPALS = ("User:a", "User:b", "User:*")
HOSTS = ("*", "*", "10.0.0.1", "10.0.0.0/8")
OPERATIONS = (Operation.READ, Operation.WRITE, Operation.DESCRIBE, Operation.ALL)
QUESTIONS = [
    (Client(principal, host), operation, name)
    for principal in PRINCIPALS[:2]
    for host in ("/10.0.0.1", "/192.168.0.1")
    for operation in OPERATIONS[:3]
    for name in ("t", "ta", "tab", "uu")
]
Rules = frozenset[AclBinding]
Answers = tuple[bool, ...]


class Watched:
    """One life of a node: `seen` are the states it has published since its authorizer was last up
    to date, the newest last; `has_all` is the change, counted, up to which it had published all
    that was acknowledged, when it was looked at last."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.seen: list[Rules] = [frozenset()]
        self.has_all = -1


class AclHistory:
    """One seed's history; `run` raises Violation for a broken promise."""

    def __init__(self, seed: int) -> None:
        self.simulation = Simulation(seed)
        self.cluster = Cluster(self.simulation, SETTINGS, self._attach)
        self.below = self.simulation.random.below
        self.watched: dict[int, Watched] = {}
        self.states: dict[int, Rules] = {}
        self.expected: set[AclBinding] = set()
        self.late: list[Any] = []
        """Requests without an answer, asked again since: one may be carried out long afterwards."""
        self.is_changing = False
        self.violation: Violation | None = None
        self.asked = 0
        self.changes = 0
        self._answers: dict[Rules, Answers] = {}

    # -- what is checked

    def _attach(self, node: Node) -> None:
        watched = self.watched[node.broker_id] = Watched(node)
        node.publishing.add(lambda delta, image: self._published(watched))
        work_on = node.acls._work_on

        def worked_on() -> None:
            work_on()
            self._ask(watched)

        node.acls._work_on = worked_on  # type: ignore[method-assign]

    def _published(self, watched: Watched) -> None:
        image = watched.node.image
        rules = frozenset(image.acls.values())
        known = self.states.setdefault(image.offset, rules)
        if known != rules:
            self._broken(f"n{watched.node.broker_id} has other ACLs at offset {image.offset}")
        watched.seen.append(rules)
        self._ask(watched)

    def _ask(self, watched: Watched) -> None:
        node = watched.node
        authorizer = node.acls.authorizer
        assert authorizer is not None
        if not authorizer.is_loaded:
            return
        if not node.acls.is_behind:
            del watched.seen[:-1]
        answers = tuple(
            authorizer.authorize(client, operation, TOPIC, name)
            for client, operation, name in QUESTIONS
        )
        self.asked += 1
        if answers not in [self._answers_of(rules) for rules in watched.seen]:
            self._broken(f"n{node.broker_id} decides by no committed state at {node.image.offset}")
        self._check_kept(watched)

    def _check_kept(self, watched: Watched) -> None:
        """What a node has published of the acknowledged changes it does not lose."""
        if self.is_changing:
            return
        if self._has_all(watched.seen[-1]):
            watched.has_all = self.changes
        elif watched.has_all == self.changes:
            self._broken(f"n{watched.node.broker_id} has lost an acknowledged change")

    def _has_all(self, rules: Rules) -> bool:
        """Whether that is what was acknowledged, but for what may have been carried out late."""
        differing = rules ^ self.expected
        return all(any(_is_about(request, acl) for request in self.late) for acl in differing)

    def _answers_of(self, rules: Rules) -> Answers:
        if rules not in self._answers:
            self._answers[rules] = tuple(
                model_allows(rules, client, operation, TOPIC, name)
                for client, operation, name in QUESTIONS
            )
        return self._answers[rules]

    def _broken(self, what: str) -> None:
        if self.violation is None:
            self.violation = Violation(what)
        raise self.violation

    # -- who acts

    def _drawn(self) -> AclBinding:
        pick = self.below
        return AclBinding(
            TOPIC,
            NAMES[pick(len(NAMES))],
            3 + pick(2),
            PRINCIPALS[pick(len(PRINCIPALS))],
            HOSTS[pick(len(HOSTS))],
            OPERATIONS[pick(len(OPERATIONS))],
            2 if pick(4) == 0 else 3,
        )

    async def _administer(self) -> None:
        """Change after change, each until it is acknowledged."""
        admin = RoutingClient(self.simulation.host("clients"), "admin")
        for _ in range(CHANGES):
            self.is_changing = True
            if self.below(3) and len(self.expected) < 40:
                made = [self._drawn() for _ in range(1 + self.below(6))]
                await self._until_acknowledged(admin, create_request(made))
                self.expected.update(made)
            else:
                deletion = m.DeleteAclsRequest(filters=[self._filter()])
                await self._until_acknowledged(admin, deletion)
                self.expected -= {acl for acl in self.expected if _is_about(deletion, acl)}
            self.changes += 1
            self.is_changing = False
            await asyncio.sleep(self.below(1000) / 1000)

    def _filter(self) -> Any:
        by_name = self.below(2)
        return m.DeleteAclsRequest.DeleteAclsFilter(
            resource_type_filter=1,
            resource_name_filter=NAMES[self.below(len(NAMES))] if by_name else None,
            pattern_type_filter=1,
            principal_filter=None if by_name else PRINCIPALS[self.below(len(PRINCIPALS))],
            host_filter=None,
            operation=1,
            permission_type=1,
        )

    async def _until_acknowledged(self, admin: RoutingClient, request: Any) -> None:
        while True:
            try:
                response = await admin.ask(admin.any_broker(), request, 3)
            except Retry:
                self.late.append(request)
                await admin.pause()
                continue
            results = getattr(response, "results", None) or response.filter_results
            if all(result.error_code == ErrorCode.NONE for result in results):
                return
            await admin.pause()

    async def _break(self) -> None:
        """One node at a time dies, or is cut off, for a while."""
        network = self.simulation.network
        while self.changes < CHANGES:
            await asyncio.sleep(self.below(2000) / 1000)
            node_id = IDS[self.below(len(IDS))]
            others = [f"n{each}" for each in IDS if each != node_id]
            kind = self.below(3)
            if not self.cluster.is_up(node_id):
                continue
            if kind == 0:
                for other in others:
                    network.block(f"n{node_id}", other)
                    network.block(other, f"n{node_id}")
            else:
                self.cluster.kill(node_id, power_loss=kind == 1)
            await asyncio.sleep(self.below(4000) / 1000)
            if kind == 0:
                for other in others:
                    network.heal(f"n{node_id}", other)
                    network.heal(other, f"n{node_id}")
            elif not self.cluster.is_up(node_id):
                self.cluster.start(node_id)

    async def _look(self) -> None:
        """Asks everybody who runs, again and again."""
        while True:
            await asyncio.sleep(self.below(100) / 1000)
            for node_id, watched in self.watched.items():
                if self.cluster.is_up(node_id) and self.cluster.nodes[node_id] is watched.node:
                    self._ask(watched)

    # -- the run

    def run(self) -> None:
        """Play it to its end; raises Violation."""
        sizes = node_acls.AT_ONCE, standard_authorizer.SLICE
        node_acls.AT_ONCE = standard_authorizer.SLICE = SLICE
        try:
            self._run()
        finally:
            node_acls.AT_ONCE, standard_authorizer.SLICE = sizes
            end_all(self.cluster)

    def _run(self) -> None:
        cluster = self.cluster
        cluster.format()
        for node_id in IDS:
            cluster.start(node_id)
        self._until(cluster.is_in_sync, START_LIMIT_S, "the cluster does not start")
        world = self.simulation.host("world").loop
        world.create_task(self._look())
        tasks = [world.create_task(self._break())]
        tasks.append(self.simulation.host("clients").loop.create_task(self._administer()))
        self._until(lambda: all(task.done() for task in tasks), END_LIMIT_S, "it does not end")
        for task in tasks:
            task.result()
        self._until(cluster.is_in_sync, END_LIMIT_S, "the nodes do not come back")
        self._until(self._all_have_all, END_LIMIT_S, "an acknowledged change is not published")

    def _all_have_all(self) -> bool:
        return all(each.has_all == self.changes for each in self.watched.values())

    def _until(self, condition: Any, limit_s: float, otherwise: str) -> None:
        run_until(
            self.simulation,
            condition,
            limit_s,
            lambda: f"{otherwise}\n{self.cluster.describe()}",
            lambda: self.violation,
        )


def _is_about(request: Any, acl: AclBinding) -> bool:
    """Whether a request makes or deletes this ACL."""
    if isinstance(request, m.DeleteAclsRequest):
        return any(matches_filter(wanted, acl) for wanted in request.filters)
    return any(
        (made.resource_name, made.resource_pattern_type, made.principal, made.host)
        == (acl.resource_name, acl.pattern_type, acl.principal, acl.host)
        for made in request.creations
    )
