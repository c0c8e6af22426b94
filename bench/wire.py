"""Cost of the wire format on the hot path: `python bench/wire.py [--json FILE]`.

Two shapes that a busy broker sees, each with 12 partitions of one topic and one batch of 16 KiB a
partition: the envelope of a Produce request decoded, a Fetch response encoded. Every figure is
the best of many rounds in microseconds for one message, because a busy machine only ever adds to
it; the median is beside it. The goals are those of the project: 4 us each.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from itertools import repeat
from typing import Any

from kwire.protocol import frame
from kwire.protocol import messages as m

PARTITIONS = 12
RECORDS = bytes(16 * 1024)
TOPIC_ID = bytes(range(16))
GOAL_US = 4.0


def produce_envelope(version: int) -> bytes:
    """A Produce request as a client sends it."""
    cls = m.ProduceRequest
    partitions = [
        cls.PartitionProduceData(index=index, records=RECORDS) for index in range(PARTITIONS)
    ]
    topic = cls.TopicProduceData(partition_data=partitions)
    if version >= 13:
        topic.topic_id = TOPIC_ID
    else:
        topic.name = "events"
    request: bytes = cls(acks=-1, timeout_ms=30000, topic_data=[topic]).encode(version)
    return request


def fetch_response(version: int) -> Any:
    """A Fetch response as a broker builds it."""
    cls = m.FetchResponse
    view = memoryview(RECORDS)
    partitions = [
        cls.PartitionData(
            partition_index=index,
            high_watermark=1000000 + index,
            last_stable_offset=1000000 + index,
            log_start_offset=0,
            aborted_transactions=None,
            records=[view],
        )
        for index in range(PARTITIONS)
    ]
    topic = cls.FetchableTopicResponse(partitions=partitions)
    if version >= 13:
        topic.topic_id = TOPIC_ID
    else:
        topic.topic = "events"
    return cls(session_id=7, responses=[topic])


def cost_us(
    function: Callable[..., Any], *arguments: Any, rounds: int = 400, calls: int = 300
) -> dict[str, float]:
    """Microseconds for one call: the best round and the median of the rounds."""
    for _ in repeat(None, calls):
        function(*arguments)
    figures = []
    for _ in range(rounds):
        start = time.perf_counter_ns()
        for _ in repeat(None, calls):
            function(*arguments)
        figures.append((time.perf_counter_ns() - start) / calls / 1000)
    return {"best_us": min(figures), "median_us": statistics.median(figures)}


def measure() -> dict[str, dict[str, float]]:
    """Every case by its name."""
    results = {}
    decode = m.ProduceRequest.decode_from
    for version in (9, 12, 13):
        view = memoryview(bytearray(produce_envelope(version)))
        results[f"Produce v{version} envelope, decode"] = cost_us(decode, view, 0, version)
    for version in (12, 13, 16, 18):
        response = fetch_response(version)
        results[f"Fetch v{version} response, encode"] = cost_us(response.encode_parts, version)
    response = fetch_response(16)
    results["Fetch v16 response, frame"] = cost_us(frame.encode_response, 1, 16, 1, response)
    results["Fetch v16 response, build and encode"] = cost_us(
        lambda: fetch_response(16).encode_parts(16)
    )
    header = frame.encode_request(0, 9, 1, "producer-1", m.ProduceRequest())[0][4:]
    results["request header, parse"] = cost_us(frame.parse_request_header, header)
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", help="also write the figures to this file")
    options = parser.parse_args()
    results = measure()
    for name, figures in results.items():
        note = ""
        if name.endswith(("decode", "encode")) and "build" not in name:
            note = "" if figures["best_us"] <= GOAL_US else f"  above the goal of {GOAL_US} us"
        print(f"{name:40} {figures['best_us']:7.2f} us  median {figures['median_us']:7.2f}{note}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
