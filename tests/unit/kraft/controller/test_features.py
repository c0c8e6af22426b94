"""UpdateFeatures beyond what was compared with Kafka: other nodes, kraft.version, ELR."""

from __future__ import annotations

from typing import Any

from kwire.kraft.controller import ControllerContext
from kwire.kraft.controller.context import KraftUpgrade
from kwire.kraft.features import SUPPORTED_FEATURES
from kwire.protocol import messages as m
from tests.support.controllers import ControllerBench, make_config


def _update(*wanted: tuple[str, int, int], validate_only: bool = False) -> Any:
    shape = m.UpdateFeaturesRequest
    return shape(
        feature_updates=[
            shape.FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
            for name, level, kind in wanted
        ],
        validate_only=validate_only,
    )


def _ranges(shape: Any, **changes: tuple[int, int]) -> list[Any]:
    known = {**SUPPORTED_FEATURES, **{k.replace("_", "."): v for k, v in changes.items()}}
    return [
        shape.Feature(name=name, min_supported_version=low, max_supported_version=high)
        for name, (low, high) in known.items()
    ]


def test_a_broker_that_cannot_follow_holds_a_feature_back() -> None:
    bench = ControllerBench(features={"metadata.version": 33})
    shape = m.BrokerRegistrationRequest
    bench.start(1)
    bench.start(2, features=_ranges(shape, share_version=(0, 1)))
    answer = bench.call(_update(("share.version", 2, 1)), 2)
    assert answer.error_code == 95
    assert "Broker 2 only supports versions 0-1" in answer.error_message
    assert bench.call(_update(("share.version", 1, 1)), 2).error_code == 0
    assert bench.image.features.finalized["share.version"] == 1


def test_a_voter_that_has_not_registered_may_not_be_passed_over() -> None:
    bench = ControllerBench(features={"metadata.version": 33}, config=make_config(voter_ids=(1, 2)))
    answer = bench.call(_update(("group.version", 1, 1)), 2)
    assert "controller 2 has not registered" in answer.error_message
    shape = m.ControllerRegistrationRequest
    bench.call(shape(controller_id=2, features=_ranges(shape, group_version=(0, 0))))
    answer = bench.call(_update(("group.version", 1, 1)), 2)
    assert "Controller 2 does not support this feature" in answer.error_message
    bench.call(shape(controller_id=2, features=_ranges(shape)))
    assert bench.call(_update(("group.version", 1, 1)), 2).error_code == 0


def test_elr_needs_its_metadata_version_and_pins_the_min_isr_down() -> None:
    old = ControllerBench(features={"metadata.version": 22})
    answer = old.call(_update(("eligible.leader.replicas.version", 1, 1)), 2)
    assert answer.error_code == 95
    both = _update(("metadata.version", 23, 1), ("eligible.leader.replicas.version", 1, 1))
    assert old.call(both, 2).error_code == 0
    assert old.image.config(4, "") == {"min.insync.replicas": "1"}
    assert old.image.features.elr_enabled


def test_all_updates_or_none() -> None:
    bench = ControllerBench(features={"metadata.version": 33})
    wanted = _update(("group.version", 1, 1), ("share.version", 9, 1))
    assert bench.call(wanted, 2).error_code == 95
    assert "group.version" not in bench.image.features.finalized


def test_a_higher_kraft_version_is_raised_by_raft() -> None:
    bench = ControllerBench(features={"metadata.version": 33})
    context = ControllerContext(api_version=2, kraft_version=0)
    records, answer = bench.controller.handle(_update(("kraft.version", 1, 1)), context, 0)
    assert (records, answer.error_code) == ([], 0)
    assert context.wanted_kraft_version == KraftUpgrade(1, validate_only=False)
    context = ControllerContext(api_version=2, kraft_version=1)
    records, answer = bench.controller.handle(_update(("kraft.version", 1, 1)), context, 0)
    assert (records, answer.error_code, context.wanted_kraft_version) == ([], 0, None)
    context = ControllerContext(api_version=2, kraft_version=0)
    wanted = _update(("kraft.version", 1, 1), ("share.version", 9, 1))
    _, answer = bench.controller.handle(wanted, context, 0)
    assert (answer.error_code, context.wanted_kraft_version) == (95, None)


def test_a_static_quorum_does_not_ask_brokers_for_kraft_version() -> None:
    bench = ControllerBench(features={"metadata.version": 33}, config=make_config(kraft_version=0))
    shape = m.BrokerRegistrationRequest
    alone = [shape.Feature(name="metadata.version", min_supported_version=7,
                           max_supported_version=33)]  # fmt: skip
    assert bench.register(1, features=alone).error_code == 0
    dynamic = ControllerBench(features={"metadata.version": 33})
    assert dynamic.register(1, features=alone).error_code == 35
