"""Settings that only make sense together: what Kafka refuses at start, in one line each."""

from __future__ import annotations

from kwire.config import authorizer, java_classes
from kwire.config import listeners as listeners_module
from kwire.config.errors import ConfigError
from kwire.config.node_settings import NodeSettings
from kwire.config.requirements import check_requirements, for_people


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
    java_classes.check_replica_selector(config["replica.selector.class"])
    java_classes.check_classes(config.texts)
    _check_listeners(config)


def _check_authorizer(config: NodeSettings) -> None:
    """Raise ConfigError for an authorizer other than Kafka's, or malformed settings of it."""
    authorizer.check_class(config["authorizer.class.name"])
    if config["authorizer.class.name"]:
        authorizer.super_users(config.texts)


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
