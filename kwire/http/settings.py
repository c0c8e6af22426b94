"""The HTTP listeners out of `http.listeners` and its relatives, checked together.

An entry is `URL` or `NAME=URL`, URL `http://HOST:PORT` or `https://HOST:PORT`, the latter with the
broker's `ssl.*` settings; without a name the listener is called as its scheme.
`http.listener.NAME.serves` says what one serves, `http.serves` what all others do.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from kwire.config.broker_config import BrokerConfig
from kwire.config.checks import is_number
from kwire.config.errors import ConfigError
from kwire.config.listeners import is_loopback

logger = logging.getLogger(__name__)

LISTENERS = "http.listeners"
SERVES = "http.serves"
AUTHENTICATION = "http.authentication"
BEYOND_LOOPBACK = "http.unauthenticated.beyond.loopback.enable"
LISTENER_PREFIX = "http.listener."
REGISTRY_TOPIC = "http.registry.topic"
REPLICATION = "http.registry.replication.factor"

PURPOSES = ("metrics", "health", "registry", "rest", "console")
UNBUILT = ("console",)
"""Known, and not there yet: what names them starts with a warning, and does not serve them."""
BUILT = tuple(one for one in PURPOSES if one not in UNBUILT)

NO_AUTHENTICATION = "none"
MECHANISMS = "sasl.enabled.mechanisms"
CLIENT_AUTH = "ssl.client.auth"
SCHEMES_OF_LOGIN = {
    "basic": ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
    "bearer": ("OAUTHBEARER",),
}
"""The mechanisms by which what a scheme of HTTP brings can log in."""

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8080
PORTS_TRIED = 100
"""Of the default listener: the first free one from DEFAULT_PORT on."""

PORT_MAX = 65535
SCHEMES = ("http", "https")
TLS_PREFIX = "ssl."
KAFKA_PREFIX = "listener.name."
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
Json: TypeAlias = "dict[str, str | int | bool | list[str]]"


class HttpListener:
    """One listener. `ports` are tried in order; a host "" is every interface. `tls` are the `ssl.*`
    settings of one with TLS, None without."""

    __slots__ = ("host", "name", "ports", "serves", "tls")

    def __init__(
        self,
        name: str,
        host: str,
        ports: range,
        serves: tuple[str, ...],
        tls: dict[str, str] | None = None,
    ) -> None:
        self.name = name
        self.host = host
        self.ports = ports
        self.serves = serves
        self.tls = tls


class Login(NamedTuple):
    """Where callers' credentials are tried, and by which mechanisms."""

    listener: str
    mechanisms: list[str]
    is_tls: bool


class HttpSettings:
    """What the configuration says of HTTP; `listeners` is empty where there is none.

    `limits` go to the HTTP process as they are. Raises ConfigError, one line.
    """

    def __init__(self, config: BrokerConfig, *, by_default: bool = False) -> None:
        entries = list(config[LISTENERS])
        own = {
            name: text for name, text in config.texts.items() if name.startswith(LISTENER_PREFIX)
        }
        self.listeners = [_listener(entry, list(config[SERVES]), config.texts) for entry in entries]
        self.is_default = not entries and by_default
        if self.is_default:
            ports = range(DEFAULT_PORT, DEFAULT_PORT + PORTS_TRIED)
            serves = _served("http", list(config[SERVES]), config.texts)
            self.listeners = [HttpListener("http", DEFAULT_HOST, ports, serves)]
        _check_names(self.listeners, entries, own)
        self.logins = _logins(config)
        """By scheme; empty where nobody has to log in."""
        self.anonymous = _anonymous(config)
        """The listener for clients of those who have not logged in; empty where there is none."""
        self.node_id = int(config["node.id"])
        if not config[BEYOND_LOOPBACK] and not self.logins:
            _check_loopback(self.listeners)
        self.registry = _topic(config), int(config[REPLICATION])
        """The topic of schemas, and how often it is kept where it is made."""
        self.limits: Json = {
            "allowed_hosts": list(config["http.allowed.hosts"]),
            "cors_origins": list(config["http.cors.allowed.origins"]),
            "connections_max": config["http.connections.max"],
            "request_bytes_max": config["http.request.max.bytes"],
            "request_timeout_ms": config["http.request.timeout.ms"],
        }


def _logins(config: BrokerConfig) -> dict[str, Login]:
    schemes = [str(scheme) for scheme in config[AUTHENTICATION]]
    if schemes == [NO_AUTHENTICATION]:
        return {}
    if NO_AUTHENTICATION in schemes:
        raise ConfigError(
            f"Invalid value {','.join(schemes)} for configuration {AUTHENTICATION}: "
            f"{NO_AUTHENTICATION} stands alone"
        )
    return {scheme: _login(config, scheme) for scheme in schemes}


def _topic(config: BrokerConfig) -> str:
    topic = str(config[REGISTRY_TOPIC])
    if not _TOPIC.fullmatch(topic) or topic in (".", ".."):
        raise ConfigError(
            f"Invalid value {topic} for configuration {REGISTRY_TOPIC}: "
            "a name of a topic has letters, digits, '.', '_' and '-', at most 249"
        )
    return topic


def _anonymous(config: BrokerConfig) -> str:
    listeners = config.broker_listeners() if config.is_broker else []
    return next((one.name for one in listeners if one.protocol == "PLAINTEXT"), "")


def _login(config: BrokerConfig, scheme: str) -> Login:
    """The first listener where what this scheme brings can log in."""
    for listener in config.broker_listeners() if config.is_broker else []:
        own = f"listener.name.{listener.name.lower()}."
        is_tls = listener.protocol == "SASL_SSL"
        if listener.protocol not in ("SASL_PLAINTEXT", "SASL_SSL") or (
            is_tls and config.texts.get(own + CLIENT_AUTH) == "required"
        ):
            continue
        text = config.texts.get(own + MECHANISMS)
        enabled = [
            str(one).strip() for one in (config[MECHANISMS] if text is None else text.split(","))
        ]
        mechanisms = [one for one in SCHEMES_OF_LOGIN[scheme] if one in enabled]
        if mechanisms:
            return Login(listener.name, mechanisms, is_tls)
    raise ConfigError(
        f"Invalid value {scheme} for configuration {AUTHENTICATION}: there is no listener of the "
        f"protocol SASL_PLAINTEXT or SASL_SSL (without {CLIENT_AUTH}=required) with "
        f"{' or '.join(SCHEMES_OF_LOGIN[scheme])} to log in at"
    )


def _listener(entry: str, serves: list[str], texts: Mapping[str, str]) -> HttpListener:
    name, equals, url = entry.partition("=")
    if not equals:
        name, url = entry.partition("://")[0].lower(), entry
    scheme, separator, address = url.partition("://")
    host, colon, port = address.removesuffix("/").rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        colon = ""
    is_port = is_number(port) and int(port) <= PORT_MAX
    if not (separator and scheme.lower() in SCHEMES and colon and is_port and "/" not in host):
        raise _wrong(entry, "expected [NAME=]http://HOST:PORT, such as http://127.0.0.1:8080")
    if not _NAME.fullmatch(name):
        raise _wrong(entry, "a name has small letters, digits, - and _, at most 64")
    number = int(port)
    tls = None
    if scheme.lower() == "https":
        tls = tls_texts(texts, name)
        _check_tls(entry, tls)
    ports = range(number, number + 1)
    return HttpListener(name, host, ports, _served(name, serves, texts), tls)


def tls_texts(texts: Mapping[str, str], name: str) -> dict[str, str]:
    """What a listener with TLS takes of all settings: its own, `listener.name.NAME.ssl.*`, before
    those of all, as Apache Kafka's listeners do."""
    own = f"{KAFKA_PREFIX}{name}."
    found = {key: text for key, text in texts.items() if key.startswith(TLS_PREFIX)}
    for key, text in texts.items():
        if key.lower().startswith(own + TLS_PREFIX):
            found[key[len(own) :]] = text
    return found


def _check_tls(entry: str, settings: dict[str, str]) -> None:
    """Read the keys now: the process that uses them starts later."""
    from kwire.http.tls import check_tls

    try:
        check_tls(settings)
    except ConfigError as error:
        raise _wrong(entry, str(error)) from None


def _wrong(entry: str, why: str) -> ConfigError:
    return ConfigError(f"Invalid value {entry} for configuration {LISTENERS}: {why}")


def _served(name: str, others: list[str], texts: Mapping[str, str]) -> tuple[str, ...]:
    """What a listener serves; all that is built where nothing says so."""
    setting = f"{LISTENER_PREFIX}{name}.serves"
    text = texts.get(setting)
    wanted = others if text is None else [part.strip() for part in text.split(",")]
    if text is None:
        setting = SERVES
    for purpose in wanted:
        if purpose not in PURPOSES:
            raise ConfigError(
                f"Invalid value {purpose} for configuration {setting}: expected some of "
                f"{', '.join(BUILT)}"
            )
        if purpose in UNBUILT:
            logger.warning("%s: %s is not built yet, and not served", setting, purpose)
    if not wanted:
        return BUILT
    return tuple(one for one in dict.fromkeys(wanted) if one in BUILT)


def _check_names(listeners: list[HttpListener], entries: list[str], own: Mapping[str, str]) -> None:
    names = [listener.name for listener in listeners]
    for at, name in enumerate(names):
        if name in names[:at]:
            raise _wrong(
                ",".join(entries), f"two listeners are called {name}; name them: NAME=http://…"
            )
        ports = listeners[at].ports
        if ports[0] and any(
            other.ports == ports and other.host == listeners[at].host for other in listeners[:at]
        ):
            raise _wrong(",".join(entries), f"two listeners have port {ports[0]}")
    for setting, text in own.items():
        name, _, rest = setting[len(LISTENER_PREFIX) :].rpartition(".")
        if rest != "serves" or name not in names:
            known = ", ".join(names) or "none"
            raise ConfigError(
                f"Unknown setting {setting}={text}: expected {LISTENER_PREFIX}NAME.serves, NAME "
                f"one of {LISTENERS} ({known})"
            )


def _check_loopback(listeners: list[HttpListener]) -> None:
    for listener in listeners:
        if not is_loopback(listener.host):
            raise ConfigError(
                f"Invalid value {listener.host or '*'}:{listener.ports[0]} for configuration "
                f"{LISTENERS}: whoever reaches it could read without a password; listen on "
                f"127.0.0.1, or set {AUTHENTICATION}=basic or {BEYOND_LOOPBACK}=true"
            )
