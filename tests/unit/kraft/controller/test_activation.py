"""Becoming and being the active controller: first records, timers, refusals."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from kwire.clock import SeededRandom
from kwire.kraft.controller import (
    HANDLED_REQUESTS,
    Controller,
    ControllerContext,
    elections,
)
from kwire.kraft.controller.errors import error_response
from kwire.kraft.images.errors import ImageError
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from tests.support.controllers import ControllerBench, make_config


def _names(records: list[tuple[Any, int]]) -> list[str]:
    return [type(record).NAME for record, _ in records]


def test_the_first_records_are_kafkas() -> None:
    bench = ControllerBench()
    shown = [
        (type(r).NAME, getattr(r, "name", None), getattr(r, "feature_level", None))
        for r, _ in bench.log
    ]
    assert shown == [
        ("BeginTransactionRecord", "Bootstrap records", None),
        ("FeatureLevelRecord", "metadata.version", 33),
        ("FeatureLevelRecord", "eligible.leader.replicas.version", 1),
        ("FeatureLevelRecord", "group.version", 1),
        ("FeatureLevelRecord", "share.version", 2),
        ("FeatureLevelRecord", "streams.version", 1),
        ("FeatureLevelRecord", "transaction.version", 2),
        ("ConfigRecord", "min.insync.replicas", None),
        ("EndTransactionRecord", None, None),
    ]
    assert bench.image.config(4, "") == {"min.insync.replicas": "1"}


def test_the_static_min_isr_is_what_elr_pins_down() -> None:
    bench = ControllerBench(config=make_config(static_min_insync_replicas=2))
    assert bench.image.config(4, "") == {"min.insync.replicas": "2"}


@pytest.mark.parametrize(("level", "transaction"), [(7, False), (12, False), (13, True)])
def test_old_metadata_versions_know_no_transactions(level: int, transaction: bool) -> None:
    bench = ControllerBench(features={"metadata.version": level})
    assert ("BeginTransactionRecord" in _names(bench.log)) is transaction
    assert "ConfigRecord" not in _names(bench.log)
    assert bench.image.features.metadata_version.level == level


def test_a_log_with_records_gets_none() -> None:
    bench = ControllerBench()
    assert bench.controller.activate(5, len(bench.log), 2) == []


def test_a_transaction_left_open_is_aborted() -> None:
    bench = ControllerBench()
    bench.append([(m.BeginTransactionRecord(name="x"), 0), (m.NoOpRecord(), 0)])
    topic = m.TopicRecord(name="never", topic_id=b"t" * 16)
    bench.append([(topic, 0)])
    records = bench.controller.activate(5, len(bench.log), 2)
    assert _names(records) == ["AbortTransactionRecord"]
    bench.append(records)
    assert not bench.image.in_transaction
    assert "never" not in bench.image.topics.by_name


def test_an_empty_log_with_half_a_bootstrap_begins_again() -> None:
    bench = ControllerBench(activate=False)
    bench.append([(m.BeginTransactionRecord(name="Bootstrap records"), 0)])
    bench.append([(m.FeatureLevelRecord(name="metadata.version", feature_level=33), 0)])
    records = bench.controller.activate(5, 2, 2, None, True)
    assert _names(records)[:2] == ["AbortTransactionRecord", "BeginTransactionRecord"]
    bench.append(records)
    assert bench.image.features.metadata_version.level == 33


def test_bootstrap_records_must_name_the_metadata_version() -> None:
    bench = ControllerBench(activate=False)
    with pytest.raises(ImageError, match=r"no metadata.version"):
        bench.controller.activate(5, 0, 1, [])


def test_bootstrap_records_carry_what_the_cluster_was_formatted_with() -> None:
    bench = ControllerBench(activate=False)
    scram = m.UserScramCredentialRecord(
        name="ann", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"v", iterations=4096
    )
    level = m.FeatureLevelRecord(name="metadata.version", feature_level=33)
    bench.append(bench.controller.activate(5, 0, 1, [(level, 0), (scram, 0)]))
    assert (1, "ann") in bench.image.scram
    assert _names(bench.log)[0] == "BeginTransactionRecord"
    assert _names(bench.log)[-1] == "EndTransactionRecord"


def test_an_idle_controller_shows_that_it_is_alive() -> None:
    bench = ControllerBench()
    size = len(bench.log)
    bench.expire(bench.now_ms + 499)
    assert len(bench.log) == size
    bench.expire(bench.now_ms + 1)
    assert _names(bench.log[size:]) == ["NoOpRecord"]
    bench.start(1)
    size = len(bench.log)
    bench.expire(bench.now_ms + 499)
    assert len(bench.log) == size, "any record is a sign of life"


def test_no_sign_of_life_where_the_interval_is_zero() -> None:
    bench = ControllerBench(config=make_config(max_idle_interval_ms=0))
    assert "no_op" not in dict(bench.controller.timers())


def test_leaders_go_back_to_the_preferred_replicas_in_time() -> None:
    bench = ControllerBench()
    bench.start(1, 2)
    bench.create("t", {0: [1, 2], 1: [1, 2]})
    bench.heartbeat(1, want_fence=True)
    bench.heartbeat(1)
    assert bench.alter_isr("t", 0, [2, 1]).error_code == 0
    assert bench.partition("t").leader == 2
    for _ in range(40):
        bench.now_ms += 8_000
        bench.heartbeat(1)
        bench.heartbeat(2)
        bench.expire()
    assert bench.partition("t", 0).leader == 1
    assert bench.partition("t", 1).leader == 2, "1 is not in sync there"


def test_a_round_of_elections_goes_on_until_all_are_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(elections, "MAX_ELECTIONS_PER_ROUND", 10)
    bench = ControllerBench()
    bench.start(1, 2)
    bench.create("t", {index: [1, 2] for index in range(25)})
    bench.heartbeat(1, want_fence=True)
    bench.heartbeat(1)
    for index in range(25):
        bench.alter_isr("t", index, [2, 1])
    deadline = dict(bench.controller.timers())["balance"]
    while bench.now_ms < deadline:
        bench.now_ms = min(bench.now_ms + 8_000, deadline)
        bench.heartbeat(1)
        bench.heartbeat(2)
        if bench.now_ms < deadline:
            bench.expire()
    size = len(bench.log)
    bench.expire()
    changes = [r for r, _ in bench.log[size:] if type(r).NAME == "PartitionChangeRecord"]
    assert len(changes) == 25
    leaders = {p.leader for p in bench.image.topics.by_name["t"].partitions.values()}
    assert leaders == {1}


def test_leaders_stay_where_rebalancing_is_off() -> None:
    bench = ControllerBench(config=make_config(leader_imbalance_check_interval_ms=None))
    assert "balance" not in dict(bench.controller.timers())


def test_a_leaderless_partition_may_be_led_uncleanly_in_time() -> None:
    bench = ControllerBench(features={"metadata.version": 33})
    bench.start(1, 2)
    bench.create("t", {0: [1, 2]})
    assert bench.alter_isr("t", 0, [1]).error_code == 0
    bench.heartbeat(1, want_fence=True)
    assert bench.partition("t").leader == -1
    shape = m.IncrementalAlterConfigsRequest
    config = shape.AlterableConfig(
        name="unclean.leader.election.enable", config_operation=0, value="true"
    )
    resource = shape.AlterConfigsResource(resource_type=2, resource_name="t", configs=[config])
    bench.call(shape(resources=[resource]))
    for _ in range(40):
        bench.now_ms += 8_000
        bench.heartbeat(2)
        bench.expire()
    partition = bench.partition("t")
    assert (partition.leader, partition.isr, partition.leader_recovery_state) == (2, (2,), 1)


def _minimal(name: str) -> Any:
    """A request that names one of everything."""
    request = getattr(m, name)()
    if name == "CreateTopicsRequest":
        request.topics = [request.CreatableTopic(name="t")]
    elif name == "DeleteTopicsRequest":
        request.topic_names = ["t"]
    elif name == "CreatePartitionsRequest":
        request.topics = [request.CreatePartitionsTopic(name="t", assignments=None)]
    elif name in ("IncrementalAlterConfigsRequest", "AlterConfigsRequest"):
        request.resources = [request.AlterConfigsResource(resource_type=2, resource_name="t")]
    elif name == "CreateAclsRequest":
        request.creations = [request.AclCreation()]
    elif name == "DeleteAclsRequest":
        request.filters = [request.DeleteAclsFilter()]
    elif name == "AlterClientQuotasRequest":
        request.entries = [request.EntryData(entity=[request.EntityData(entity_type="user")])]
    elif name == "AlterUserScramCredentialsRequest":
        request.deletions = [request.ScramCredentialDeletion(name="u")]
    elif name == "ElectLeadersRequest":
        request.topic_partitions = [request.TopicPartitions(topic="t", partitions=[0])]
    elif name == "AlterPartitionReassignmentsRequest":
        part = request.ReassignablePartition(partition_index=0)
        request.topics = [request.ReassignableTopic(name="t", partitions=[part])]
    return request


def _codes(value: Any) -> list[int]:
    """Every error code in a response."""
    found = []
    if isinstance(value, list):
        for item in value:
            found += _codes(item)
    elif hasattr(value, "unknown_tags"):
        for field in type(value).FIELDS:
            if field == "error_code":
                found.append(value.error_code)
            elif not field.startswith("_") and field != "unknown_tags":
                found += _codes(getattr(value, field))
    return found


@pytest.mark.parametrize("name", sorted(HANDLED_REQUESTS))
def test_every_request_says_when_this_is_not_the_controller(name: str) -> None:
    controller = Controller(make_config(), SeededRandom(1))
    request = _minimal(name)
    cls = type(request)
    for version in range(cls.MIN_VERSION, cls.MAX_VERSION + 1):
        records, response = controller.handle(request, ControllerContext(api_version=version), 0)
        assert records == []
        decoded = type(response).decode(response.encode(version), version)
        assert int(ErrorCode.NOT_CONTROLLER) in _codes(decoded), version


@pytest.mark.parametrize("name", sorted(HANDLED_REQUESTS))
def test_every_request_can_be_refused(name: str) -> None:
    """Without any right nothing is written, and every answer can be sent at every version."""
    bench = ControllerBench(config=make_config(has_authorizer=True, token_secret="secret"))
    bench.start(1)
    bench.create("t", {0: [1]})
    request = _minimal(name)
    cls = type(request)
    if hasattr(request, "timeout_ms"):
        request.timeout_ms = 1000
    for version in range(cls.MIN_VERSION, cls.MAX_VERSION + 1):
        records, response = bench.controller.handle(
            request,
            ControllerContext(api_version=version, authorize=lambda *_: False, forwarded=False),
            bench.now_ms,
        )
        assert records == []
        decoded = type(response).decode(response.encode(version), version)
        codes = set(_codes(decoded))
        if name == "ElectLeadersRequest" and version == 0:
            codes.discard(0)  # that of the whole answer, which version 0 lacks
        assert codes, version
        assert 0 not in codes, version
        assert int(ErrorCode.UNKNOWN_SERVER_ERROR) not in codes


@pytest.mark.parametrize("name", sorted(HANDLED_REQUESTS))
def test_an_error_has_its_place_in_every_response(name: str) -> None:
    request = _minimal(name)
    for version in range(request.MIN_VERSION, request.MAX_VERSION + 1):
        error = KafkaError(ErrorCode.REQUEST_TIMED_OUT, "late")
        response = error_response(request, error, version)
        decoded = type(response).decode(response.encode(version), version)
        assert int(ErrorCode.REQUEST_TIMED_OUT) in _codes(decoded)


def test_settings_are_values() -> None:
    assert dataclasses.replace(make_config(), node_id=7).node_id == 7
