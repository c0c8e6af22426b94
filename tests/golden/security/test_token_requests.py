"""What a login asks an issuer of tokens for, and what it makes of the answer: as Apache Kafka 4.4.

`token_requests.json` holds the cases of `tests/support/token_cases.py` played by
`TokenOracle.java`; `tests/differential/test_tokens_live.py` plays them anew.
"""

from __future__ import annotations

import json
import pathlib

import pytest

from kwire.clock import SystemClock, SystemRandom
from kwire.config.errors import ConfigError
from kwire.config.java_properties import VARIABLE
from kwire.security.client_settings import client_tokens
from tests.support.sasl import OAUTH_MODULE
from tests.support.token_cases import Allowed, results

DATA = pathlib.Path(__file__).parents[1] / "data" / "token_requests.json"
EARLIER = {"extension auth", "extension with a digit", "extension, bad value"}
"""Kafka asks for a token before it looks at the extensions."""
HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"


def test_tokens_are_asked_for_as_kafka_asks(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def play(cases: list[tuple[dict[str, str], dict[str, str]]], allowed: Allowed) -> list[bool]:
        prefix = "-Dorg.apache.kafka.sasl.oauthbearer.allowed"
        monkeypatch.setenv(VARIABLE, f"{prefix}.urls={allowed.urls} {prefix}.files={allowed.files}")
        return [_gives(settings, options) for settings, options in cases]

    recorded = json.loads(DATA.read_text())
    found = results(play, tmp_path)
    assert list(recorded) == sorted(found)
    for name in EARLIER:
        assert found[name]["asked"] == []
        found[name] = recorded[name] | {"outcome": found[name]["outcome"]}
    assert {name: found[name] for name in recorded if found[name] != recorded[name]} == {}


def _gives(settings: dict[str, str], options: dict[str, str]) -> bool:
    """Whether a client with these settings gets a token; what it says has no secret in it."""
    quoted = "".join(
        f' {name}="{value}"' if "\x01" not in value else f' {name}="\\001"'
        for name, value in options.items()
    )
    properties = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": f"{OAUTH_MODULE} required{quoted};",
        "sasl.login.callback.handler.class": HANDLER,
        **settings,
    }
    tokens = None
    try:
        tokens = client_tokens(properties, SystemRandom(), SystemClock().wall_ms)
        assert tokens is not None
    except ConfigError as error:
        shown = str(error)
    else:
        tokens.renew()
        shown = tokens.failure + repr(tokens) + repr(tokens.settings)
    assert "s3cret" not in shown
    if tokens is None:
        return False
    return not tokens.is_due
