"""What Kafka requires of listeners, in its words (measured on Apache Kafka 4.4).

`kwire.config.listeners` reads listeners for use, `kwire.config.consistency` tells people who start
a node what is wrong with theirs; here is what clients are told that change them.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from kwire.config import listeners as listeners_module
from kwire.config.checks import csv_map
from kwire.config.errors import ConfigError
from kwire.config.node_settings import NodeSettings

PROTOCOL_MAP = "listener.security.protocol.map"
REQUIREMENT = "requirement failed: "
ENDPOINT = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")
SECURED = ("SSL", "SASL_PLAINTEXT", "SASL_SSL")
NO_NAME = "The provided listener name is null or empty string"


class Endpoint(NamedTuple):
    """One entry of `listeners`: name in capitals, host as written, port."""

    name: str
    host: str
    port: int


def protocol_map(config: NodeSettings) -> dict[str, str]:
    """Listener name -> security protocol; ConfigError as Kafka's."""
    result: dict[str, str] = {}
    for name, protocol in csv_map(PROTOCOL_MAP, config[PROTOCOL_MAP]).items():
        if not name:
            raise ConfigError(NO_NAME, PROTOCOL_MAP)
        if protocol.upper() not in listeners_module.PROTOCOLS:
            raise ConfigError(
                f"Invalid security protocol `{protocol}` defined in listener.security.protocol.map"
            )
        result[name.upper()] = protocol.upper()
    if PROTOCOL_MAP not in config.texts and not _uses_security(config):
        for name in config["controller.listener.names"] or []:
            result.setdefault(name.upper(), "PLAINTEXT")
    return result


def _uses_security(config: NodeSettings) -> bool:
    """Whether a listener has the name of a protocol with TLS or SASL: where nobody has set the map
    the controller's are PLAINTEXT only beside others that are."""
    if any(name in SECURED for name in config["controller.listener.names"] or []):
        return True
    for entry in config["listeners"]:
        name, colon, _ = entry.partition(":")
        if not colon:
            raise ConfigError(f"Unable to parse a listener name from {entry}")
        if name.upper() in SECURED:
            return True
    return False


def endpoints(
    entries: list[str], protocols: dict[str, str], *, unique_ports: bool
) -> list[Endpoint]:
    """The listeners that these entries are; ConfigError as Kafka's."""
    try:
        return _endpoints(entries, protocols, unique_ports)
    except ConfigError as error:
        raise ConfigError(
            f"Error creating broker listeners from '[{', '.join(entries)}]': {error}"
        ) from None


def _endpoints(entries: list[str], protocols: dict[str, str], unique_ports: bool) -> list[Endpoint]:
    result: list[Endpoint] = []
    for entry in entries:
        match = ENDPOINT.fullmatch(entry)
        if match is None or len(match[3]) > 10:
            raise ConfigError(f"Unable to parse {entry} to a broker endpoint")
        endpoint = Endpoint(match[1].upper(), match[2], int(match[3]))
        if not endpoint.name:
            raise ConfigError(NO_NAME)
        if endpoint.name not in protocols:
            raise ConfigError(f"No security protocol defined for listener {endpoint.name}")
        result.append(endpoint)
    shown = f"listeners: [{', '.join(entries)}]"
    if len({endpoint.name for endpoint in result}) != len(result):
        raise ConfigError(f"Each listener must have a different name, {shown}")
    if unique_ports:
        _check_ports(result, shown)
    return result


def _check_ports(result: list[Endpoint], shown: str) -> None:
    by_port: dict[int, list[Endpoint]] = {}
    for endpoint in result:
        if endpoint.port != 0:
            by_port.setdefault(endpoint.port, []).append(endpoint)
    for port, sharing in by_port.items():
        if len(sharing) == 1:
            continue
        if len(sharing) > 2:
            raise ConfigError(f"Each listener must have a different port, {shown}")
        if len({":" in endpoint.host for endpoint in sharing}) == 1:
            raise ConfigError(
                "If you have two listeners on the same port then one needs to be IPv4 and the "
                f"other IPv6, {shown}, port: {port}"
            )


def _check_inter_broker_name(config: NodeSettings, protocols: dict[str, str]) -> None:
    """The setting that names the listener between brokers, alone."""
    name = config["inter.broker.listener.name"]
    if name is None:
        return
    if "security.inter.broker.protocol" in config.texts:
        raise ConfigError(
            "Only one of inter.broker.listener.name and security.inter.broker.protocol should be "
            "set."
        )
    if not name:
        raise ConfigError(NO_NAME, "inter.broker.listener.name")
    if name.upper() not in protocols:
        raise ConfigError(
            f"Listener with name {name.upper()} defined in inter.broker.listener.name not found in "
            "listener.security.protocol.map."
        )


def check_listeners(config: NodeSettings) -> None:
    """`listeners`, what is advertised of them, and which are the controller's."""
    protocols = protocol_map(config)
    own = endpoints(config["listeners"], protocols, unique_ports=True)
    _check_inter_broker_name(config, protocols)
    names = [endpoint.name for endpoint in own]
    given = config["controller.listener.names"] or []
    advertised = names
    if config["advertised.listeners"] is not None:
        found = endpoints(config["advertised.listeners"], protocols, unique_ports=False)
        advertised = [endpoint.name for endpoint in found]
        if any(endpoint.host == "0.0.0.0" for endpoint in found):
            raise ConfigError(
                f"{REQUIREMENT}advertised.listeners cannot use the nonroutable meta-address "
                "0.0.0.0. Use a routable IP address."
            )
    if not config.developer:
        _check_controller_names(config, names, advertised, given)
    if config.is_broker:
        controller = [name.upper() for name in given]
        _check_advertised(config, [name for name in advertised if name not in controller], names)


def _check_controller_names(
    config: NodeSettings, names: list[str], advertised: list[str], given: list[str]
) -> None:
    setting = "controller.listener.names"
    if not config.is_controller:
        if any(name in names for name in given):
            raise ConfigError(
                f"{REQUIREMENT}{setting} must not contain a value appearing in the 'listeners' "
                "configuration when running KRaft with just the broker role"
            )
        return
    if not config.is_broker and any(name not in given for name in names):
        raise ConfigError(
            f"{REQUIREMENT}The listeners config must only contain KRaft controller listeners from "
            f"{setting} when process.roles=controller"
        )
    known = (*names, *advertised)
    if not any(name in known for name in given):
        must = "contain at least one value"
    elif any(name not in names for name in given):
        must = "only contain values"
    else:
        return
    raise ConfigError(
        f"{REQUIREMENT}{setting} must {must} appearing in the 'listeners' configuration when "
        "running the KRaft controller role"
    )


def _check_advertised(config: NodeSettings, advertised: list[str], names: list[str]) -> None:
    inter_broker = config.inter_broker_listener_name()
    if inter_broker not in advertised:
        raise ConfigError(
            f"{REQUIREMENT}inter.broker.listener.name must be a listener name defined in "
            "advertised.listeners. The valid options based on currently configured listeners are "
            + ",".join(advertised)
        )
    unheard = [name for name in advertised if name not in names]
    if unheard:
        raise ConfigError(
            f"{REQUIREMENT}advertised.listeners listener names must be equal to or a subset of the "
            f"ones defined in listeners. Found {','.join(unheard)}. The valid options based on the "
            f"current configuration are {','.join(names)}"
        )
