"""Looking at groups and for their coordinators: what is not there, filters, kinds."""

import pytest

from tests import wire
from tests.cases.helpers import (
    describe_group,
    simple_commit,
)
from tests.wire import group_ready


@pytest.mark.case("GRP-13")
def test_grp_13_groups_that_are_not_there(conn, unique):
    """DescribeGroups of a missing group is Dead without an error, 69 with a text from v6 on; the same name twice is
    answered twice; no groups, no answers.

    SOURCES: oleksiyk/kafka#242; YelpArchive/kafka-utils PR#183; KIP-1043
    """
    g = unique("no")
    group_ready(conn, g)
    for version in (0, 4, 5):
        d = describe_group(conn, g, version)
        assert (d.error_code, d.group_state, d.protocol_type, d.members) == (0, "Dead", "", [])
    r = conn.send("describe_groups", 6, groups=[g, g])
    assert [(d.error_code, d.error_message, d.group_state) for d in r.groups] == [
        (69, f"Group {g} not found.", "Dead")
    ] * 2
    assert conn.send("describe_groups", 6, groups=[]).groups == []


@pytest.mark.case("GRP-19")
def test_grp_19_filters_that_match_nothing(conn, topic, group):
    """Unknown states and types match nothing and are no error; Kafka's names only, in any case.

    SOURCES: linkedin/Burrow#789; redpanda-data/redpanda#2903; KIP-518, KIP-848
    """
    group_ready(conn, group)
    assert simple_commit(conn, group, topic, 1) == 0

    def found(states, types=()):
        r = conn.send("list_groups", 5, states_filter=list(states), types_filter=list(types))
        assert r.error_code == 0
        return group in {g.group_id for g in r.groups}

    assert found([]) and found(["EMPTY"]) and found(["bogus", "empty"]) and found([], ["cLASSIC"])
    assert not any(found([s]) for s in ("bogus", "", "preparing_rebalance", "Assigning"))
    assert not any(found([], [t]) for t in ("bogus", "", "share", "streams", "consumer"))


@pytest.mark.case("GRP-21")
def test_grp_21_kinds_of_coordinators(conn, unique):
    """FindCoordinator: groups and transactions from v1, share groups from v6 by group, topic id and partition; any
    other kind or key is 42. From v4 each key is answered alone, however often it is named.

    SOURCES: twmb/franz-go#37; redpanda-data/redpanda#3655; Jroland/kafka-net#122; KIP-699, KIP-932
    """
    group_ready(conn, unique("g"))
    wire.txn_ready(conn, unique("tx"))
    for version in (1, 2, 3):
        asked = [
            wire.retry(
                lambda k=kind, v=version: (
                    conn.send("find_coordinator", v, key="a", key_type=k).error_code
                ),
                lambda code: code != 15,
                15,
            )
            for kind in (0, 1, 2, 3, -1)
        ]
        assert asked == [0, 0, 42, 42, 42], f"v{version}"
    for version in (4, 5, 6):
        r = conn.send("find_coordinator", version, key_type=0, coordinator_keys=["a", "", "a"])
        assert [(x.key, x.error_code, x.error_message) for x in r.coordinators] == [
            ("a", 0, ""),
            ("", 0, ""),
            ("a", 0, ""),
        ]
        assert (
            conn.send("find_coordinator", version, key_type=0, coordinator_keys=[]).coordinators
            == []
        )
    for version in (4, 5):
        r = conn.send("find_coordinator", version, key_type=2, coordinator_keys=["a"])
        x = r.coordinators[0]
        assert (x.error_code, x.error_message, x.node_id, x.host, x.port) == (42, "", -1, "", -1)
    bad = ["g:no-id:0", "g:AAAAAAAAAAAAAAAAAAAAAQ:x", ":AAAAAAAAAAAAAAAAAAAAAQ:0"]
    r = conn.send("find_coordinator", 6, key_type=2, coordinator_keys=bad)
    assert [(x.error_code, x.error_message) for x in r.coordinators] == [(42, "")] * 3
