"""Metadata and DescribeTopicPartitions: names, ids, pages."""

import uuid

import pytest

from tests import wire as w


def _pages(c, names, limit, cursor=None):
    r = c.send(
        "describe_topic_partitions",
        0,
        topics=[{"name": n} for n in names],
        response_partition_limit=limit,
        cursor=cursor and {"topic_name": cursor[0], "partition_index": cursor[1]},
    )
    more = r.next_cursor and (r.next_cursor.topic_name, r.next_cursor.partition_index)
    return [
        (t.name, t.error_code, [p.partition_index for p in t.partitions]) for t in r.topics
    ], more


@pytest.mark.case("META-20")
def test_meta_20_describe_topic_partitions_in_pages(c):
    """Topics come in the order of their names whatever the request's order, each page as long as the limit, the cursor
    names what is next; a page that is full ends before a topic of which it could hold nothing. The cursor is where
    a page begins, also if its topic is not among those asked for.

    SOURCES: apache/kafka#14612 (KAFKA-15585), apache/kafka#15470, kroxylicious/kroxylicious#1364
    """
    base = w.unique("meta20")
    a, b, z = (f"{base}{x}" for x in "abz")
    missing = f"{base}m"
    for name, count in ((a, 3), (b, 2), (z, 1)):
        w.create_topic(c, name, partitions=count)
    whole = [(a, 0, [0, 1, 2]), (b, 0, [0, 1]), (z, 0, [0])]
    assert _pages(c, [z, b, a, a], 2000) == (whole, None)
    for limit in range(1, 8):
        got, cursor, rounds = {}, None, 0
        while True:
            page, cursor = _pages(c, [z, a, b], limit, cursor)
            assert sum(len(parts) for *_, parts in page) <= limit
            for name, code, parts in page:
                assert code == 0
                got.setdefault(name, []).extend(parts)
            rounds += 1
            if cursor is None:
                break
        assert got == {name: parts for name, _, parts in whole}
        assert rounds <= 6
    assert _pages(c, [a, missing, b], 2000) == (
        [(a, 0, [0, 1, 2]), (b, 0, [0, 1]), (missing, 3, [])],
        None,
    )
    assert _pages(c, [a, b], 2000, (b, 1)) == ([(b, 0, [1])], None)
    assert _pages(c, [a, b], 2000, (b, 0)) == ([(b, 0, [0, 1])], None)
    assert _pages(c, [a], 1, (a, 1)) == ([(a, 0, [1])], (a, 2))


@pytest.mark.case("META-21")
def test_meta_21_names_that_cannot_be_are_17_and_do_not_spoil_the_rest(c):
    """A name that no topic can have is 17, an unknown one 3, each on its own entry and with the name it was asked by;
    a name asked for twice is answered once.

    SOURCES: tulios/kafkajs#665, confluentinc/librdkafka#1490, apache/kafka#117 (KAFKA-2393)
    """
    topic, missing = w.unique("meta21"), w.unique("missing")
    w.create_topic(c, topic)
    bad = ["bad name", "a/b", "x" * 250, ".", "..", "é"]
    for version in range(4, 14):
        r = w.metadata(c, [topic, missing, *bad, topic], version)
        codes = [(t.name, t.error_code) for t in r.topics]
        assert sorted(codes) == sorted(
            [(topic, 0), (missing, 3), *((name, w.INVALID_TOPIC) for name in bad)]
        ), version
        assert all(not t.partitions for t in r.topics if t.error_code)
    fresh = w.unique("meta21")
    r = w.metadata(c, ["bad name", fresh, ".."], 9, auto=True)
    assert {t.name: t.error_code for t in r.topics if t.name != fresh} == {"bad name": 17, "..": 17}
    w.CREATED.append(fresh)
    assert len(w.wait_topic(c, fresh).partitions) == 1


@pytest.mark.case("META-22")
@pytest.mark.parametrize("version", [12, 13])
def test_meta_22_topics_by_id(c, version):
    """A topic asked for by id is answered with id and name; an unknown id is 100 and has no name; a deleted topic's id is
    unknown, also when a topic of its name exists again.

    SOURCES: apache/kafka#9944 (KAFKA-10580), KIP-516, KIP-841
    """
    topic = w.unique("meta22")
    w.create_topic(c, topic)
    old = w.topic_id(c, topic)

    def ask(*ids):
        r = c.send(
            "metadata",
            version,
            topics=[{"topic_id": i, "name": None} for i in ids],
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
        )
        return {t.topic_id: (t.error_code, t.name, len(t.partitions)) for t in r.topics}

    unknown = uuid.uuid4()
    assert ask(old, unknown) == {old: (0, topic, 1), unknown: (100, None, 0)}
    w.delete_topic(c, topic)
    w.wait_gone(c, topic)
    w.create_topic(c, topic)
    new = w.topic_id(c, topic)
    assert new != old
    assert ask(old, new) == {old: (100, None, 0), new: (0, topic, 1)}
