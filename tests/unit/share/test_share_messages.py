"""The persister's types go through the wire of every version, and come back."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.protocol.errors import ErrorCode
from kwire.share import messages
from kwire.share.persister import (
    InitializePartition,
    PartitionEpoch,
    PartitionId,
    PartitionResult,
    PartitionState,
    PartitionSummary,
    StateBatch,
    WritePartition,
)

A, B = b"a" * 16, b"b" * 16
BATCHES = (StateBatch(5, 9, 2, 1), StateBatch(11, 11, 0, 3))
EPOCHS = [PartitionEpoch(A, 0, 1), PartitionEpoch(A, 2, 3), PartitionEpoch(B, 1, 4)]
ERROR = PartitionResult(B, 0, ErrorCode.FENCED_STATE_EPOCH, "text")


def through(message: Any, version: int) -> Any:
    return type(message).decode(message.encode(version), version)


@pytest.mark.parametrize(
    ("name", "versions", "asked", "results"),
    [
        ("initialize", (0,), [InitializePartition(A, 1, 2, -1)], [PartitionResult(A, 1), ERROR]),
        (
            "read",
            (0,),
            EPOCHS,
            [PartitionState(A, 0, 0, None, 4, 5, BATCHES), PartitionState(A, 1, 42, "no", 0, 0)],
        ),
        ("write", (1,), [WritePartition(A, 1, 2, 3, 4, 5, list(BATCHES))], [ERROR]),
        ("write", (0,), [WritePartition(A, 1, 2, 3, 4, -1, [])], [ERROR]),
        ("delete", (0,), [PartitionId(A, 1), PartitionId(B, 2)], [ERROR]),
        ("summary", (1,), EPOCHS, [PartitionSummary(A, 1, 0, None, 2, 3, 4, 5)]),
        ("summary", (0,), EPOCHS, [PartitionSummary(A, 1, 0, None, 2, 3, 4, -1)]),
    ],
)
def test_what_is_asked_and_answered(
    name: str, versions: tuple[int, ...], asked: list[Any], results: list[Any]
) -> None:
    for version in versions:
        request = getattr(messages, f"{name}_request")("g", asked)
        assert getattr(messages, f"{name}_asked")(through(request, version)) == asked
        response = getattr(messages, f"{name}_response")(results)
        assert getattr(messages, f"{name}_results")(through(response, version)) == results


def test_a_partition_that_is_named_twice_is_answered_once_with_its_last_result() -> None:
    response = messages.write_response([ERROR, PartitionResult(A, 1), PartitionResult(B, 0)])
    assert messages.write_results(response) == [PartitionResult(B, 0), PartitionResult(A, 1)]
