"""A replay: ids of one cluster in the place of another's, and what counts as a difference."""

from __future__ import annotations

from kwire.trace.json_values import Json, JsonObject
from kwire.trace.replay.differences import aligned, differences
from kwire.trace.replay.identities import Identities


def told(api: str, recorded: JsonObject, answered: JsonObject, known: Identities) -> list[str]:
    """As a player compares."""
    mine, theirs = aligned(recorded, answered, known)
    known.learn(mine, theirs)
    mine, theirs = aligned(recorded, answered, known)
    translated = known.mapped(mine)
    assert isinstance(translated, dict)
    assert isinstance(theirs, dict)
    return [str(each) for each in differences(api, translated, theirs)]


def test_what_a_cluster_has_given_out_is_replaced_in_later_requests() -> None:
    known = Identities()
    begun: JsonObject = {"error_code": 0, "producer_id": 7, "producer_epoch": 0}
    assert told("InitProducerId", begun, {**begun, "producer_id": 1000}, known) == []
    joined: JsonObject = {"member_id": "m-old", "leader": "m-old", "generation_id": 1}
    new = {**joined, "member_id": "m-new", "leader": "m-new"}
    assert told("JoinGroup", joined, new, known) == []
    batch: JsonObject = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 3}
    request: JsonObject = {"topic_data": [{"records": {"batches": [batch]}}], "member_id": "m-old"}
    assert known.mapped(request) == {
        "topic_data": [
            {
                "records": {
                    "batches": [{"producer_id": 1000, "producer_epoch": 0, "base_sequence": 3}]
                }
            }
        ],
        "member_id": "m-new",
    }


def test_an_epoch_belongs_to_its_producer_id() -> None:
    known = Identities()
    known.learn({"producer_id": 7, "producer_epoch": 0}, {"producer_id": 1, "producer_epoch": 5})
    known.learn({"producer_id": 8, "producer_epoch": 0}, {"producer_id": 2, "producer_epoch": 0})
    assert known.mapped({"producer_id": 7, "producer_epoch": 0}) == {
        "producer_id": 1,
        "producer_epoch": 5,
    }
    assert known.mapped({"producer_id": 8, "producer_epoch": 0}) == {
        "producer_id": 2,
        "producer_epoch": 0,
    }


def test_values_that_name_nobody_stay() -> None:
    known = Identities()
    known.learn({"producer_id": -1, "session_id": 0}, {"producer_id": 5, "session_id": 9})
    assert known.mapped({"producer_id": -1, "session_id": 0, "member_id": ""}) == {
        "producer_id": -1,
        "session_id": 0,
        "member_id": "",
    }


def test_two_recorded_ids_never_become_one() -> None:
    """A cluster that gives one id for two is told as a difference."""
    known = Identities()
    first = told("JoinGroup", {"member_id": "a"}, {"member_id": "x"}, known)
    second = told("JoinGroup", {"member_id": "b"}, {"member_id": "x"}, known)
    assert (first, second) == ([], ["member_id: recorded 'b', got 'x'"])


def topics(*rows: tuple[str, str, int]) -> JsonObject:
    listed: list[Json] = [
        {"name": name, "topic_id": topic_id, "error_code": code} for name, topic_id, code in rows
    ]
    return {"topics": listed}


def test_lists_are_laid_beside_each_other_by_names() -> None:
    known = Identities()
    recorded = topics(("a", "A1", 0), ("b", "B1", 3))
    answered = topics(("b", "B2", 3), ("a", "A2", 0))
    assert told("Metadata", recorded, answered, known) == []
    assert known.mapped({"topic_id": "A1"}) == {"topic_id": "A2"}


def test_then_by_the_ids_that_are_known() -> None:
    known = Identities()
    told(
        "Metadata",
        topics(("a", "A1", 0), ("b", "B1", 0)),
        topics(("a", "Z", 0), ("b", "Y", 0)),
        known,
    )
    one: list[Json] = [{"topic_id": "A1", "error_code": 0}, {"topic_id": "B1", "error_code": 6}]
    other: list[Json] = [{"topic_id": "Y", "error_code": 6}, {"topic_id": "Z", "error_code": 0}]
    assert told("Produce", {"responses": one}, {"responses": other}, known) == []


def test_errors_are_named() -> None:
    found = told("Heartbeat", {"error_code": 0}, {"error_code": 27}, Identities())
    assert found == ["error_code: recorded NONE, got REBALANCE_IN_PROGRESS"]
    missing = told("X", {"rows": [{"a": 1}, {"a": 2}]}, {"rows": [{"a": 1}]}, Identities())
    assert missing == ["rows, entries: recorded 2, got 1"]


def fetched(*batches: tuple[int, int], high_watermark: int = 9) -> JsonObject:
    rows: list[Json] = [
        {"base_offset": base, "last_offset": last, "count": last - base + 1, "bytes": base}
        for base, last in batches
    ]
    return {"high_watermark": high_watermark, "records": {"bytes": 1, "batches": rows}}


def test_of_a_fetch_only_what_both_returned_is_compared() -> None:
    same = told("Fetch", fetched((0, 4)), fetched((0, 4), (5, 9), high_watermark=20), Identities())
    assert same == []
    other = told("Fetch", fetched((0, 4)), fetched((0, 3)), Identities())
    assert other == [
        "records.batches[0].last_offset: recorded 4, got 3",
        "records.batches[0].count: recorded 5, got 4",
    ]
    assert told("Produce", fetched((0, 4)), fetched(), Identities()) != []


def with_values(*values: Json) -> JsonObject:
    made = fetched((0, len(values) - 1))
    records: list[Json] = [
        {"offset": at, "timestamp": at, "key": "k", "value": value, "headers": []}
        for at, value in enumerate(values)
    ]
    assert isinstance(made["records"], dict)
    made["records"]["records"] = records
    return made


def test_values_are_compared_where_all_of_them_were_kept() -> None:
    other = told("Fetch", with_values("a", "b"), with_values("a", "c"), Identities())
    assert other == ["records[offset 1].value: recorded 'b', got 'c'"]
    assert told("Fetch", with_values("a", "b"), with_values("a", "b"), Identities()) == []
    cut: JsonObject = {"cut": "b", "bytes": 9}
    assert told("Fetch", with_values("a", cut), with_values("z", "z"), Identities()) == []
    assert told("Fetch", fetched((0, 1)), with_values("z", "z"), Identities()) == []


def test_of_api_versions_only_whether_it_is_an_error() -> None:
    one: JsonObject = {"error_code": 0, "api_keys": [{"api_key": 1, "max_version": 2}]}
    assert told("ApiVersions", one, {"error_code": 0, "api_keys": []}, Identities()) == []
    assert told("ApiVersions", one, {"error_code": 35}, Identities()) != []
