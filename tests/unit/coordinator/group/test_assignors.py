"""The assignors: each partition assigned once, to a subscriber, evenly, without needless moves."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kwire.coordinator.group.assignors import ASSIGNORS
from kwire.coordinator.group.assignors.spec import (
    Assigning,
    Assignment,
    GroupSpec,
    MemberSpec,
)

TOPICS = [bytes([number]) * 16 for number in range(6)]


def run(steps: Assigning) -> Assignment:
    while True:
        try:
            next(steps)
        except StopIteration as finished:
            result: Assignment = finished.value
            return result


def spec_of(
    subscriptions: dict[str, tuple[bytes, ...]],
    counts: dict[bytes, int],
    targets: Assignment | None = None,
    instances: dict[str, str] | None = None,
) -> GroupSpec:
    members = {
        member: MemberSpec((instances or {}).get(member), topics, (targets or {}).get(member, {}))
        for member, topics in subscriptions.items()
    }
    return GroupSpec(members, counts)


def check_valid(spec: GroupSpec, assignment: Assignment) -> None:
    assert list(assignment) == list(spec.members)
    owners: dict[tuple[bytes, int], str] = {}
    for member, topics in assignment.items():
        for topic, partitions in topics.items():
            assert topic in spec.members[member].topics
            assert list(partitions) == sorted(partitions)
            for partition in partitions:
                assert (topic, partition) not in owners
                owners[topic, partition] = member
    subscribed = {topic for member in spec.members.values() for topic in member.topics}
    assert set(owners) == {(t, p) for t in subscribed for p in range(spec.partition_counts[t])}


def sizes(assignment: Assignment) -> list[int]:
    return [sum(map(len, topics.values())) for topics in assignment.values()]


counts = st.fixed_dictionaries({topic: st.integers(1, 12) for topic in TOPICS})
some_topics = st.lists(st.sampled_from(TOPICS), unique=True, max_size=6).map(
    lambda topics: tuple(sorted(topics))
)
different = st.dictionaries(st.text("abcdef", min_size=1, max_size=3), some_topics, max_size=8)


@given(different, counts, st.sampled_from(sorted(ASSIGNORS)))
def test_every_partition_has_one_owner_who_subscribes_to_it(
    subscriptions: dict[str, tuple[bytes, ...]], counts: dict[bytes, int], name: str
) -> None:
    spec = spec_of(subscriptions, counts)
    check_valid(spec, run(ASSIGNORS[name](spec)))


@given(st.integers(1, 12), some_topics, counts, st.integers(-3, 3))
def test_uniform_is_even_and_moves_only_what_it_must(
    member_count: int, topics: tuple[bytes, ...], counts: dict[bytes, int], change: int
) -> None:
    members = [f"m{number:02}" for number in range(member_count)]
    spec = spec_of(dict.fromkeys(members, topics), counts)
    before = run(ASSIGNORS["uniform"](spec))
    assert max(sizes(before)) - min(sizes(before)) <= 1
    again = spec_of(dict.fromkeys(members, topics), counts, before)
    assert run(ASSIGNORS["uniform"](again)) == before
    now = [f"m{number:02}" for number in range(max(1, member_count + change))]
    after_spec = spec_of(dict.fromkeys(now, topics), counts, before)
    after = run(ASSIGNORS["uniform"](after_spec))
    check_valid(after_spec, after)
    assert max(sizes(after)) - min(sizes(after)) <= 1
    total = sum(sizes(after))
    kept = sum(
        len(set(after[member].get(topic, ())) & set(partitions))
        for member in now
        if member in before
        for topic, partitions in before[member].items()
    )
    quota, extra = divmod(total, len(now))
    owned = sorted((sum(map(len, before[m].values())) for m in now if m in before), reverse=True)
    possible = sum(min(size, quota + (i < extra)) for i, size in enumerate(owned))
    assert kept == possible


@given(different, counts)
def test_uniform_leaves_no_move_that_would_make_it_more_even(
    subscriptions: dict[str, tuple[bytes, ...]], counts: dict[bytes, int]
) -> None:
    spec = spec_of(subscriptions, counts)
    assignment = run(ASSIGNORS["uniform"](spec))
    load = {member: sum(map(len, topics.values())) for member, topics in assignment.items()}
    for giver, topics in assignment.items():
        for topic in topics:
            for taker, member in spec.members.items():
                if topic in member.topics:
                    assert load[giver] - load[taker] <= 1


@given(different, counts)
def test_uniform_with_different_subscriptions_stays_where_it_is(
    subscriptions: dict[str, tuple[bytes, ...]], counts: dict[bytes, int]
) -> None:
    before = run(ASSIGNORS["uniform"](spec_of(subscriptions, counts)))
    assert run(ASSIGNORS["uniform"](spec_of(subscriptions, counts, before))) == before


def test_range_gives_consecutive_partitions_and_co_partitions_topics() -> None:
    topics = (TOPICS[0], TOPICS[1])
    spec = spec_of({"b": topics, "a": topics, "c": topics}, {TOPICS[0]: 7, TOPICS[1]: 7})
    assignment = run(ASSIGNORS["range"](spec))
    assert assignment["a"] == dict.fromkeys(topics, (0, 1, 2))
    assert assignment["b"] == dict.fromkeys(topics, (3, 4))
    assert assignment["c"] == dict.fromkeys(topics, (5, 6))


def test_range_puts_static_members_first() -> None:
    spec = spec_of(
        {"a": (TOPICS[0],), "b": (TOPICS[0],)}, {TOPICS[0]: 3}, instances={"b": "static"}
    )
    assert run(ASSIGNORS["range"](spec)) == {"a": {TOPICS[0]: (2,)}, "b": {TOPICS[0]: (0, 1)}}


def test_assignors_pause_so_that_nobody_waits_long() -> None:
    members = {f"m{number}": tuple(TOPICS) for number in range(1000)}
    spec = spec_of(members, dict.fromkeys(TOPICS, 1700))
    for name in ASSIGNORS:
        assert sum(1 for _ in ASSIGNORS[name](spec)) >= 5
