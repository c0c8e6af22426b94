"""Signed tokens at a broker: keys by a file and by an address, which are allowed, and new keys."""

from __future__ import annotations

import http.server
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kwire.testing.cluster import Broker, free_ports, wait_for
from tests.support.issuer import Issuer
from tests.wire import Conn

ALLOWED = "-Dorg.apache.kafka.sasl.oauthbearer.allowed"


def options(url: str, sasl_port: int, **more: str) -> dict[str, str]:
    port = free_ports(1)[0]
    listeners = f"PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:{sasl_port}"
    return {
        "listeners": listeners,
        "advertised.listeners": listeners,
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": url,
        "sasl.oauthbearer.jwks.endpoint.refresh.ms": "500",
        "sasl.oauthbearer.expected.audience": "kwire",
        "sasl.oauthbearer.allow.unverified.issuer": "true",
        **more,
    }


def is_accepted(port: int, token: str) -> bool:
    with Conn(f"127.0.0.1:{port}") as client:
        assert client.send("sasl_handshake", 1, mechanism="OAUTHBEARER").error_code == 0
        data = f"n,,\x01auth=Bearer {token}\x01\x01".encode()
        answer = client.send("sasl_authenticate", 2, auth_bytes=data)
        assert answer.error_code == 0
        return answer.auth_bytes == b""


@pytest.fixture
def issuer() -> Issuer:
    return Issuer()


@pytest.fixture
def address(issuer: Issuer) -> Iterator[str]:
    """Where the keys of the issuer are."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/elsewhere":
                self.send_response(302)
                self.send_header("Location", "/keys")
                self.end_headers()
                return
            self.send_response(200)
            self.end_headers()
            self.wfile.write(issuer.jwks)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_keys_by_an_address_that_changes_them(issuer: Issuer, address: str) -> None:
    (port,) = free_ports(1)
    url = f"{address}/keys"
    environment = {"KAFKA_OPTS": f"-Xmx1g {ALLOWED}.urls={url}"}
    with Broker(options=options(url, port), environment=environment) as broker:
        assert is_accepted(port, issuer.token())
        assert not is_accepted(port, issuer.token(aud="other"))
        assert not is_accepted(port, issuer.token(exp=1))
        old = issuer.token()
        issuer.turn()
        wait_for(lambda: is_accepted(port, issuer.token()), "the new key is read")
        assert not is_accepted(port, old)
        assert "not accepted" in broker.log_text()
        assert old not in broker.log_text()


@pytest.mark.parametrize("allowed", ["urls=file://", "files="])
def test_keys_by_a_file(issuer: Issuer, tmp_path: Path, allowed: str) -> None:
    (port,) = free_ports(1)
    path = tmp_path / "keys.json"
    path.write_bytes(issuer.jwks)
    environment = {"KAFKA_OPTS": f"{ALLOWED}.{allowed}{path}"}
    with Broker(options=options(f"file://{path}", port), environment=environment):
        assert is_accepted(port, issuer.token())
        assert not is_accepted(port, Issuer().token())


def test_an_allowed_address_does_not_lead_elsewhere(issuer: Issuer, address: str) -> None:
    (port,) = free_ports(1)
    url = f"{address}/elsewhere"
    environment = {"KAFKA_OPTS": f"{ALLOWED}.urls={url}"}
    with Broker(options=options(url, port), environment=environment) as broker:
        assert not is_accepted(port, issuer.token())
        assert "the keys of tokens cannot be read" in broker.log_text()


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({}, "http://127.0.0.1:1/keys is not allowed"),
        ({"sasl.oauthbearer.jwks.endpoint.url": "file:///etc/passwd"}, "is not allowed"),
        ({"sasl.oauthbearer.jwks.endpoint.url": "ftp://x"}, "accepted are file:"),
        ({"sasl.oauthbearer.jwks.endpoint.url": ""}, "OAUTHBEARER needs"),
        ({"sasl.server.callback.handler.class": "com.example.Mine"}, "cannot be loaded"),
    ],
)
def test_cve_2025_27817_no_address_and_no_file_is_allowed_to_begin_with(
    changed: dict[str, str], told: str
) -> None:
    _ends_with(options("http://127.0.0.1:1/keys", free_ports(1)[0], **changed), told)


def test_an_audience_and_an_issuer_are_asked_for() -> None:
    url = "http://127.0.0.1:1/keys"
    allowed = {"org.apache.kafka.sasl.oauthbearer.allowed.urls": url}
    for name in ("expected.audience", "allow.unverified.issuer"):
        given = {**options(url, free_ports(1)[0]), **allowed}
        del given[f"sasl.oauthbearer.{name}"]
        _ends_with(given, f"sasl.oauthbearer.expected.{name.rpartition('.')[2]} is not set")


def _ends_with(given: dict[str, str], told: str) -> None:
    """The start ends in one line."""
    words = [word for name, value in given.items() for word in ("-o", f"{name}={value}")]
    ended = subprocess.run(
        [sys.executable, "-m", "kwire", "serve", "--ephemeral", *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode != 0
    assert told in ended.stderr
    assert ended.stderr.count("\n") == 1, ended.stderr
