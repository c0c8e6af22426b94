"""Have the controller scenario with Apache Kafka and write down its answers and its metadata log.

    run-kafka.sh start ... --prop process.roles=controller --prop listeners=CONTROLLER://HOST:PORT
    python -m tests.golden.kraft.record_answers HOST:PORT METADATA_LOG_DIRECTORY VARIANT

VARIANT names how Kafka was formatted: `default`, `no-elr` (with the feature
eligible.leader.replicas.version=0) or `3.9` (--release-version 3.9-IV0). Kafka must be one node,
controller only, with `broker.session.timeout.ms` long enough for the whole dialogue and the
StandardAuthorizer with ANONYMOUS as a super user. Writes
`tests/golden/data/controller_answers_VARIANT.json.gz`: the steps (API, version, request and
response body as hex) and the values of the log's data records.
"""

from __future__ import annotations

import gzip
import json
import pathlib
import socket
import struct
import sys
import time
from typing import Any

from kwire.protocol import frame
from kwire.protocol.records import iterate_headers, read_batch
from tests.support.controller_scenario import scenario

DATA = pathlib.Path(__file__).parents[1] / "data"


class Connection:
    """One blocking connection."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=30)
        self._correlation_id = 0

    def call(self, version: int, request: Any) -> Any:
        self._correlation_id += 1
        key = type(request).API_KEY
        parts = frame.encode_request(key, version, self._correlation_id, "recorder", request)
        self._socket.sendall(b"".join(parts))
        size = struct.unpack(">i", self._read(4))[0]
        return frame.decode_response(key, version, self._read(size))[1]

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            if not part:
                raise ConnectionError("the node closed the connection")
            data += part
        return data


def metadata_log(directory: pathlib.Path) -> list[str]:
    """The values of the data records of a metadata log, as hex."""
    values = []
    for file in sorted(directory.glob("*.log")):
        buffer = file.read_bytes()
        for position, header in iterate_headers(buffer):
            if not header.is_control:
                values += [bytes(r.value or b"").hex() for r in read_batch(buffer, position)]
    return values


def main() -> None:
    connection = Connection(sys.argv[1])
    steps = []
    dialogue = scenario()
    version, request = next(dialogue)
    while True:
        try:
            response = connection.call(version, request)
        except ConnectionError:
            print(f"no answer to version {version} of {request}", file=sys.stderr)
            raise
        steps.append(
            {
                "api": type(request).NAME.removesuffix("Request"),
                "version": version,
                "request": request.encode(version).hex(),
                "response": response.encode(version).hex(),
            }
        )
        try:
            version, request = dialogue.send(response)
        except StopIteration:
            break
    # The last answers came after their records were committed; give the files a moment.
    time.sleep(1)
    recorded = {"steps": steps, "log": metadata_log(pathlib.Path(sys.argv[2]))}
    target = DATA / f"controller_answers_{sys.argv[3]}.json.gz"
    with gzip.GzipFile(target, "wb", mtime=0) as file:
        file.write(json.dumps(recorded, separators=(",", ":")).encode())
    print(f"{len(steps)} steps, {len(recorded['log'])} records")


if __name__ == "__main__":
    main()
