"""Values from files, directories and the environment are what Apache Kafka 4.4 puts in."""

from __future__ import annotations

import pathlib

import pytest

from kwire.config.broker_config import BrokerConfig
from kwire.config.errors import ConfigError
from kwire.config.providers import ProviderError, resolve_settings
from tests.support.provider_cases import ENVIRONMENT, in_directory, recorded, write_files

CASES = recorded()
NEEDED = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
    "controller.quorum.bootstrap.servers": "localhost:9093",
}
# Settings that kwire refuses by their names; providers give them their values all the same.
REFUSED_NAMES = (
    "password",
    "unknown_setting",
    "listener_prefixed",
    "automatic",
)
# Case -> what is in kwire's line instead of Kafka's text.
OTHER_WORDS = {
    # The value is not told: it may be a secret.
    "int_bad": "Invalid value ${file:@DIR@/a.properties:k} for configuration num.partitions;",
    # Java's exceptions.
    "bad_escape": "Could not read properties from file @DIR@/badesc.properties",
    "nul": "Could not read properties from file a",
    "wrong_class": "Could not load config provider class or one of its dependencies",
    "env_badpattern": "config.providers.env.param.allowlist.pattern: '[' is not a regular expres",
}
# Java's own dialect of patterns: refused (possessive, look-behind), or read as RE2 does.
DIALECT = {"env_javapattern": "is not a regular expression", "provider_param_placeholder": None}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("providers").resolve()
    write_files(path)
    return path


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, directory: pathlib.Path) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_SUCH_VARIABLE", raising=False)
    monkeypatch.chdir(directory)


@pytest.mark.parametrize("case", [case for case in CASES if case not in DIALECT])
def test_a_setting_is_resolved_or_refused_as_kafka_does(case: str, directory: pathlib.Path) -> None:
    settings = dict(in_directory(CASES[case]["settings"], directory))
    answer = in_directory(CASES[case]["answer"], directory)
    if "values" in answer:
        if case not in REFUSED_NAMES:
            config = BrokerConfig.load({**NEEDED, **settings}, developer=False)
            assert {name: config.texts[name] for name in settings} == answer["values"]
        assert {n: resolve_settings(settings).texts[n] for n in settings} == answer["values"]
        return
    with pytest.raises(ConfigError) as refusal:
        BrokerConfig.load({**NEEDED, **settings}, developer=False)
    expected = in_directory(OTHER_WORDS.get(case, answer["error"]), directory)
    assert expected in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("case", DIALECT)
def test_patterns_are_those_of_re2(case: str, directory: pathlib.Path) -> None:
    settings = dict(in_directory(CASES[case]["settings"], directory))
    words = DIALECT[case]
    if words is None:
        assert resolve_settings(settings).texts["broker.rack"] == "${env:HOME}"
        return
    with pytest.raises(ConfigError, match=words):
        resolve_settings(settings)


def test_a_provider_says_what_kafka_says_and_why() -> None:
    with pytest.raises(ConfigError, match=r"rack: .* /no/such: No such file or directory"):
        resolve_settings(dict(CASES["plain"]["settings"]) | {"broker.rack": "${file:/no/such:k}"})
    assert ProviderError("a", "b", "c").whole == "c: a: b"
