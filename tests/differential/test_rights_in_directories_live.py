"""A data directory with rights and quotas, from Apache Kafka to kwire and back (needs a JVM).

Every user is told the same by whoever serves it, also after the other one has granted, revoked and
set quotas.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kwire.protocol import messages as m
from kwire.testing.cluster import Broker, free_adjacent_ports, free_ports
from tests.support.kafka import running_kafka
from tests.support.rights import data_requests
from tests.support.rights.data_requests import Ask
from tests.support.rights.playing import ask_all
from tests.support.rights.users import ADMIN, properties
from tests.support.rights.world import World, login, prepare, until

ASKED = (
    "Metadata", "DescribeTopicPartitions", "ListOffsets", "OffsetFetch", "DescribeTransactions",
    "DescribeProducers", "DescribeGroups", "DescribeCluster", "FindCoordinator",
)  # fmt: skip
READER = "topic-read"


class Place:
    """The directory, its node's ports and settings."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.port = free_adjacent_ports()
        self.bootstrap = f"127.0.0.1:{self.port}"
        self.settings = properties(self.port, self.port + 1, free_ports(1)[0])

    @contextmanager
    def kafka(self) -> Iterator[str]:
        with running_kafka(self.root, self.settings, port=self.port):
            yield self.bootstrap

    @contextmanager
    def kwire(self) -> Iterator[str]:
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{self.port + 1}",
            **self.settings,
        }
        data = self.root / "node-1" / "data"
        with Broker(data_dir=data, properties=settings, pass_listen=False) as broker:
            yield self.bootstrap
            assert broker.stop() == 0


def everything() -> Iterator[Ask]:
    """All entries and quotas, as only an administrator sees them."""
    wanted = {
        "resource_type_filter": 1, "resource_name_filter": None, "pattern_type_filter": 1,
        "principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1,
    }  # fmt: skip
    entries: Any = m.DescribeAclsRequest
    yield Ask("DescribeAcls of all", (3,), lambda v: entries(**wanted))
    yield Ask("DescribeClientQuotas", (1,), lambda v: m.DescribeClientQuotasRequest())


def told(bootstrap: str, world: World) -> dict[str, Any]:
    """What all users are told, once groups and transactions have loaded."""
    with login(bootstrap, ADMIN) as admin:
        groups = m.DescribeGroupsRequest(groups=["ok-simple", "secret-simple"])
        until(
            lambda: admin.call(groups, 5),
            lambda answer: not any(group.error_code for group in answer.groups),
        )
        transactions = m.DescribeTransactionsRequest(transactional_ids=["ok-txn", "secret-txn"])
        until(
            lambda: admin.call(transactions, 0),
            lambda answer: not any(x.error_code for x in answer.transaction_states),
        )
    asks = [ask for ask in data_requests.asks(world) if ask.label.startswith(ASKED)]
    return ask_all(bootstrap, world, [*asks, *everything()], kafka=False)


def change(bootstrap: str, name: str, rate: float) -> None:
    """Take a right from a user, give it another one, and set quotas."""
    with login(bootstrap, ADMIN) as admin:
        delete, create = m.DeleteAclsRequest, m.CreateAclsRequest
        gone = delete.DeleteAclsFilter(
            resource_type_filter=2,
            resource_name_filter=None,
            pattern_type_filter=1,
            principal_filter=f"User:{READER}",
            host_filter=None,
            operation=1,
            permission_type=1,
        )
        removed = admin.call(delete(filters=[gone]), 3).filter_results[0].matching_acls
        assert len(removed) == 1
        given = create.AclCreation(
            resource_type=2,
            resource_name=name,
            resource_pattern_type=3,
            principal=f"User:{READER}",
            host="*",
            operation=3,
            permission_type=3,
        )
        assert admin.call(create(creations=[given]), 3).results[0].error_code == 0
        alter = m.AlterClientQuotasRequest
        entries = [
            alter.EntryData(
                entity=[alter.EntityData(entity_type=kind, entity_name=who)],
                ops=[alter.OpData(key=key, value=rate)],
            )
            for kind, who, key in (
                ("user", None, "producer_byte_rate"),
                ("client-id", f"client-{name}", "request_percentage"),
                ("ip", "10.0.0.9", "connection_creation_rate"),
            )
        ]
        answer = admin.call(alter(entries=entries), 1)
        assert not any(entry.error_code for entry in answer.entries)
    with login(bootstrap, READER) as client:
        until(
            lambda: client.metadata([name], 9),
            lambda answer: answer.topics[0].error_code == 0,
        )


def test_rights_and_quotas_are_the_same_whoever_serves_them(tmp_path: Path) -> None:
    place = Place(tmp_path)
    with place.kafka() as bootstrap:
        world = prepare(bootstrap, kafka=True)
        change(bootstrap, "secret", 100.0)
        by_kafka = told(bootstrap, world)
    with place.kwire() as bootstrap:
        by_kwire = told(bootstrap, world)
        assert by_kwire == by_kafka
        change(bootstrap, "ok", 200.0)
        changed = told(bootstrap, world)
    assert changed != by_kwire
    with place.kafka() as bootstrap:
        assert told(bootstrap, world) == changed
