"""Settings that name Java classes: Kafka's own are known by name, no other can be loaded."""

from __future__ import annotations

from collections.abc import Mapping

from kwire.config.errors import ConfigError
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
MECHANISMS = ("PLAIN", "OAUTHBEARER", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI")


def check_replica_selector(name: TypedValue) -> None:
    """ConfigError for a selector other than the two that Kafka brings."""
    if name and name not in REPLICA_SELECTORS:
        raise ConfigError(
            f"Invalid value {name} for configuration replica.selector.class: accepted are "
            f"{' and '.join(REPLICA_SELECTORS)}"
        )


def check_classes(texts: Mapping[str, str]) -> None:
    """ConfigError for a class that cannot be loaded, by the texts of the settings.

    Also of one listener, or of one of its mechanisms: who would be let in by somebody else's
    class must not be let in without it.
    """
    for name, text in texts.items():
        for setting, classes in JAVA_CLASSES.items():
            if name == setting or name.endswith(f".{setting}"):
                _check_class_among(name, text.strip(), _of_mechanism(name, setting, classes))


def check_class(setting: str, name: TypedValue) -> None:
    """ConfigError for a Java class that is none of those that the setting may name."""
    if name is not None:
        _check_class_among(setting, str(name), JAVA_CLASSES[setting])


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
