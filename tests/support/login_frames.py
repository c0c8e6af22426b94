"""Frames of clients that log in, and a mechanism of two tokens, for tests of the machine."""

from __future__ import annotations

from kwire.protocol import frame
from kwire.protocol import messages as m
from kwire.protocol.structs import Message, Request
from kwire.security.sasl.mechanisms import Answer, Identity

RIGHT, WRONG = b"\0alice\0hunter2", b"\0alice\0hunter3"


class TwoSteps:
    """A mechanism of two tokens; what proves it is good until 5,000 ms."""

    def __init__(self) -> None:
        self._begun = False

    def evaluate(self, token: bytes, wall_ms: int) -> Answer:
        if not self._begun:
            self._begun = True
            return Answer(b"go on")
        return Answer(b"done", Identity("User:alice", True, 5000))


def frame_of(request: Request[Message], version: int) -> memoryview:
    parts = frame.encode_request(int(type(request).API_KEY), version, 7, "c", request)
    return memoryview(b"".join(bytes(part) for part in parts)[4:])


VERSIONS = frame_of(m.ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3)
UNNAMED = frame_of(m.ApiVersionsRequest(client_software_name="-", client_software_version="1"), 3)
TOO_HIGH = memoryview(VERSIONS.tobytes()[:2] + b"\0\x63" + VERSIONS.tobytes()[4:])
METADATA = frame_of(m.MetadataRequest(topics=[]), 9)
PRODUCE = frame_of(m.ProduceRequest(acks=-1, timeout_ms=1), 9)


def handshake(mechanism: str = "PLAIN", version: int = 1) -> memoryview:
    return frame_of(m.SaslHandshakeRequest(mechanism=mechanism), version)


def token(data: bytes, version: int = 2) -> memoryview:
    return frame_of(m.SaslAuthenticateRequest(auth_bytes=data), version)
