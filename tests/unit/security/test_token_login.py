"""Tokens of an issuer: when they are replaced, what is asked again, over which TLS."""

from __future__ import annotations

import json
import math
import socket
import ssl
import threading
from pathlib import Path

import pytest

pytest.importorskip("cryptography")

from kwire.clock import SeededRandom
from kwire.config.errors import ConfigError
from kwire.network.http_request import ask
from kwire.protocol.errors import KafkaError
from kwire.security.sasl.oauthbearer import InvalidTokenError
from kwire.security.sasl.token_request import (
    ANSWER_BYTES_MAX,
    RETRY_S,
    Token,
    checked_token,
    refresh_at_ms,
    token_of_answer,
)
from kwire.security.sasl.token_settings import RefreshSettings, TokenSettings
from kwire.security.token_login import TokenLogin, fetch_token
from tests.support.certificates import Authority
from tests.support.token_cases import GOOD, token
from tests.support.token_endpoint import Asked, Reply, TokenEndpoint

HOUR_MS = 3_600_000
PLAIN = RefreshSettings()


@pytest.mark.parametrize(
    ("starts_ms", "expires_ms", "chance", "at_ms"),
    [
        (0, HOUR_MS, 0.0, 2_880_000),  # 0.8 of it
        (0, HOUR_MS, 1.0, 3_060_000),  # and the jitter
        (None, HOUR_MS, 0.0, 2_880_000),
        (-9 * HOUR_MS, HOUR_MS, 0.0, 60_000),  # 0.8 have passed: after the shortest period
        (0, 1_000_000, 1.0, 700_000),  # not in the last 300 s
        (0, 360_000, 0.0, 60_000),
        (0, 359_000, 0.0, 287_200),  # shorter than both: 0.8 of what is left
        (0, 4000, 0.5, 3300),
        (0, 0, 0.0, RETRY_S * 1000),
        (0, -5, 0.0, RETRY_S * 1000),
    ],
)
def test_when_a_token_is_replaced(
    starts_ms: int | None, expires_ms: int, chance: float, at_ms: int
) -> None:
    assert refresh_at_ms(Token("", starts_ms, expires_ms), 0, PLAIN, chance) == at_ms


@pytest.mark.parametrize(
    "settings",
    [
        RefreshSettings(window_factor=math.nan),
        RefreshSettings(window_factor=math.inf),
        RefreshSettings(window_factor=-1.0),
        RefreshSettings(window_jitter=50.0),
        RefreshSettings(min_period_s=-5, buffer_s=-5),
    ],
)
def test_no_setting_keeps_a_token_beyond_its_end(settings: RefreshSettings) -> None:
    at_ms = refresh_at_ms(Token("", 0, HOUR_MS), 0, settings, 1.0)
    assert 0 < at_ms < HOUR_MS


def test_attempts_end_when_their_time_is_over() -> None:
    waited: list[float] = []
    settings = TokenSettings("", "id", "secret", retry_ms=100, retry_max_ms=1000)
    with TokenEndpoint(lambda asked: Reply(503, "{}")) as issuer:
        settings = settings._replace(url=f"{issuer.url}/token")
        with pytest.raises(OSError, match="it answers 503"):
            fetch_token(settings, None, 0, b"", waited.append, lambda: sum(waited))
    assert [round(each, 3) for each in waited] == [0.1, 0.2, 0.4, 0.3]
    assert len(issuer.asked) == 5


@pytest.mark.parametrize("sign", ["\x01", "\n", " ", "é", "\x01auth=Bearer x"])
def test_a_token_says_nothing_but_itself_to_the_broker(sign: str) -> None:
    """What stands behind a token in the message would be taken for an extension."""
    with pytest.raises(InvalidTokenError):
        checked_token(f"{GOOD}{sign}x", TokenSettings(""))


def test_a_redirect_is_not_followed() -> None:
    def answer(asked: Asked) -> Reply:
        return Reply(302, "", (("Location", "/elsewhere"),))

    with TokenEndpoint(answer) as issuer:
        settings = TokenSettings(f"{issuer.url}/token", "id", "secret", retry_max_ms=0)
        with pytest.raises(OSError, match="it answers 302"):
            fetch_token(settings, None, 0, b"")
    assert [asked.path for asked in issuer.asked] == ["/token"]


def test_a_large_answer_is_not_read_to_its_end() -> None:
    large = json.dumps({"access_token": GOOD, "more": "x" * (4 * ANSWER_BYTES_MAX)})
    with TokenEndpoint(lambda asked: Reply(200, large)) as issuer:
        answer = ask(issuer.url, headers={}, bytes_max=ANSWER_BYTES_MAX)
    assert len(answer.body) == ANSWER_BYTES_MAX + 1
    with pytest.raises(InvalidTokenError, match="more than"):
        token_of_answer(answer.body)


def test_the_issuers_certificate_is_checked_by_the_trust_store_of_the_login_module(
    tmp_path: Path,
) -> None:
    authority = Authority()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.sign("issuer").write(tmp_path, "issuer"))
    (tmp_path / "authority.pem").write_text(authority.pem)
    options = (
        ("ssl.truststore.type", "PEM"),
        ("ssl.truststore.location", str(tmp_path / "authority.pem")),
    )
    body = json.dumps({"access_token": GOOD})
    with TokenEndpoint(lambda asked: Reply(200, body), context) as issuer:
        settings = TokenSettings(f"{issuer.url}/token", "id", "secret", retry_max_ms=0)
        untrusting, trusting = _login(settings), _login(settings._replace(tls=options))
        for login in (untrusting, trusting):
            login.renew()
    assert "TLS: the certificate is not trusted" in untrusting.failure
    assert not trusting.is_due
    with pytest.raises(ConfigError, match="nowhere"):
        _login(settings._replace(tls=(*options, ("ssl.truststore.location", "/nowhere.pem"))))


def test_a_token_that_has_expired_logs_in_nobody() -> None:
    now_ms = [0]
    login = TokenLogin(
        TokenSettings("http://x/token"), lambda: PLAIN, SeededRandom(1), lambda: now_ms[0]
    )
    with pytest.raises(KafkaError, match="no token has been got yet"):
        login()
    login.take(Token(token(sub="x", exp=60), None, 60_000))
    assert not login.is_due
    login()
    now_ms[0] = 60_000
    assert login.is_due
    with pytest.raises(KafkaError, match="the token has expired"):
        login()


def _login(settings: TokenSettings) -> TokenLogin:
    return TokenLogin(settings, lambda: PLAIN, SeededRandom(1), lambda: 0)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"hello\r\n\r\n",
        b"HTTP/1.1\r\n\r\n",
        b"HTTP/1.1 999999 x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7fffffff\r\nx",
        b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 1000 + b"\r\n{}",
        b"HTTP/1.1 200 OK\r\na: " + b"b" * 100_000 + b"\r\n\r\n{}",
        b"\x15\x03\x01\x00\x02\x02\x28",
    ],
)
def test_whatever_an_issuer_sends_is_a_reason_in_one_line(answer: bytes) -> None:
    def serve() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/token"
        login = _login(TokenSettings(url, "id", "secret", retry_max_ms=0))
        login.renew()
        thread.join()
    assert login.is_due
    assert login.failure
    assert "\n" not in login.failure
