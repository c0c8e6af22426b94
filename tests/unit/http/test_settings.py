"""`http.listeners` and its relatives: what is accepted, and the one line of what is not."""

from __future__ import annotations

import pytest

from kwire.config.broker_config import BrokerConfig
from kwire.config.errors import ConfigError
from kwire.http.settings import HttpSettings

BUILT = ("metrics", "health", "registry", "rest")
BEYOND = "http.unauthenticated.beyond.loopback.enable"


def settings(*, by_default: bool = False, **given: str) -> HttpSettings:
    """Of settings whose dots are underscores here."""
    texts = {name.replace("_", "."): text for name, text in given.items()}
    return HttpSettings(BrokerConfig.load(overrides=texts), by_default=by_default)


def refusal(**given: str) -> str:
    with pytest.raises(ConfigError) as caught:
        settings(**given)
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_nothing_is_served_by_itself() -> None:
    assert settings().listeners == []


def test_the_default_is_the_first_free_port_of_loopback() -> None:
    (listener,) = settings(by_default=True).listeners
    assert (listener.name, listener.host, listener.ports[0]) == ("http", "127.0.0.1", 8080)
    assert len(listener.ports) > 1


def test_names_addresses_and_what_they_serve() -> None:
    found = settings(
        http_listeners="http://localhost:8080,probes=http://[::1]:0",
        http_listener_probes_serves="health",
    ).listeners
    assert [(one.name, one.host, one.ports[0], one.serves) for one in found] == [
        ("http", "localhost", 8080, BUILT),
        ("probes", "::1", 0, ("health",)),
    ]


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ("127.0.0.1:8080", "expected [NAME=]http://HOST:PORT"),
        ("http://127.0.0.1", "expected [NAME=]http://HOST:PORT"),
        ("http://127.0.0.1:70000", "expected [NAME=]http://HOST:PORT"),
        ("http://127.0.0.1:8080/path", "expected [NAME=]http://HOST:PORT"),
        ("ftp://127.0.0.1:8080", "expected [NAME=]http://HOST:PORT"),
        ("http://::1:8080", "expected [NAME=]http://HOST:PORT"),
        ("https://127.0.0.1:8080", "needs ssl.keystore.location"),
        ("A=http://127.0.0.1:8080", "a name has small letters"),
        ("http://127.0.0.1:1,http://127.0.0.1:2", "two listeners are called http"),
        ("a=http://127.0.0.1:1,b=http://127.0.0.1:1", "two listeners have port 1"),
        ("http://0.0.0.0:8080", BEYOND),
        ("http://:8080", BEYOND),
        ("http://broker.example:8080", BEYOND),
    ],
)
def test_a_wrong_listener_is_one_line(value: str, named: str) -> None:
    text = refusal(http_listeners=value)
    assert named in text
    assert "http.listeners" in text


def test_beyond_loopback_when_told_so() -> None:
    found = settings(http_listeners="http://0.0.0.0:8080", **{BEYOND.replace(".", "_"): "true"})
    assert found.listeners[0].host == "0.0.0.0"


@pytest.mark.parametrize(
    ("setting", "value", "named"),
    [
        ("http_listener_http_serves", "health,heatlh", "expected some of"),
        ("http_listener_other_serves", "health", "NAME one of http.listeners (http)"),
        ("http_listener_http_servs", "health", "NAME one of http.listeners (http)"),
    ],
)
def test_an_unknown_purpose_or_listener_is_one_line(setting: str, value: str, named: str) -> None:
    text = refusal(http_listeners="http://127.0.0.1:8080", **{setting: value})
    assert named in text


def test_callers_log_in_where_there_is_sasl() -> None:
    given = {
        "listeners": "PLAINTEXT://:9092,SASL_PLAINTEXT://:9093",
        "http.listeners": "http://0.0.0.0:8080",
        "http.authentication": "basic",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN",
    }
    logins = HttpSettings(BrokerConfig.load(overrides=given)).logins
    assert logins == {"basic": ("SASL_PLAINTEXT", ["PLAIN", "SCRAM-SHA-512"], False)}


def test_each_scheme_logs_in_at_the_first_listener_that_has_its_mechanism() -> None:
    given = {
        "listeners": "A://:9092,B://:9093,C://:9094",
        "listener.security.protocol.map": "A:SASL_SSL,B:SASL_SSL,C:SASL_PLAINTEXT",
        "inter.broker.listener.name": "C",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.a.ssl.client.auth": "required",
        "listener.name.b.sasl.enabled.mechanisms": "OAUTHBEARER",
        "http.listeners": "http://0.0.0.0:8080",
        "http.authentication": "bearer,basic",
        "sasl.enabled.mechanisms": "PLAIN",
    }
    logins = HttpSettings(BrokerConfig.load(overrides=given)).logins
    assert logins == {"bearer": ("B", ["OAUTHBEARER"], True), "basic": ("C", ["PLAIN"], False)}


@pytest.mark.parametrize("value", ["digest", "none,basic", "bearer"])
def test_an_authentication_that_cannot_be_is_one_line(value: str) -> None:
    text = refusal(http_listeners="http://127.0.0.1:8080", http_authentication=value)
    assert "http.authentication" in text


def test_callers_that_cannot_log_in_anywhere_are_one_line() -> None:
    text = refusal(http_listeners="http://127.0.0.1:8080", http_authentication="basic")
    assert "SASL_PLAINTEXT" in text


def test_an_unknown_purpose_for_all_is_refused_as_kafka_refuses_lists() -> None:
    assert "http.serves" in refusal(http_serves="nonsense")


def test_a_purpose_that_is_not_built_yet_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """All five may stand in a configuration, and what names one alone serves nothing else."""
    found = settings(
        http_listeners="a=http://127.0.0.1:1,b=http://127.0.0.1:2",
        http_listener_a_serves="metrics,health,registry,rest,console",
        http_listener_b_serves="console",
    ).listeners
    assert [one.serves for one in found] == [BUILT, ()]
    assert "http.listener.a.serves: console is not built yet, and not served" in caplog.messages
