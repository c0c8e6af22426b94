"""BrokerConfig: sources and their order, refusals in one line, derived settings."""

from __future__ import annotations

import pytest

from kwire.config import BrokerConfig, ConfigError, Source, authorizer
from kwire.config.definitions import BROKER
from kwire.config.developer import DEVELOPER_SETTINGS
from kwire.config.environment import setting_name, settings_of
from kwire.config.listeners import Listener

KAFKA_MINIMUM = {
    "process.roles": "broker,controller",
    "node.id": "7",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": "localhost:9093",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
}


def refusal(**sources: object) -> str:
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.load(**sources)  # type: ignore[arg-type]
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_each_source_wins_over_the_one_before() -> None:
    name, variable = "num.partitions", "KAFKA_NUM_PARTITIONS"
    assert BrokerConfig.load()[name] == 1
    assert BrokerConfig.load({name: "2"})[name] == 2
    assert BrokerConfig.load({name: "2"}, {variable: "3"})[name] == 3
    config = BrokerConfig.load({name: "2"}, {variable: "3"}, {name: "4"})
    assert config[name] == 4
    assert config.source_of(name) is Source.OVERRIDE


def test_developer_table_is_above_the_defaults_and_below_everything_else() -> None:
    name = "group.initial.rebalance.delay.ms"
    developer = BrokerConfig.load()
    assert (developer[name], developer.source_of(name)) == (0, Source.DEVELOPER)
    assert BrokerConfig.load({name: "5"})[name] == 5
    kafka = BrokerConfig.load(KAFKA_MINIMUM, developer=False)
    assert (kafka[name], kafka.source_of(name)) == (3000, Source.DEFAULT)
    assert kafka["offsets.topic.replication.factor"] == 3


def test_developer_table_holds_what_is_documented() -> None:
    config = BrokerConfig.load()
    for name in (
        "offsets.topic.replication.factor",
        "transaction.state.log.replication.factor",
        "share.coordinator.state.topic.replication.factor",
        "transaction.state.log.min.isr",
        "share.coordinator.state.topic.min.isr",
    ):
        assert config[name] == 1
    assert set(DEVELOPER_SETTINGS) <= set(BROKER)
    assert config.warnings == []


def test_environment_names_as_in_kafkas_image() -> None:
    assert setting_name("KAFKA_LOG_SEGMENT_BYTES") == "log.segment.bytes"
    assert setting_name("KAFKA_A_B__C___D") == "a.b_c-d"
    environment = {
        "KAFKA_HEAP_OPTS": "-Xmx1g",
        "KAFKA_PORT": "tcp://10.0.0.1:9092",
        "KAFKA_SERVICE_HOST": "10.0.0.1",
        "KAFKA_PORT_9092_TCP_ADDR": "10.0.0.1",
        "KAFKA_BOOTSTRAP_SERVERS": "localhost:9092",
        "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://kafka:9092",
        "HOME": "/",
    }
    found = settings_of(environment)
    assert found == {
        "advertised.listeners": ("PLAINTEXT://kafka:9092", "KAFKA_ADVERTISED_LISTENERS")
    }
    config = BrokerConfig.load(environment=environment)
    advertised = config.advertised_listeners(lambda: "unused")
    assert [str(listener) for listener in advertised] == ["PLAINTEXT://kafka:9092"]


@pytest.mark.parametrize(
    "name",
    ["SASL_USERNAME", "SASL_PASSWORD", "SECURITY_PROTOCOL", "SCHEMA_REGISTRY_URL", "BROKER_LIST"]
    + ["CONSUMER_GROUP", "CONNECT_URL", "TOPIC_ORDERS", "API_KEY", "ENABLED"],
)
def test_what_applications_call_their_own_is_no_setting(name: str) -> None:
    assert settings_of({f"KAFKA_{name}": "x"}) == {}


def test_no_setting_of_the_broker_is_taken_for_an_applications_own() -> None:
    for name in BROKER:
        assert name in settings_of({f"KAFKA_{name.upper().replace('.', '_')}": "x"})


def test_unknown_setting_names_setting_value_and_neighbours() -> None:
    message = refusal(overrides={"log.segment.byte": "5"})
    assert "log.segment.byte=5" in message
    assert "log.segment.bytes" in message
    assert "kwire.nothing=1" in refusal(overrides={"kwire.nothing": "1"})
    assert "no.such=1" in refusal(overrides={"no.such": "1"})


def test_invalid_value_names_setting_value_and_what_is_accepted() -> None:
    message = refusal(properties={"log.segment.bytes": "5"})
    for part in ("log.segment.bytes", "5", "1048576"):
        assert part in message
    message = refusal(environment={"KAFKA_COMPRESSION_TYPE": "brotli"})
    for part in ("KAFKA_COMPRESSION_TYPE", "compression.type", "brotli", "zstd", "producer"):
        assert part in message


def test_value_of_several_lines_is_told_in_one() -> None:
    assert "a b" in refusal(properties={"log.segment.bytes": "a\nb"})
    assert "x y" in refusal(overrides={"no.such": "x\r\ny"})


def test_settings_of_security_and_durability_are_never_without_effect() -> None:
    prefixes = ("ssl.", "sasl.", "security.", "authorizer.", "delegation.token.", "principal.")
    silent = [
        name
        for name, definition in BROKER.items()
        if name.startswith(prefixes) and definition.support == "accepted"
    ]
    assert silent == []
    for name in (
        "min.insync.replicas",
        "log.flush.interval.messages",
        "log.flush.interval.ms",
        "unclean.leader.election.enable",
        "log.dirs",
        "default.replication.factor",
    ):
        assert BROKER[name].support in ("acts", "refused")


def test_refused_setting_passes_at_its_default() -> None:
    message = refusal(overrides={"ssl.provider": "hunter2"})
    assert "ssl.provider=hunter2 is refused" in message
    assert BrokerConfig.load(overrides={"ssl.client.auth": "none"})["ssl.client.auth"] == "none"


def test_accepted_setting_gives_one_line_and_only_when_it_is_not_the_default() -> None:
    config = BrokerConfig.load(overrides={"num.io.threads": "16"})
    assert len(config.warnings) == 1
    assert "num.io.threads=16" in config.warnings[0]
    assert BrokerConfig.load(overrides={"num.io.threads": "8"}).warnings == []


@pytest.mark.parametrize("missing", ["process.roles", "node.id", "controller.listener.names"])
def test_required_settings_of_kafka_are_required_with_a_config_file(missing: str) -> None:
    properties = {name: text for name, text in KAFKA_MINIMUM.items() if name != missing}
    assert missing in refusal(properties=properties, developer=False)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("listeners", "PLAINTEXT://:9092,PLAINTEXT://:9094"),
        ("listeners", "PLAINTEXT://:9092,CONTROLLER://:9092"),
        ("listeners", "nonsense"),
        ("listeners", "OTHER://:9092"),
        ("listeners", "PLAINTEXT://:99999"),
        ("listeners", "CONTROLLER://:9093"),
        ("listeners", "SSL://:9092"),
        ("advertised.listeners", "PLAINTEXT://0.0.0.0:9092"),
        ("advertised.listeners", "PLAINTEXT://[::]:9092"),
        ("advertised.listeners", "PLAINTEXT://[0:0:0:0:0:0:0:0]:9092"),
        ("advertised.listeners", "OTHER://localhost:9092"),
        ("inter.broker.listener.name", "OTHER"),
        ("listener.security.protocol.map", "PLAINTEXT:NONSENSE"),
    ],
)
def test_listeners_that_cannot_be_are_refused(setting: str, value: str) -> None:
    assert setting.split(".")[0] in refusal(overrides={setting: value})


def test_controller_listener_is_required_with_a_config_file() -> None:
    properties = {**KAFKA_MINIMUM, "listeners": "PLAINTEXT://:9092"}
    assert "controller.listener.names" in refusal(properties=properties, developer=False)
    assert BrokerConfig.load({"listeners": "PLAINTEXT://:9092"}).broker_listeners()


@pytest.mark.parametrize(
    ("listener", "servers", "expected"),
    [
        ("CONTROLLER://:9093", "localhost:9093", True),
        ("CONTROLLER://127.0.0.1:9093", "127.0.0.1:9093", True),
        ("CONTROLLER://localhost:9093", "127.0.0.1:9093,[::1]:9093", True),
        ("CONTROLLER://one:9093", "one:9093", True),
        ("CONTROLLER://:9093", "localhost:9094", False),
        ("CONTROLLER://:9093", "localhost:9093,two:9093", False),
        ("CONTROLLER://one:9093", "localhost:9093", False),
    ],
)
def test_node_that_bootstraps_from_itself(listener: str, servers: str, expected: bool) -> None:
    properties = {
        **KAFKA_MINIMUM,
        "listeners": f"PLAINTEXT://:9092,{listener}",
        "controller.quorum.bootstrap.servers": servers,
    }
    config = BrokerConfig.load(properties, developer=False)
    assert config.bootstraps_from_itself() is expected


def test_listeners_are_parsed() -> None:
    config = BrokerConfig.load(
        overrides={
            "listeners": "PLAINTEXT://:9092,inside://[::1]:9094,CONTROLLER://127.0.0.1:9093",
            "listener.security.protocol.map": (
                "INSIDE:PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"
            ),
            "inter.broker.listener.name": "INSIDE",
        }
    )
    assert config.broker_listeners() == [
        Listener("PLAINTEXT", "PLAINTEXT", "", 9092),
        Listener("INSIDE", "PLAINTEXT", "::1", 9094),
    ]
    assert str(config.broker_listeners()[1]) == "INSIDE://[::1]:9094"
    advertised = config.advertised_listeners(lambda: "this-host")
    assert [listener.host for listener in advertised] == ["this-host", "::1"]
    assert config.inter_broker_listener_name() == "INSIDE"


def test_an_advertised_listener_without_a_host_is_this_host() -> None:
    """It was refused. Kafka 4.4 starts, and tells clients this host's name (measured)."""
    config = BrokerConfig.load(
        environment={
            "KAFKA_LISTENERS": "INTERNAL://:9092,EXTERNAL://:9094,CONTROLLER://:9093",
            "KAFKA_ADVERTISED_LISTENERS": "INTERNAL://:9092,EXTERNAL://out:9094,CONTROLLER://:9093",
            "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": (
                "INTERNAL:PLAINTEXT,EXTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT"
            ),
            "KAFKA_INTER_BROKER_LISTENER_NAME": "INTERNAL",
        }
    )
    told = [str(listener) for listener in config.advertised_listeners(lambda: "here")]
    assert told == ["INTERNAL://here:9092", "EXTERNAL://out:9094"]
    controllers = config.advertised_controller_listeners(lambda: "here")
    assert [str(listener) for listener in controllers] == ["CONTROLLER://here:9093"]


@pytest.mark.parametrize("host", ["", "0.0.0.0", "[::]", "[::0]", "[0:0:0:0:0:0:0:0]"])
def test_every_spelling_of_a_wildcard_is_advertised_by_name(host: str) -> None:
    config = BrokerConfig.load({"listeners": f"PLAINTEXT://{host}:9092"})
    assert [x.host for x in config.advertised_listeners(lambda: "here")] == ["here"]


def test_ports_may_be_shared_by_an_ipv4_and_an_ipv6_listener() -> None:
    config = BrokerConfig.load(
        overrides={
            "listeners": "PLAINTEXT://127.0.0.1:9092,SIX://[::1]:9092",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SIX:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
        }
    )
    assert len(config.broker_listeners()) == 2


def test_broker_id_stands_in_for_node_id() -> None:
    properties = {name: text for name, text in KAFKA_MINIMUM.items() if name != "node.id"}
    assert BrokerConfig.load({**properties, "broker.id": "4"}, developer=False).node_id == 4
    assert "broker.id" in refusal(
        properties={**KAFKA_MINIMUM, "broker.id": "4"}, developer=False
    ).replace("`", "")


def test_every_default_is_valid() -> None:
    for definition in BROKER.values():
        if definition.default_text:
            assert definition.parse(definition.default_text) == definition.default


def test_the_only_authorizer_is_kafkas_own() -> None:
    standard = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
    refused = refusal(overrides={"authorizer.class.name": "com.example.Own"})
    assert "com.example.Own" in refused
    assert standard["authorizer.class.name"] in refused
    refused = refusal(overrides={**standard, "super.users": "User:admin;alice"})
    assert "principalType:principalName but got alice" in refused
    config = BrokerConfig.load(
        overrides={
            **standard,
            "super.users": "User:admin; User:ANONYMOUS;",
            "allow.everyone.if.no.acl.found": " TRUE",
            "early.start.listeners": "PLAINTEXT",
        },
        developer=True,
    )
    assert config["authorizer.class.name"] == standard["authorizer.class.name"]
    assert config["early.start.listeners"] == ["PLAINTEXT"]
    assert authorizer.super_users(config.texts) == {"User:admin", "User:ANONYMOUS"}
    assert authorizer.allow_everyone(config.texts)


@pytest.mark.parametrize("text", ["\udcff", "r" * 32768])
def test_a_rack_that_no_record_can_hold_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"broker\.rack: "):
        BrokerConfig.load(overrides={"broker.rack": text})
    with pytest.raises(ConfigError, match=r"broker\.rack: .* \(from KAFKA_BROKER_RACK\)"):
        BrokerConfig.load(environment={"KAFKA_BROKER_RACK": text})


def test_an_applications_variable_of_any_bytes_ends_no_start() -> None:
    config = BrokerConfig.load(environment={"KAFKA_ORDERS_TOPIC": "a\udcff"})
    assert config.texts["orders.topic"] == "a?"
