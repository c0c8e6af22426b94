"""Pushes are kept until they were read, the last of each client longer, within a bound."""

from __future__ import annotations

from kwire.telemetry.kept_pushes import HEAD_BYTES, SILENT_MS, KeptPushes, Push, decoded


def push(client: str, payload: bytes = b"x", at_ms: int = 0) -> Push:
    return Push(client, "", "", "", 100, 0, at_ms, payload)


def read(kept: KeptPushes, after: int = 0, now_ms: int = 0) -> list[tuple[int, str, bytes]]:
    told = b"".join(kept.read(after, now_ms))
    return [(number, one.instance_id, one.payload) for number, one in decoded(told)]


def test_all_are_read_once_and_the_newest_stay_for_another_reader() -> None:
    kept = KeptPushes()
    kept.add(push("a", b"1"))
    kept.add(push("a", b"2"))
    kept.add(push("b", b"3" * 700_000))
    assert read(kept) == [(1, "a", b"1"), (2, "a", b"2"), (3, "b", b"3" * 700_000)]
    assert read(kept, 3) == []
    assert [number for number, _, _ in read(kept)] == [2, 3]
    kept.add(push("a", b"4"))  # the one before was read
    assert [number for number, _, _ in read(kept)] == [3, 4]
    assert (kept.total, kept.dropped) == (4, 0)


def test_a_client_that_is_silent_is_forgotten_once_it_was_read() -> None:
    kept = KeptPushes()
    kept.add(push("a"))
    assert read(kept, 0, SILENT_MS) == [(1, "a", b"x")]
    assert read(kept, 1, SILENT_MS) == []
    assert read(kept) == []


def test_the_oldest_give_way_where_nobody_reads() -> None:
    kept = KeptPushes(3 * (HEAD_BYTES + 1))
    for client in "abcab":
        kept.add(push(client))
    assert [number for number, _, _ in read(kept)] == [3, 4, 5]
    assert kept.dropped == 2
    kept.add(push("d", bytes(5000)))
    assert read(kept) == []
    assert kept.dropped == 6
    kept.add(push("d"))
    assert read(kept) == [(7, "d", b"x")]


def test_nothing_is_kept_where_nobody_reads_ever() -> None:
    kept = KeptPushes(0)
    kept.add(push("a"))
    assert read(kept) == []
