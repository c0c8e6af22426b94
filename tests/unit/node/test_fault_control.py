"""The control API of faults: who may ask, what is refused, and how."""

from __future__ import annotations

import http.client
import http.server
import json
import socket
import threading
from collections.abc import Iterator, Mapping

import pytest

from kwire.config.broker_config import BrokerConfig
from kwire.config.errors import ConfigError
from kwire.faults.errors import FaultError
from kwire.faults.kinds import Given
from kwire.faults.machine import Faults
from kwire.faults.rules import parse_rule
from kwire.node.fault_client import FaultClient
from kwire.node.fault_control import BODY_BYTES_MAX, FaultControl, FaultSettings
from kwire.testing.loop_thread import LoopThread


class Stranger(http.server.BaseHTTPRequestHandler):
    """Answers JSON that is no fault's."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'["nothing of faults"]')

    def do_DELETE(self) -> None:
        self.send_response(404)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *given: object) -> None:
        """Say nothing."""


def test_another_server_is_named_in_one_line() -> None:
    with http.server.HTTPServer(("127.0.0.1", 0), Stranger) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        address = f"127.0.0.1:{server.server_port}"
        try:
            with pytest.raises(FaultError, match=f"{address} is no control API of faults"):
                FaultClient(address).standing()
            with pytest.raises(FaultError, match="HTTP 404"):
                FaultClient(address).clear()
        finally:
            server.shutdown()
            serving.join()


class Held:
    """Faults without a node."""

    def __init__(self) -> None:
        self.faults = Faults(1)

    async def add(self, given: Mapping[str, Given]) -> dict[str, Given]:
        return self.faults.add(parse_rule(given)).described()

    def remove(self, number: int) -> dict[str, Given]:
        return self.faults.remove(number).described()

    def clear(self) -> None:
        self.faults.clear()

    def standing(self) -> list[dict[str, Given]]:
        return [one.described() for one in self.faults.standing()]


def listening(token: str) -> Iterator[str]:
    thread = LoopThread("fault-control")
    thread.start()
    control = FaultControl(FaultSettings([("127.0.0.1", 0)], token), Held())
    thread.run(control.start())
    yield control.addresses[0]
    thread.loop.call_soon_threadsafe(control.stop)
    thread.close()


@pytest.fixture
def address() -> Iterator[str]:
    yield from listening("")


@pytest.fixture
def guarded() -> Iterator[str]:
    yield from listening("secret")


def ask(
    address: str, method: str, path: str, body: str | None = None, **headers: str
) -> tuple[int, str]:
    connection = http.client.HTTPConnection(address, timeout=10)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    if body is not None:
        named.setdefault("Content-Type", "application/json")
    connection.request(method, path, body, named)
    answer = connection.getresponse()
    told = json.loads(answer.read())
    connection.close()
    return answer.status, told.get("error", "")


def raw(address: str, *lines: str) -> bytes:
    """All that is answered to a head of these lines."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), 10) as client:
        client.sendall("\r\n".join([*lines, "", ""]).encode())
        answer = b""
        while piece := client.recv(4096):
            answer += piece
    return answer


def test_faults_are_added_listed_and_removed(address: str) -> None:
    client = FaultClient(address)
    assert client.add({"kind": "delay", "ms": "5", "api": "Fetch"})["id"] == 1
    client.add({"kind": "drop-reply", "times": 2})
    assert client.standing() == [
        {"id": 1, "kind": "delay", "api": "Fetch", "ms": 5, "hits": 0},
        {"id": 2, "kind": "drop-reply", "times": 2, "hits": 0},
    ]
    assert client.remove(1)["kind"] == "delay"
    with pytest.raises(FaultError, match="there is no fault 1; accepted: 2"):
        client.remove(1)
    client.clear()
    assert client.standing() == []


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "text"),
    [
        ("GET", "/", None, 404, "/faults"),
        ("PUT", "/faults", "{}", 405, "GET, POST, DELETE"),
        ("GET", "/faults/1", None, 405, "DELETE"),
        ("DELETE", "/faults/x", None, 404, "'x'"),
        ("DELETE", "/faults/7", None, 404, "there is no fault 7; accepted: none"),
        ("POST", "/faults", "{", 400, "no JSON object"),
        ("POST", "/faults", "[]", 400, "no JSON object"),
        ("POST", "/faults", "[" * 60_000, 400, "no JSON object"),
        ("POST", "/faults", "{}", 400, "there is no fault None; accepted: error"),
        ("POST", "/faults", '{"kind": "delay", "ms": {}}', 400, "ms={}"),
        ("POST", "/faults", '{"kind": "delay", "ms": 0}', 400, "ms=0"),
        ("POST", "/faults", " " * (BODY_BYTES_MAX + 1), 413, str(BODY_BYTES_MAX)),
    ],
)
def test_what_is_wrong_is_one_line(
    address: str, method: str, path: str, body: str | None, status: int, text: str
) -> None:
    found, error = ask(address, method, path, body)
    assert found == status
    assert text in error
    assert "\n" not in error


def test_pages_of_browsers_are_refused(address: str) -> None:
    assert ask(address, "GET", "/faults", Origin="http://evil.test")[0] == 403
    assert ask(address, "GET", "/faults", Host="evil.test:80")[0] == 403
    assert ask(address, "POST", "/faults", "{}", Content_Type="text/plain")[0] == 400
    assert ask(address, "GET", "/faults", Host="localhost:80")[0] == 200


def test_a_token_is_asked_for(guarded: str) -> None:
    assert ask(guarded, "GET", "/faults")[0] == 401
    assert ask(guarded, "GET", "/faults", Authorization="Bearer other")[0] == 401
    assert ask(guarded, "GET", "/faults", Authorization="Basic secret")[0] == 401
    assert ask(guarded, "GET", "/faults", Authorization="bearer secret")[0] == 200
    assert FaultClient(guarded, "secret").standing() == []
    with pytest.raises(FaultError, match=r"kwire\.fault\.token is needed"):
        FaultClient(guarded).standing()


@pytest.mark.parametrize(
    ("listeners", "token", "named"),
    [
        ("0.0.0.0:9097", None, "0.0.0.0:9097"),
        ("10.0.0.1:9097", None, "kwire.fault.token"),
        ("[::]:9097", None, ":::9097"),
        ("127.0.0.1", None, "expected HOST:PORT"),
        (":9097", None, "expected HOST:PORT"),
        ("127.0.0.1:x", None, "expected HOST:PORT"),
        ("127.0.0.1:70000", None, "expected HOST:PORT"),
    ],
)
def test_settings_that_cannot_be_right(listeners: str, token: str | None, named: str) -> None:
    with pytest.raises(ConfigError) as refused:
        FaultSettings.of(BrokerConfig.load(overrides={"kwire.fault.listeners": listeners}))
    assert named in str(refused.value)


def test_beyond_loopback_with_a_token() -> None:
    overrides = {"kwire.fault.listeners": "0.0.0.0:1,[::1]:2", "kwire.fault.token": "t"}
    settings = FaultSettings.of(BrokerConfig.load(overrides=overrides))
    assert settings == FaultSettings([("0.0.0.0", 1), ("::1", 2)], "t")


def test_an_address_that_is_none() -> None:
    with pytest.raises(FaultError, match=r"'9097' is no address; accepted: HOST:PORT"):
        FaultClient("9097")


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1.example:{port}", "127.example:{port}", "localhost.example:{port}"),
        *(
            "example",
            "example:{port}",
            "[::1].example:{port}",
            "127.0.0.1@example",
            "0.0.0.0:{port}",
        ),
    ],
)
def test_a_name_that_only_looks_near_is_refused(address: str, host: str) -> None:
    """A page could have its own name lead to this machine."""
    port = address.rpartition(":")[2]
    answer = raw(address, "GET /faults HTTP/1.1", f"Host: {host.format(port=port)}")
    assert answer.startswith(b"HTTP/1.1 403 ")


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost", "[::1]:{port}", "127.9.9.9", ""])
def test_a_name_of_this_machine_is_answered(address: str, host: str) -> None:
    port = address.rpartition(":")[2]
    answer = raw(address, "GET /faults HTTP/1.1", f"Host: {host.format(port=port)}")
    assert answer.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("header", ["Origin: null", "Sec-Fetch-Site: same-site"])
def test_what_a_browser_adds_is_refused(address: str, header: str) -> None:
    answer = raw(address, "GET /faults HTTP/1.1", "Host: localhost", header)
    assert answer.startswith(b"HTTP/1.1 403 ")


@pytest.mark.parametrize(
    "headers",
    [
        ("Host: example", "Host: localhost"),
        ("Host: localhost", "Content-Length: 0", "Content-Length: 2"),
    ],
)
def test_a_header_that_comes_twice_is_refused(address: str, headers: tuple[str, ...]) -> None:
    answer = raw(address, "GET /faults HTTP/1.1", *headers)
    assert answer.startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("host", ["127.0.0.1.example", "127.example", "1270.0.0.1"])
def test_a_listener_whose_name_only_looks_near_needs_a_token(host: str) -> None:
    with pytest.raises(ConfigError, match=r"kwire\.fault\.token"):
        FaultSettings.of(BrokerConfig.load(overrides={"kwire.fault.listeners": f"{host}:9097"}))


@pytest.mark.parametrize("address", ["127.0.0.1:99999", "127.0.0.1:0", "a\nb:1"])
def test_an_address_that_no_socket_takes_is_none(address: str) -> None:
    with pytest.raises(FaultError, match="is no address; accepted: HOST:PORT"):
        FaultClient(address)


@pytest.mark.parametrize("token", ["", "a\r\nX: b", "\u00fc"])
def test_a_token_that_cannot_be_sent_is_refused_and_not_told(token: str) -> None:
    with pytest.raises(FaultError) as refused:
        FaultClient("127.0.0.1:1", token)
    assert str(refused.value).startswith("the token is no text of printable ASCII")


def test_a_number_beyond_all_floats_is_refused(address: str) -> None:
    body = f'{{"kind": "delay", "ms": 5, "probability": {"9" * 400}}}'
    status, error = ask(address, "POST", "/faults", body)
    assert (status, error.partition("=")[0]) == (400, "probability")
    assert len(error) < 200
