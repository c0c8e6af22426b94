"""A small Kafka client for simulated hosts: one connection, requests by message, in order.

It draws no random numbers and reads no clock but its loop's, so what it does is part of the
history. Real clients run on a simulated host as well; this one is for programs that want to say
exactly which request goes out.
"""

from __future__ import annotations

import asyncio
import struct
from typing import Any, TypeVar

from kwire.protocol import frame
from kwire.protocol.records import Record, build_batch, read_records
from kwire.protocol.structs import Buffer, Message, Request

Response = TypeVar("Response", bound=Message)

_SIZE = struct.Struct(">i")


class SimulatedClient:
    """A connection to a broker. Raises OSError and asyncio.IncompleteReadError as streams do."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._correlation_id = 0

    @classmethod
    async def connect(cls, host: str, port: int) -> SimulatedClient:
        return cls(*await asyncio.open_connection(host, port))

    async def ask(self, request: Request[Response], version: int | None = None) -> Response:
        """Send a request at a version (the highest by default) and return its response."""
        at = request.MAX_VERSION if version is None else version
        self.send(self.encoded(request, at))
        response: Response = await self.receive(request.API_KEY, at)
        return response

    async def receive(self, api_key: int, version: int) -> Any:
        """The response to the last request that was sent."""
        (size,) = _SIZE.unpack(await self._reader.readexactly(4))
        body = await self._reader.readexactly(size)
        correlation_id, response = frame.decode_response(api_key, version, memoryview(body))
        if correlation_id != self._correlation_id:
            raise AssertionError(f"answer {correlation_id} to request {self._correlation_id}")
        return response

    def encoded(self, request: Request[Message], version: int) -> bytes:
        """The next request's frame, to be sent."""
        self._correlation_id += 1
        parts = frame.encode_request(
            request.API_KEY, version, self._correlation_id, "simulated", request
        )
        return b"".join(parts)

    @property
    def socket(self) -> Any:
        """The socket, on a loop that has any."""
        return self._writer.get_extra_info("socket")

    def send(self, data: bytes) -> None:
        """Send bytes and wait for nothing."""
        self._writer.write(data)

    def close(self) -> None:
        self._writer.close()


def batch_of(values: list[bytes], **options: Any) -> bytearray:
    """A record batch of values; `options` as `build_batch` takes them."""
    return build_batch(
        [
            Record(offset=number, timestamp=0, key=None, value=value, headers=[])
            for number, value in enumerate(values)
        ],
        **options,
    )


def values_of(records: Buffer | None) -> list[tuple[int, bytes | None]]:
    """(offset, value) of each record in fetched bytes."""
    return [(record.offset, record.value) for record in read_records(records or b"")]
