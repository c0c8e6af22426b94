"""Settings that only make sense together: what Kafka refuses at start, in one line each."""

from __future__ import annotations

from kwire.config import authorizer
from kwire.config import listeners as listeners_module
from kwire.config.errors import ConfigError
from kwire.config.node_settings import NodeSettings
from kwire.config.requirements import check_requirements, for_people
from kwire.config.values import TypedValue

REPLICA_SELECTORS = (
    "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    "org.apache.kafka.common.replica.LeaderSelector",
)

CALLBACK_HANDLER = "sasl.server.callback.handler.class"
_OAUTHBEARER = "org.apache.kafka.common.security.oauthbearer."
SIGNED_TOKENS = f"{_OAUTHBEARER}OAuthBearerValidatorCallbackHandler"
UNSECURED_TOKENS = f"{_OAUTHBEARER}internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
CALLBACK_HANDLERS = (SIGNED_TOKENS, UNSECURED_TOKENS)
LOGIN_HANDLER = "sasl.login.callback.handler.class"
ISSUED_TOKENS = f"{_OAUTHBEARER}OAuthBearerLoginCallbackHandler"
UNSECURED_LOGIN = f"{_OAUTHBEARER}internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler"
RETRIEVER = "sasl.oauthbearer.jwt.retriever.class"
BY_URL = f"{_OAUTHBEARER}DefaultJwtRetriever"
BY_CREDENTIALS = f"{_OAUTHBEARER}ClientCredentialsJwtRetriever"
BY_GRANT = f"{_OAUTHBEARER}JwtBearerJwtRetriever"
BY_FILE = f"{_OAUTHBEARER}FileJwtRetriever"
PLAIN_HANDLER = "org.apache.kafka.common.security.plain.internals.PlainServerCallbackHandler"
JAVA_CLASSES = {
    CALLBACK_HANDLER: (*CALLBACK_HANDLERS, PLAIN_HANDLER),
    LOGIN_HANDLER: (ISSUED_TOKENS, UNSECURED_LOGIN),
    RETRIEVER: (BY_URL, BY_CREDENTIALS, BY_GRANT, BY_FILE),
}
"""Kafka's own classes, which are known by name; no other can be loaded."""
MECHANISMS = ("PLAIN", "OAUTHBEARER", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI")


def check_consistency(config: NodeSettings) -> None:
    """Raise ConfigError for combinations that a node cannot run with."""
    _check_identity(config)
    check_supported(config)
    known = config["controller.quorum.voters"] or config["controller.quorum.bootstrap.servers"]
    if not known and not config.developer:
        raise ConfigError(
            "If process.roles is set, either controller.quorum.bootstrap.servers must contain "
            "the set of bootstrap controllers or controller.quorum.voters must contain a "
            "parseable set of controllers."
        )
    try:
        check_requirements(config)
    except ConfigError as error:
        raise ConfigError(for_people(error)) from None


def check_supported(config: NodeSettings) -> None:
    """Raise ConfigError for what Kafka may do and this version cannot."""
    _check_authorizer(config)
    _check_replica_selector(config)
    _check_classes(config)
    _check_listeners(config)


def _check_authorizer(config: NodeSettings) -> None:
    """Raise ConfigError for an authorizer other than Kafka's, or malformed settings of it."""
    authorizer.check_class(config["authorizer.class.name"])
    if config["authorizer.class.name"]:
        authorizer.super_users(config.texts)


def _check_replica_selector(config: NodeSettings) -> None:
    """Java classes cannot be loaded: the two that Kafka brings are known by name."""
    name = config["replica.selector.class"]
    if name and name not in REPLICA_SELECTORS:
        raise ConfigError(
            f"Invalid value {name} for configuration replica.selector.class: accepted are "
            f"{' and '.join(REPLICA_SELECTORS)}"
        )


def check_class(setting: str, name: TypedValue) -> None:
    """ConfigError for a Java class that is none of those that the setting may name."""
    if name is not None:
        _check_class_among(setting, str(name), JAVA_CLASSES[setting])


def _check_classes(config: NodeSettings) -> None:
    """Also of one listener, or of one of its mechanisms: who would be let in by somebody else's
    class must not be let in without it."""
    for name, text in config.texts.items():
        for setting, classes in JAVA_CLASSES.items():
            if name == setting or name.endswith(f".{setting}"):
                _check_class_among(name, text.strip(), _of_mechanism(name, setting, classes))


def _of_mechanism(name: str, setting: str, classes: tuple[str, ...]) -> tuple[str, ...]:
    """The classes that may be named behind `listener.name.LISTENER.MECHANISM.`."""
    mechanism = name.removesuffix(f".{setting}").rpartition(".")[2].upper()
    if mechanism == "OAUTHBEARER":
        return tuple(each for each in classes if each != PLAIN_HANDLER)
    if mechanism == "PLAIN":
        return tuple(each for each in classes if each == PLAIN_HANDLER)
    return () if mechanism in MECHANISMS else classes


def _check_class_among(name: str, text: str, classes: tuple[str, ...]) -> None:
    if text not in classes:
        raise ConfigError(
            f"{name}={text} is refused: Java plug-ins cannot be loaded; accepted: "
            + (", ".join(classes) or "nothing (leave it out)")
        )


def _check_identity(config: NodeSettings) -> None:
    for name in ("process.roles", "node.id", "controller.listener.names"):
        if name == "node.id" and config["broker.id"] >= 0:
            continue
        if config[name] is None:
            raise ConfigError(
                f'Missing required configuration "{name}" which has no default value.'
            )


def _check_listeners(config: NodeSettings) -> None:
    listeners = config.listeners()
    listeners_module.check_ports(listeners)
    names = [listener.name for listener in listeners]
    controller = config.controller_listener_names()
    for name in config["early.start.listeners"] or []:
        if name not in (*names, *controller):
            raise ConfigError(
                f"early.start.listeners contains listener {name}, but this is not contained in "
                "listeners or controller.listener.names"
            )
    if config.is_controller and not config.developer:
        unheard = [name for name in controller if name not in names]
        if unheard:
            raise ConfigError(
                f"Invalid value {','.join(controller)} for configuration controller.listener.names:"
                " must only contain values appearing in the 'listeners' configuration when running "
                f"the KRaft controller role; there is no listener {unheard[0]}"
            )
    if not config.is_broker:
        return
    broker_names = [name for name in names if name not in controller]
    if not broker_names:
        raise ConfigError(
            f"Invalid value {','.join(map(str, listeners))} for configuration listeners: "
            "there must be at least one broker listener"
        )
    for listener in config.advertised_listeners(lambda: "localhost"):
        if listeners_module.is_wildcard(listener.host):
            raise ConfigError(
                f"Invalid value {listener} for configuration advertised.listeners: advertised "
                "listeners cannot use the nonroutable meta-address 0.0.0.0; use a routable address"
            )
        if listener.name not in broker_names:
            raise ConfigError(
                f"Invalid value {listener} for configuration advertised.listeners: "
                f"{listener.name} is no broker listener; accepted: {', '.join(broker_names)}"
            )
    inter_broker = config.inter_broker_listener_name()
    if inter_broker not in broker_names:
        raise ConfigError(
            f"Invalid value {inter_broker} for configuration inter.broker.listener.name: "
            f"it must be one of the advertised broker listeners: {', '.join(broker_names)}"
        )
