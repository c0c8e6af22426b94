"""Config providers: what is bounded, what is never told, and where a node takes settings from."""

from __future__ import annotations

import os
import pathlib

import pytest

from kwire.cli import format as format_command
from kwire.cli.serve import load_config
from kwire.cli.serve_arguments import ServeArguments
from kwire.config.broker_config import BrokerConfig
from kwire.config.dynamic import RESOURCE_BROKER, DynamicConfig
from kwire.config.errors import ConfigError
from kwire.config.providers import (
    DIRECTORY_CLASS,
    ENVIRONMENT_CLASS,
    FILE_CLASS,
    SECRET_BYTES_MAX,
    placeholders,
    resolve_settings,
    without,
)
from kwire.config.validate_broker import validate_broker_configs
from kwire.protocol.errors import ErrorCode, KafkaError

PROVIDERS = {
    "config.providers": "file,env,dir",
    "config.providers.file.class": FILE_CLASS,
    "config.providers.env.class": ENVIRONMENT_CLASS,
    "config.providers.dir.class": DIRECTORY_CLASS,
}
SECRET = "correct-horse-battery"


def resolved(text: str) -> str:
    return resolve_settings({**PROVIDERS, "broker.rack": text}).texts["broker.rack"]


def test_placeholders_are_found_in_time_that_grows_with_the_text() -> None:
    """A search with Kafka's pattern takes time with the fourth power of this text's length."""
    assert list(placeholders("${:" * 100_000)) == []
    found = list(placeholders("${a}${b:c}${d:e:f:g}${h"))
    assert [one[2:] for one in found] == [("b", "", "c"), ("d", "e", "f:g")]


def test_a_file_is_read_up_to_its_bound(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"x" * SECRET_BYTES_MAX)
    assert len(resolved(f"${{dir:{tmp_path}:secret}}")) == SECRET_BYTES_MAX
    with pytest.raises(ConfigError, match=f"a value of more than {SECRET_BYTES_MAX} characters"):
        resolved(f"${{dir:{tmp_path}:secret}}" * 2)
    secret.write_bytes(b"x" * (SECRET_BYTES_MAX + 1))
    with pytest.raises(ConfigError, match=f"it is larger than {SECRET_BYTES_MAX} bytes"):
        resolved(f"${{dir:{tmp_path}:secret}}")
    monkeypatch.setattr("kwire.config.providers.MAX_FILE_BYTES", 10)
    (tmp_path / "p").write_bytes(b"k=3456789\n")
    assert resolved(f"${{file:{tmp_path}/p:k}}") == "3456789"
    (tmp_path / "p").write_bytes(b"k=34567890\n")
    with pytest.raises(ConfigError, match="it is larger than 10 bytes"):
        resolved(f"${{file:{tmp_path}/p:k}}")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_that_nobody_writes_to_is_not_waited_for(tmp_path: pathlib.Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match=r"Could not read properties from file .*: it is no file"):
        resolved(f"${{file:{tmp_path}/pipe:k}}")
    assert resolved(f"${{dir:{tmp_path}:pipe}}") == f"${{dir:{tmp_path}:pipe}}"


@pytest.mark.parametrize(
    "name",
    [
        "num.partitions",
        "log.cleanup.policy",
        "ssl.provider",
        "log.segment.byte",
        "compression.typo",
        "log.message.timestamp.type",
    ],
)
def test_a_refusal_does_not_tell_what_a_provider_gave(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", SECRET)
    with pytest.raises(ConfigError) as refusal:
        BrokerConfig.load({**PROVIDERS, name: "a${env:SECRET}"})
    assert name in str(refusal.value)
    assert SECRET not in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("listeners", "${env:SECRET}"),
        ("advertised.listeners", "PLAINTEXT://${env:SECRET}"),
        ("listener.security.protocol.map", "A:${env:SECRET}"),
        ("inter.broker.listener.name", "${env:SECRET}"),
        ("cordoned.log.dirs", "a,${env:SECRET}"),
        ("max.connections.per.ip.overrides", "h:${env:SECRET}"),
        ("max.connections.per.ip.overrides", "${env:ADDRESS}"),
        ("group.consumer.assignors", "uniform,${env:SECRET}"),
        ("replica.selector.class", "${env:SECRET}"),
    ],
)
def test_a_combination_is_refused_without_telling_what_a_provider_gave(
    name: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ADR 8 promised it; only values that are wrong by themselves were kept to themselves."""
    monkeypatch.setenv("SECRET", SECRET)
    monkeypatch.setenv("ADDRESS", f"h:{SECRET}")
    with pytest.raises(ConfigError) as refusal:
        BrokerConfig.load({**PROVIDERS, name: text})
    assert name in str(refusal.value)
    assert SECRET not in str(refusal.value).lower()


def test_a_refusal_without_what_providers_gave_still_says_which_setting() -> None:
    told = "Invalid value PLAINTEXT://h1:9092 for configuration log.dirs: /srv/log is not there"
    given = ("PLAINTEXT://h1.example:9092", "log", "/srv/log", "9092")
    assert without(told, given) == told.replace("/srv/log", "[hidden]")


def test_a_warning_does_not_tell_what_a_provider_gave(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", SECRET)
    monkeypatch.setenv("THREADS", "17")
    config = BrokerConfig.load(
        {
            **PROVIDERS,
            "num.io.threads": "${env:THREADS}",
            "broker.rack": "${env:SECRET}${env:NO}",
            "of.an.application": "${env:SECRET}",
        }
    )
    assert config["num.io.threads"] == 17
    assert config["broker.rack"] == f"{SECRET}${{env:NO}}"
    warned = "\n".join(config.warnings)
    assert "num.io.threads=${env:THREADS} is accepted without effect" in warned
    assert "broker.rack keeps ${env:NO}: no config provider knows a value" in warned
    assert "of.an.application is no setting" in warned
    assert SECRET not in warned
    assert "17" not in warned


def test_provider_settings_without_effect_are_told() -> None:
    config = BrokerConfig.load(
        {
            "config.providers": "vault,env",
            "config.providers.env.class": ENVIRONMENT_CLASS,
            "config.providers.env.param.allowlist.pattern": "KWIRE_.*",
            "config.providers.env.param.allowed.paths": "/etc",
            "config.providers.file.class": FILE_CLASS,
        }
    )
    unread = "is without effect: no provider in config.providers reads it"
    assert config.warnings == [
        "config.providers: 'vault' is left out, as config.providers.vault.class is not set",
        f"config.providers.env.param.allowed.paths {unread}",
        f"config.providers.file.class {unread}",
    ]


def test_the_command_line_and_the_environment_may_hold_placeholders(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rack").write_text("r1")
    monkeypatch.setenv("KAFKA_CONFIG_PROVIDERS", "dir")
    monkeypatch.setenv("KAFKA_CONFIG_PROVIDERS_DIR_CLASS", DIRECTORY_CLASS)
    monkeypatch.setenv("KAFKA_MESSAGE_MAX_BYTES", f"${{dir:{tmp_path}:size}}")
    (tmp_path / "size").write_text("2000000")
    arguments = ServeArguments()
    arguments.data_dir = str(tmp_path / "data")
    arguments.overrides = {"broker.rack": f"${{dir:{tmp_path}:rack}}"}
    config = load_config(arguments, None)
    assert (config["broker.rack"], config["message.max.bytes"]) == ("r1", 2000000)


def test_the_listen_option_keeps_a_controller_listener_that_a_provider_names(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LISTENER", "CTRL")
    file = tmp_path / "server.properties"
    file.write_text(
        "config.providers=env\n"
        f"config.providers.env.class={ENVIRONMENT_CLASS}\n"
        "process.roles=broker,controller\nnode.id=1\n"
        "controller.quorum.bootstrap.servers=localhost:9093\n"
        "controller.listener.names=${env:LISTENER}\n"
        "listeners=PLAINTEXT://localhost:9092,${env:LISTENER}://localhost:9093\n"
    )
    arguments = ServeArguments()
    arguments.config, arguments.listen = str(file), "localhost:1234"
    config = load_config(arguments, None)
    assert [(one.name, one.port) for one in config.listeners()] == [
        ("PLAINTEXT", 1234),
        ("CTRL", 9093),
    ]


def test_format_takes_values_from_providers(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DATA", str(tmp_path / "data"))
    file = tmp_path / "server.properties"
    lines = [
        "config.providers=env",
        f"config.providers.env.class={ENVIRONMENT_CLASS}",
        "process.roles=broker,controller",
        "node.id=1",
        "controller.quorum.bootstrap.servers=localhost:9093",
        "controller.listener.names=CONTROLLER",
        "listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
        "log.dirs=${env:DATA}",
    ]
    file.write_text("\n".join(lines))
    arguments = ["-c", str(file), "-t", "a3dpcmUtcGVlci1rYWZrYQ", "--standalone"]
    assert format_command.main(arguments) == 0
    assert (tmp_path / "data" / "meta.properties").exists()
    file.write_text("\n".join([*lines[:-1], f"log.dirs=${{file:{tmp_path}/no:k}}", lines[1]]))
    file.write_text(file.read_text().replace("=env", "=file").replace(".env.", ".file."))
    file.write_text(file.read_text().replace(ENVIRONMENT_CLASS, FILE_CLASS))
    capsys.readouterr()
    assert format_command.main(arguments) == 2
    assert capsys.readouterr().err == (
        f"kwire: log.dirs: Could not read properties from file {tmp_path}/no: "
        "No such file or directory\n"
    )


# -- dynamic settings


def dynamic(
    broker: dict[str, str],
    default: dict[str, str] | None = None,
    static: dict[str, str] | None = None,
) -> DynamicConfig:
    config = BrokerConfig.load(static or {})
    configs = {(RESOURCE_BROKER, "1"): broker, (RESOURCE_BROKER, ""): default or {}}
    return DynamicConfig(config, configs)


def test_what_is_stored_counts_by_the_providers_of_all_levels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RETENTION", "71")
    placeholder = {"log.retention.ms": "${env:RETENTION}"}
    assert dynamic(placeholder, static=PROVIDERS)["log.retention.ms"] == 71
    assert dynamic(placeholder, PROVIDERS)["log.retention.ms"] == 71
    assert dynamic(PROVIDERS, placeholder)["log.retention.ms"] == 71


def test_a_broker_config_that_is_written_again_is_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RETENTION", "71")
    stored = {**PROVIDERS, "log.retention.ms": "${env:RETENTION}"}
    config = dynamic(stored)
    monkeypatch.setenv("RETENTION", "72")
    configs = {(RESOURCE_BROKER, "1"): stored}
    assert config.update(configs, [(2, "a-topic")]) == {}
    assert config.update(configs, [(RESOURCE_BROKER, "1")]) == {"log.retention.ms": 72}


def test_stored_values_that_no_provider_gives_are_named_and_not_used(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A node starts and serves without the files that its dynamic settings come from."""
    monkeypatch.setenv("SECRET", SECRET)
    config = dynamic(
        {
            **PROVIDERS,
            "config.providers": "file,env,vault,",
            "config.providers.vault.class": "com.acme.Vault",
            "log.retention.ms": f"${{file:{tmp_path}/gone:k}}",
            "log.flush.interval.ms": "${env:SECRET}",
            "log.segment.bytes": "${vault:a:b}",
            "log.roll.ms": "5000",
            "my.own": f"x${{file:{tmp_path}/gone:k}}",
            "listener.name.a.ssl.key.password": "${env:SECRET}",
        }
    )
    assert config["log.roll.ms"] == 5000
    for name in ("log.retention.ms", "log.flush.interval.ms", "log.segment.bytes"):
        assert config[name] == config.static[name], name
    told = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    gone = f"Could not read properties from file {tmp_path}/gone: No such file or directory"
    for words in (
        f"broker 1: log.retention.ms=${{file:{tmp_path}/gone:k}} cannot be used: {gone}",
        "broker 1: log.flush.interval.ms=${env:SECRET} cannot be used: what its config provider",
        "broker 1: log.segment.bytes=${vault:a:b} cannot be used: Invalid value ${vault:a:b}",
        "broker 1: config.providers.vault.class=com.acme.Vault cannot be used: Invalid value",
        f"broker 1: my.own=[hidden] cannot be used: {gone}",
    ):
        assert len([line for line in told if line.startswith(words)]) == 1, (words, told)
    assert SECRET not in caplog.text


def test_a_change_is_refused_without_telling_what_a_provider_gave(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SECRET", SECRET)
    for name in ("log.retention.ms", "compression.type", "log.cleanup.policy", "log.preallocate"):
        with pytest.raises(KafkaError) as refusal:
            validate_broker_configs(
                {**PROVIDERS, name: "${env:SECRET}"}, dynamic({}), per_broker=True
            )
        assert refusal.value.code is ErrorCode.INVALID_REQUEST
        assert refusal.value.message == f"Invalid value ${{env:SECRET}} for configuration {name}"


def test_a_provider_that_cannot_be_is_refused_in_kafkas_words() -> None:
    changed = {"config.providers": "v", "config.providers.v.class": "com.acme.Vault"}
    with pytest.raises(KafkaError) as refusal:
        validate_broker_configs(changed, dynamic({}), per_broker=True)
    assert refusal.value.message == (
        "Invalid value com.acme.Vault for configuration config.providers.v.class: Could not load "
        "config provider class or one of its dependencies"
    )


def test_changes_are_checked_against_what_was_set_not_what_providers_gave(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A change began with the values that providers had given: their providers could be deleted,
    and nothing gave the values any more. What cannot be used stands in no change's way."""
    monkeypatch.setenv("RETENTION", "71")
    stored = {
        **PROVIDERS,
        "config.providers": "file,env,vault",
        "config.providers.vault.class": "com.acme.Vault",
        "log.retention.ms": "${env:RETENTION}",
        "log.flush.interval.ms": "${env:NO_SUCH_VARIABLE}",
    }
    usable = dynamic(stored).usable(per_broker=True)
    unusable = {"log.flush.interval.ms", "config.providers.vault.class"}
    assert usable == {name: text for name, text in stored.items() if name not in unusable}
    validate_broker_configs(usable, dynamic(stored), per_broker=True)


def test_what_is_no_file_leaves_no_descriptor_open(tmp_path: pathlib.Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(ConfigError, match="it is no file"):
        resolved(f"${{file:{tmp_path}:key}}")
    assert len(os.listdir("/proc/self/fd")) == before
