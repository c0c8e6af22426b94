"""What the settings of a listener say about SASL: its mechanisms, and who may log in by PLAIN.

Looked for in Kafka's order, LISTENER and MECHANISM in small letters:

    listener.name.LISTENER.MECHANISM.sasl.jaas.config
    the section LISTENER.KafkaServer of the JAAS file, else KafkaServer

and other settings with `listener.name.LISTENER.` in front of those for all listeners. Source:
KIP-85, KIP-103; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from kwire.config.errors import ConfigError
from kwire.config.java_properties import LOGIN_CONFIG
from kwire.config.values import TypedValue
from kwire.security.sasl import jaas
from kwire.security.sasl.mechanisms import (
    BUILT,
    OAUTHBEARER,
    PLAIN,
    SCRAM_SHA_256,
    SCRAM_SHA_512,
)

ENABLED = "sasl.enabled.mechanisms"
JAAS = "sasl.jaas.config"
MAX_REAUTH = "connections.max.reauth.ms"
RECEIVE_SIZE = "sasl.server.max.receive.size"
FAILURE_DELAY = "connection.failed.authentication.delay.ms"
USER_PREFIX = "user_"

_MODULES = {
    PLAIN: jaas.PLAIN_MODULE,
    SCRAM_SHA_256: jaas.SCRAM_MODULE,
    SCRAM_SHA_512: jaas.SCRAM_MODULE,
    OAUTHBEARER: jaas.OAUTHBEARER_MODULE,
}
FILE_BYTES_MAX = 1 << 20


class Settings(Protocol):
    """A node's settings (`kwire/config/broker_config.py`)."""

    @property
    def texts(self) -> Mapping[str, str]: ...

    @property
    def java_properties(self) -> Mapping[str, str]: ...

    def __getitem__(self, name: str, /) -> TypedValue: ...

    def of_listener(self, listener: str, name: str, mechanism: str = "", /) -> TypedValue: ...


class ListenerSasl(NamedTuple):
    """Of one listener: mechanisms in order, passwords of PLAIN by user, ms to authenticate anew by
    mechanism, bytes of a frame before authentication, ms that a refused client waits."""

    mechanisms: tuple[str, ...]
    passwords: Mapping[str, str]
    session_ms: Mapping[str, int]
    receive_bytes_max: int
    failure_delay_ms: int

    def __repr__(self) -> str:
        return f"ListenerSasl({', '.join(self.mechanisms)})"


def listener_sasl(config: Settings, listener: str) -> ListenerSasl:
    """The SASL settings of a listener; ConfigError, one line, for what cannot be used."""
    mechanisms = tuple(config.of_listener(listener, ENABLED))
    if not mechanisms:
        raise ConfigError(f"listener {listener}: {ENABLED} is empty; accepted: {_accepted()}")
    for mechanism in mechanisms:
        if mechanism not in BUILT:
            raise ConfigError(
                f"listener {listener}: {ENABLED}={','.join(mechanisms)} is refused: {mechanism} "
                f"is not built; accepted: {_accepted()}"
            )
    passwords: Mapping[str, str] = {}
    for mechanism in mechanisms:
        module = server_module(config, listener, mechanism)
        if mechanism == PLAIN:
            if module is None:
                raise ConfigError(
                    f"listener {listener}: PLAIN needs users; accepted: "
                    f"{jaas_name(listener, PLAIN)}={jaas.PLAIN_MODULE} required "
                    'user_NAME="PASSWORD";'
                )
            passwords = plain_users(module)
    return ListenerSasl(
        mechanisms=mechanisms,
        passwords=passwords,
        session_ms={
            mechanism: int(config.of_listener(listener, MAX_REAUTH, mechanism))
            for mechanism in mechanisms
        },
        receive_bytes_max=int(config.of_listener(listener, RECEIVE_SIZE)),
        failure_delay_ms=int(config[FAILURE_DELAY]),
    )


def jaas_name(listener: str, mechanism: str) -> str:
    """The setting that names a listener's login module of a mechanism."""
    return f"listener.name.{listener.lower()}.{mechanism.lower()}.{JAAS}"


def server_module(config: Settings, listener: str, mechanism: str) -> jaas.LoginModule | None:
    """The login module of a mechanism on a listener, None where nothing names one."""
    name = jaas_name(listener, mechanism)
    text = config.texts.get(name)
    if text is not None:
        return one_module(name, text, mechanism)
    path = config.java_properties.get(LOGIN_CONFIG)
    return None if path is None else _module_of_file(path, listener, mechanism)


def _module_of_file(path: str, listener: str, mechanism: str) -> jaas.LoginModule | None:
    """The mechanism's module in a JAAS file: in the listener's section where there is one."""
    try:
        with open(path, "rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
        sections = jaas.parse_jaas_file(data.decode())
    except OSError as error:
        raise ConfigError(f"{LOGIN_CONFIG}={path}: {error.strerror}") from None
    except (ConfigError, UnicodeDecodeError) as error:
        raise ConfigError(f"{LOGIN_CONFIG}={path}: {error}") from None
    names = (f"{listener.lower()}.KafkaServer", "KafkaServer")
    section = next((sections[name] for name in names if name in sections), [])
    for module in section:
        jaas.check_module(module)
        if module.name == _MODULES[mechanism]:
            return module
    return None


def one_module(name: str, text: str, mechanism: str) -> jaas.LoginModule:
    """The one module of a setting's text, which has to be the mechanism's."""
    try:
        modules = jaas.parse_jaas(text)
        if len(modules) != 1:
            raise ConfigError(
                f"JAAS config property contains {len(modules)} login modules, should be 1 module"
            )
        jaas.check_module(modules[0])
        wanted = _MODULES.get(mechanism)
        if wanted is not None and modules[0].name != wanted:
            raise ConfigError(f"{modules[0].name} is not the module of {mechanism}: {wanted}")
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from None
    return modules[0]


def plain_users(module: jaas.LoginModule) -> dict[str, str]:
    """The passwords that `user_NAME=PASSWORD` options give, by user."""
    return {
        name[len(USER_PREFIX) :]: value
        for name, value in module.options.items()
        if name.startswith(USER_PREFIX)
    }


def _accepted() -> str:
    return f"one or more of {', '.join(BUILT)}"
