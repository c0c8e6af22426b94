"""`kwire.client.idempotency`: who decides about keys, in every phase, and what the records say."""

from __future__ import annotations

import pytest

from kwire.client.errors import ClientError
from kwire.client.idempotency import key_records, known_keys
from kwire.client.idempotency.keeper import (
    GROUP_POSTS_MAX,
    QUEUE_MAX,
    Committed,
    Effect,
    Failed,
    Finish,
    HeldBack,
    Input,
    Keeper,
    Left,
    Lost,
    NotPublished,
    Open,
    Opened,
    OtherBody,
    Phase,
    Posted,
    Published,
    Read,
    ReadUp,
    Refused,
    TooMany,
    Write,
    Written,
)
from kwire.client.idempotency.key_records import KeyRecord, Run, UnreadableRecord
from kwire.client.idempotency.known_keys import KnownKeys
from kwire.client.idempotency.writing import transactional_id
from kwire.client.producer import Kept

NOW_MS = 1_000_000
RETENTION_MS = 1000
BODY, OTHER = b"b" * 16, b"o" * 16
RECORD = key_records.made(BODY, "t", [0, 2, 0], {0: [Run(5, 2)], 2: [Run(9, 1)]})
ERROR = ClientError("refused")


def post(number: int, key: bytes = b"", body: bytes = BODY, size_bytes: int = 1) -> Posted:
    return Posted(number, key or b"key-%d" % number, body, size_bytes)


def keeper_in(phase: Phase) -> Keeper:
    """One that posts 0 and 1 have brought there."""
    keeper = Keeper(KnownKeys(RETENTION_MS))
    steps: dict[Phase, list[Input]] = {
        Phase.IDLE: [],
        Phase.OPENING: [post(0), post(1)],
        Phase.READING: [post(0), post(1), Opened()],
        Phase.READY: [post(0), Opened(), Left(0), ReadUp()],
        Phase.WRITING: [post(0), post(1), Opened(), ReadUp()],
        Phase.COMMITTING: [post(0), post(1), Opened(), ReadUp(), Written()],
    }
    for given in steps[phase]:
        keeper.step(given, NOW_MS)
    assert keeper.phase is phase
    return keeper


FAIL: list[Effect] = [NotPublished(0, ERROR), NotPublished(1, ERROR)]
BOTH = Committed({0: RECORD, 1: RECORD})
FIRST = Published(0, RECORD, is_repeated=False)
SECOND = Published(1, RECORD, is_repeated=False)
TABLE: dict[tuple[Phase, str], tuple[Input, Phase, list[Effect]]] = {
    (Phase.IDLE, "post"): (post(2), Phase.OPENING, [Open()]),
    (Phase.OPENING, "post"): (post(2), Phase.OPENING, []),
    (Phase.READING, "post"): (post(2), Phase.READING, []),
    (Phase.READY, "post"): (post(2), Phase.WRITING, [Write((2,))]),
    (Phase.WRITING, "post"): (post(2), Phase.WRITING, []),
    (Phase.COMMITTING, "post"): (post(2), Phase.COMMITTING, []),
    (Phase.OPENING, "opened"): (Opened(), Phase.READING, [Read()]),
    (Phase.OPENING, "failed"): (Failed(ERROR), Phase.IDLE, FAIL),
    (Phase.READING, "read up"): (ReadUp(), Phase.WRITING, [Write((0, 1))]),
    (Phase.READING, "lost"): (Lost(), Phase.OPENING, [Open()]),
    (Phase.READING, "failed"): (Failed(ERROR), Phase.IDLE, FAIL),
    (Phase.WRITING, "written"): (Written(), Phase.COMMITTING, [Finish((0, 1))]),
    (Phase.WRITING, "refused"): (Refused((1,), ERROR), Phase.OPENING, [Open()]),
    (Phase.WRITING, "lost"): (Lost(), Phase.OPENING, [Open()]),
    (Phase.COMMITTING, "committed"): (BOTH, Phase.READY, [FIRST, SECOND]),
    (Phase.COMMITTING, "refused"): (Refused((), ERROR), Phase.OPENING, [Open()]),
    (Phase.COMMITTING, "lost"): (Lost(), Phase.OPENING, [Open()]),
}
ANSWERS: list[Input] = [
    *(Opened(), ReadUp(), Written(), BOTH),
    *(Refused((0,), ERROR), Lost(), Failed(ERROR)),
]


@pytest.mark.parametrize(("phase", "name"), TABLE)
def test_every_transition(phase: Phase, name: str) -> None:
    given, after, effects = TABLE[phase, name]
    keeper = keeper_in(phase)
    assert keeper.step(given, NOW_MS) == effects
    assert keeper.phase is after


@pytest.mark.parametrize("phase", list(Phase))
def test_nothing_else_is_accepted(phase: Phase) -> None:
    accepted = {type(given) for (of, _), (given, _, _) in TABLE.items() if of is phase}
    for given in ANSWERS:
        if type(given) not in accepted:
            with pytest.raises(AssertionError):
                keeper_in(phase).step(given, NOW_MS)


@pytest.mark.parametrize("phase", list(Phase))
def test_whoever_leaves_is_not_written_unless_it_is_being_written(phase: Phase) -> None:
    keeper = keeper_in(phase)
    assert keeper.step(Left(0), NOW_MS) == []
    assert keeper.has(0) == (phase in (Phase.WRITING, Phase.COMMITTING))


def learn(keeper: Keeper, key: bytes, *, timestamp_ms: int = NOW_MS) -> None:
    keeper.known.replay(7, key, key_records.encoded(RECORD), timestamp_ms)
    keeper.known.replay_end(7, True)


@pytest.mark.parametrize("phase", list(Phase))
def test_what_is_committed_is_answered_in_every_phase(phase: Phase) -> None:
    keeper = keeper_in(phase)
    learn(keeper, b"known")
    assert keeper.step(post(8, b"known"), NOW_MS) == [Published(8, RECORD, is_repeated=True)]
    assert keeper.step(post(9, b"known", OTHER), NOW_MS) == [OtherBody(9, RECORD)]
    assert keeper.phase is phase


@pytest.mark.parametrize("phase", list(Phase))
def test_who_waits_is_told_of_the_quota_unless_it_is_being_written(phase: Phase) -> None:
    keeper = keeper_in(phase)
    is_written = phase in (Phase.WRITING, Phase.COMMITTING)
    waits = phase in (Phase.OPENING, Phase.READING)
    if is_written:
        keeper.step(post(2), NOW_MS)
    effects = [NotPublished(2, ERROR)] if is_written else FAIL if waits else []
    assert keeper.step(HeldBack(ERROR), NOW_MS) == effects
    assert (keeper.phase, keeper.has(0), keeper.has(2)) == (phase, is_written, False)


def test_of_what_was_lost_nobody_is_told_that_it_was_held_back() -> None:
    keeper = keeper_in(Phase.COMMITTING)
    keeper.step(post(2), NOW_MS)
    keeper.step(Lost(), NOW_MS)
    assert keeper.step(HeldBack(ERROR), NOW_MS) == [NotPublished(2, ERROR)]
    keeper.step(Opened(), NOW_MS)
    learn(keeper, b"key-0")
    assert keeper.step(ReadUp(), NOW_MS) == [
        Published(0, RECORD, is_repeated=True),
        Write((1,)),
    ]


def test_two_posts_of_one_key_are_not_in_one_group() -> None:
    keeper = keeper_in(Phase.OPENING)
    keeper.step(post(2, b"key-0"), NOW_MS)
    keeper.step(post(3, b"key-0", OTHER), NOW_MS)
    keeper.step(Opened(), NOW_MS)
    assert keeper.step(ReadUp(), NOW_MS) == [Write((0, 1))]
    keeper.step(Written(), NOW_MS)
    assert keeper.step(BOTH, NOW_MS) == [
        FIRST,
        SECOND,
        Published(2, RECORD, is_repeated=True),
        OtherBody(3, RECORD),
    ]
    assert not keeper.is_busy


def test_what_was_lost_is_answered_where_it_turns_out_to_be_there() -> None:
    keeper = keeper_in(Phase.COMMITTING)
    keeper.step(Lost(), NOW_MS)
    keeper.step(Opened(), NOW_MS)
    learn(keeper, b"key-0")
    assert keeper.step(ReadUp(), NOW_MS) == [
        Published(0, RECORD, is_repeated=True),
        Write((1,)),
    ]


def test_a_post_that_is_refused_among_others_is_tried_alone() -> None:
    keeper = keeper_in(Phase.WRITING)
    keeper.step(post(2), NOW_MS)
    keeper.step(Refused((1,), ERROR), NOW_MS)
    keeper.step(Opened(), NOW_MS)
    assert keeper.step(ReadUp(), NOW_MS) == [Write((0, 2))]
    keeper.step(Written(), NOW_MS)
    third = Published(2, RECORD, is_repeated=False)
    committed = Committed({0: RECORD, 2: RECORD})
    assert keeper.step(committed, NOW_MS) == [FIRST, third, Write((1,))]
    assert keeper.step(Refused((1,), ERROR), NOW_MS) == [NotPublished(1, ERROR)]
    assert not keeper.is_busy


def test_a_group_is_bounded_and_so_is_what_waits() -> None:
    keeper = Keeper(KnownKeys(RETENTION_MS))
    for number in range(QUEUE_MAX):
        keeper.step(post(number), NOW_MS)
    (answer,) = keeper.step(post(QUEUE_MAX), NOW_MS)
    assert isinstance(answer, NotPublished)
    assert isinstance(answer.error, TooMany)
    keeper.step(Opened(), NOW_MS)
    (write,) = keeper.step(ReadUp(), NOW_MS)
    assert write == Write(tuple(range(GROUP_POSTS_MAX)))


def test_keys_within_the_retention_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_keys, "KEYS_MAX", 2)
    keeper = keeper_in(Phase.READY)
    learn(keeper, b"a", timestamp_ms=NOW_MS - 500)
    learn(keeper, b"b")
    (answer,) = keeper.step(post(2), NOW_MS)
    assert isinstance(answer, NotPublished)
    assert isinstance(answer.error, TooMany)
    assert keeper.step(post(3), NOW_MS + 500) == [Write((3,))]


def test_a_key_is_forgotten_after_the_retention() -> None:
    known = KnownKeys(RETENTION_MS)
    known.replay(7, b"key", key_records.encoded(RECORD), NOW_MS)
    assert known.find(b"key", NOW_MS) is None
    known.replay_end(7, True)
    assert known.find(b"key", NOW_MS + RETENTION_MS - 1) is not None
    assert known.find(b"key", NOW_MS + RETENTION_MS) is None


def test_a_transaction_counts_once_its_own_producer_has_committed() -> None:
    known = KnownKeys(RETENTION_MS)
    known.replay(7, b"a", key_records.encoded(RECORD), NOW_MS)
    known.replay(8, b"b", key_records.encoded(RECORD), NOW_MS)
    known.replay_end(8, True)
    known.replay_end(7, False)
    known.replay_end(7, True)
    assert known.find(b"a", NOW_MS) is None
    assert known.find(b"b", NOW_MS) is not None


def test_a_record_is_what_was_encoded() -> None:
    assert key_records.decoded(key_records.encoded(RECORD)) == RECORD
    assert RECORD.places() == [Kept(0, 5), Kept(2, 9), Kept(0, 6)]


def test_a_record_tells_of_each_batch_where_its_messages_are() -> None:
    """Another producer's batch may stand between two of one request."""
    runs = {0: [Run(5, 2), Run(9, 1)], 1: [Run(0, 1)]}
    record = key_records.made(BODY, "t", [0, 1, 0, 0], runs)
    assert key_records.decoded(key_records.encoded(record)) == record
    assert record.places() == [Kept(0, 5), Kept(1, 0), Kept(0, 6), Kept(0, 9)]


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"version":2}',
        b'{"version":1,"body":"zz","topic":"t","partitions":[],"offsets":{}}',
        b'{"version":1,"body":"","topic":"t","partitions":[0],"offsets":{}}',
        b'{"version":1,"body":"","topic":"t","partitions":[-1],"offsets":{"-1":0}}',
        b'{"version":1,"body":"","topic":"t","partitions":[true],"offsets":{"1":0}}',
        b'{"version":1,"body":"","topic":"t","partitions":[0],"offsets":{"0":"1"}}',
        b'{"version":3,"body":"","topic":"t","partitions":[],"offsets":{}}',
        b'{"version":2,"body":"","topic":"t","partitions":[0],"offsets":{"0":[[5]]}}',
        b'{"version":2,"body":"","topic":"t","partitions":[0],"offsets":{"0":[]}}',
        b'{"version":2,"body":"","topic":"t","partitions":[0],"offsets":{"0":[[5,2]]}}',
        b"[" * 100_000,
    ],
)
def test_a_value_that_is_no_record_says_nothing(value: bytes) -> None:
    with pytest.raises(UnreadableRecord):
        key_records.decoded(value)
    known = KnownKeys(RETENTION_MS)
    known.replay(7, b"key", value, NOW_MS)
    known.replay_end(7, True)
    assert len(known) == 0


def test_digests_know_where_parts_end() -> None:
    assert key_records.digest_of(b"ab", b"c") != key_records.digest_of(b"a", b"bc")


def test_a_transactional_id_can_be_named_by_an_acl() -> None:
    assert transactional_id("alice", 3) == "kwire-rest-alice-3"
    assert len(transactional_id("a" * 5000, 3)) < 100
    assert transactional_id("a\n", 3).isprintable()
    assert isinstance(RECORD, KeyRecord)
