"""A node's settings: five sources, one precedence, typed values.

Kafka's defaults < the developer table < `server.properties` < `KAFKA_*` environment <
`-o name=value`. `load` checks everything that is set; defaults are parsed when they are read.

A name that nobody knows is an error where it was certainly meant for this broker: on the command
line, below `kwire.`, and where it nearly is a known one. In files and in the environment any
other is one warning a source, and described with a hidden value, as Kafka does.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping

from kwire.config import environment as environment_settings
from kwire.config import listeners as listeners_module
from kwire.config import names
from kwire.config.authorizer import AUTHORIZER_SETTINGS
from kwire.config.definitions import BROKER, KWIRE, ConfigDefinition
from kwire.config.developer import DEVELOPER_SETTINGS
from kwire.config.errors import ConfigError
from kwire.config.java_properties import KNOWN as JAVA_KNOWN
from kwire.config.java_properties import java_properties
from kwire.config.listener_settings import PREFIX, is_read_per_listener, names_of_listener
from kwire.config.listeners import Listener
from kwire.config.provider_settings import has_providers, is_provider_setting
from kwire.config.usable import range_missed
from kwire.config.values import TypedValue, Value, to_text

OWN_PREFIXES = ("kwire.", "http.")
"""Of the settings that Kafka does not have."""
HTTP_LISTENER_PREFIX = "http.listener."
STRING_BYTES_MAX = 32767
"""Of a string in Kafka's records."""
OF_ONE_LISTENER = "one listener's own settings are not told apart from all listeners' yet"
PLUGIN_PREFIXES = ("rsm.config.", "rlmm.config.")
SECRET_WORDS = ("password", "secret", "jaas")


class Source(enum.Enum):
    """Where a setting comes from; later members win."""

    DEFAULT = "default"
    DEVELOPER = "developer table"
    PROPERTIES = "server.properties"
    ENVIRONMENT = "environment"
    OVERRIDE = "command line"


class BrokerConfig(Mapping[str, TypedValue]):
    """The static settings of one node; `config["log.segment.bytes"]` is the typed value.

    `texts` holds what was set, as text, developer table included: DescribeConfigs shows these as
    static. What config providers know has been put in; `as_set` keeps how such texts were before.
    `warnings` are the lines to log at start. `cluster_id` is what empty directories are formatted
    with, where the environment says so; `java_properties` are system properties that count here,
    too. Immutable after `load`.
    """

    def __init__(self, texts: dict[str, str], sources: dict[str, Source], developer: bool) -> None:
        self.texts = texts
        self.developer = developer
        self.as_set: dict[str, str] = {}
        self.java_properties: dict[str, str] = {}
        self.warnings: list[str] = []
        self.cluster_id: str | None = None
        self._sources = sources
        self._values: dict[str, Value] = {}
        self._unknown: list[str] = []

    @classmethod
    def load(
        cls,
        properties: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        overrides: Mapping[str, str] | None = None,
        developer: bool = True,
        container: bool = False,
    ) -> BrokerConfig:
        """Check and combine the sources; ConfigError is one line naming setting and value.

        `container`: the whole environment is this broker's, `CLUSTER_ID` too.
        """
        texts: dict[str, str] = {}
        sources: dict[str, Source] = {}
        from_environment = environment_settings.settings_of(environment or {})
        layers: list[tuple[Source, Mapping[str, str]]] = [
            (Source.DEVELOPER, DEVELOPER_SETTINGS if developer else {}),
            (Source.PROPERTIES, properties or {}),
            (Source.ENVIRONMENT, {name: value for name, (value, _) in from_environment.items()}),
            (Source.OVERRIDE, {k: v for k, v in (overrides or {}).items() if k not in JAVA_KNOWN}),
        ]
        for source, layer in layers:
            for name, text in layer.items():
                texts[name] = text
                sources[name] = source
        if "broker.id" in texts and sources.get("node.id") is Source.DEVELOPER:
            del texts["node.id"], sources["node.id"]
        as_set: dict[str, str] = {}
        notes: list[str] = []
        given: tuple[str, ...] = ()
        if has_providers(texts):
            from kwire.config.providers import resolve_settings

            texts, as_set, notes, given = resolve_settings(texts)
        config = cls(texts, sources, developer)
        config.java_properties = java_properties(environment or {}, overrides or {})
        config.as_set = as_set
        config.warnings += notes
        config.cluster_id = environment_settings.cluster_id_of(
            environment or {}, container=container
        )
        for name, text in texts.items():
            try:
                config._admit(name, text)
            except ConfigError as error:
                variable = from_environment.get(name, ("", ""))[1]
                where = f" (from {variable})" if sources[name] is Source.ENVIRONMENT else ""
                raise ConfigError(f"{error}{where}") from None
        config._warn_of_unknown({key: var for key, (_, var) in from_environment.items()})
        config._check_together(given)
        return config

    def with_texts(self, texts: dict[str, str]) -> BrokerConfig:
        """This configuration with `texts` as what is set; ConfigError for a malformed one.

        What a change at run time would leave. Only each value is checked, nothing is warned of;
        of settings with a listener's prefix only those are read that it may have and change.
        """
        result = BrokerConfig(texts, self._sources, self.developer)
        result._values = dict(self._values)
        result.java_properties = self.java_properties
        for name in self.texts:
            if name not in texts:
                result._values.pop(name, None)
        for name, text in texts.items():
            definition = definition_of(name)
            if self.texts.get(name) == text:
                continue
            if definition is None:
                continue
            may_change = definition.update_mode != "read-only"
            if definition.name == name or (may_change and is_read_per_listener(definition.name)):
                result._values[name] = definition.parse(text)
        return result

    def _warn_of_unknown(self, variables: Mapping[str, str]) -> None:
        """One line a source; `variables` are the settings of the environment by name."""
        for source in (Source.PROPERTIES, Source.ENVIRONMENT):
            unknown = [name for name in self._unknown if self._sources[name] is source]
            if not unknown:
                continue
            shown = [
                _as_written(name, variables if source is Source.ENVIRONMENT else {})
                for name in unknown
            ]
            verb = "is no setting" if len(unknown) == 1 else "are no settings"
            self.warnings.append(
                f"{names.listed(shown)} {verb} of Kafka's brokers or of kwire: without effect"
            )

    def _admit(self, name: str, text: str) -> None:
        definition = definition_of(name)
        try:
            size = len(text.encode())
        except UnicodeEncodeError:
            if definition is not None or is_provider_setting(name):
                raise ConfigError(f"{name}: its value is not UTF-8") from None
            # Somebody else's: it has to be sent to those who ask for the configs all the same.
            self.texts[name] = text = text.encode(errors="replace").decode()
            size = len(text)
        if name == "broker.rack" and size > STRING_BYTES_MAX:
            raise ConfigError(f"{name}: {size} bytes; accepted: at most {STRING_BYTES_MAX}")
        if definition is None:
            if is_provider_setting(name):
                return
            if name.startswith(HTTP_LISTENER_PREFIX):
                return  # looked at with the listeners themselves
            if name.startswith(PLUGIN_PREFIXES):
                self.warnings.append(f"{name} is accepted without effect: no plug-ins are loaded")
                return
            if name in AUTHORIZER_SETTINGS:
                self._values[name] = text
                return
            self._admit_unknown(name, self.as_set.get(name, text))
            return
        if definition.dynamic_only:
            # As in Kafka, where it counts only when it comes by AlterConfigs.
            self.warnings.append(f"{name} is without effect here: it is only set dynamically")
            return
        # What came out of a provider may be a secret, whatever it is used for.
        shown = "[hidden]" if definition.sensitive else self.as_set.get(name, text)
        try:
            value = definition.parse(text)
        except ConfigError as error:
            reason = str(error)
            if name in self.as_set:
                reason = f"Invalid value {shown} for configuration {name}"
            raise ConfigError(f"{reason}; accepted: {definition.accepts}") from None
        works = range_missed(definition.name, value)
        if works is not None:
            default = to_text(definition.default)
            self.warnings.append(
                f"{name}={shown} cannot be used; accepted: {works}; {default} is used"
            )
            value = definition.default
        self._values[name] = value
        if name != definition.name or value != definition.default:
            if definition.support == "refused":
                raise ConfigError(
                    f"{name}={shown} is refused: {definition.note}; accepted: "
                    + (to_text(definition.default) or "nothing (leave it out)")
                )
            if name != definition.name and not acts_for_listeners(definition):
                self.warnings.append(f"{name}={shown} is without effect: {OF_ONE_LISTENER}")
            if definition.support == "accepted" and self._sources[name] is not Source.DEVELOPER:
                self.warnings.append(
                    f"{name}={shown} is accepted without effect: {definition.note}"
                )

    def _admit_unknown(self, name: str, text: str) -> None:
        """Keep a name that is somebody else's for the warning; ConfigError for a misspelt one."""
        near = names.near_misses(name, [*BROKER, *KWIRE, *_behind_prefix(name)])
        is_ours = name.startswith("kwire.") or self._sources[name] is Source.OVERRIDE
        if near or is_ours:
            raise ConfigError(_unknown(name, text, near))
        self._unknown.append(name)

    def __getitem__(self, name: str) -> TypedValue:
        """The typed value: what was set, else Kafka's default; KeyError for an unknown name."""
        try:
            return self._values[name]
        except KeyError:
            definition = definition_of(name)
            if definition is None:
                raise
            value = self._values[name] = definition.default
            return value

    def is_set(self, name: str) -> bool:
        """Whether it has a value of its own."""
        return name in self.texts

    def __iter__(self) -> Iterator[str]:
        yield from BROKER
        yield from KWIRE

    def __len__(self) -> int:
        return len(BROKER) + len(KWIRE)

    def of_listener(self, listener: str, name: str, mechanism: str = "") -> TypedValue:
        """The value of `name` for one listener, and where given for one SASL mechanism on it."""
        for prefixed in names_of_listener(listener, name, mechanism):
            definition = definition_of(prefixed)
            if prefixed in self.texts and definition is not None:
                return definition.parse(self.texts[prefixed])
        return self[name]

    def source_of(self, name: str) -> Source:
        """Where the value of `name` comes from."""
        return self._sources.get(name, Source.DEFAULT)

    @property
    def node_id(self) -> int:
        """`node.id`, or `broker.id` where only that is set."""
        node_id = self["node.id"]
        return int(self["broker.id"] if node_id is None else node_id)

    @property
    def log_directories(self) -> list[str]:
        """`log.dirs`, or `log.dir`."""
        return list(self["log.dirs"] or self["log.dir"])

    @property
    def is_broker(self) -> bool:
        return "broker" in self["process.roles"]

    @property
    def is_controller(self) -> bool:
        return "controller" in self["process.roles"]

    def protocol_map(self) -> dict[str, str]:
        """Listener name -> security protocol.

        As Kafka has it, a controller listener without an entry is PLAINTEXT as long as the map
        itself was not set.
        """
        protocols = listeners_module.parse_protocol_map(self["listener.security.protocol.map"])
        if "listener.security.protocol.map" not in self.texts:
            for name in self["controller.listener.names"] or []:
                protocols.setdefault(name.upper(), "PLAINTEXT")
        return protocols

    def listeners(self) -> list[Listener]:
        """Every listener of this node, the controller's too."""
        return listeners_module.parse_listeners("listeners", self["listeners"], self.protocol_map())

    def broker_listeners(self) -> list[Listener]:
        """The listeners for clients and other brokers."""
        controller = self.controller_listener_names()
        return [listener for listener in self.listeners() if listener.name not in controller]

    def controller_listener_names(self) -> list[str]:
        return [name.upper() for name in self["controller.listener.names"] or []]

    def advertised_listeners(self, host_name: Callable[[], str]) -> list[Listener]:
        """What clients are told to connect to; `host_name()` names this host when needed."""
        if self["advertised.listeners"] is None:
            return listeners_module.default_advertised(self.broker_listeners(), host_name)
        controller = self.controller_listener_names()
        advertised = self._parsed_advertised(host_name)
        return [listener for listener in advertised if listener.name not in controller]

    def _parsed_advertised(self, host_name: Callable[[], str]) -> list[Listener]:
        """`advertised.listeners`; one without a host means this host's name, as with Kafka."""
        advertised = listeners_module.parse_listeners(
            "advertised.listeners", self["advertised.listeners"], self.protocol_map()
        )
        return listeners_module.with_hosts(advertised, host_name)

    def advertised_controller_listeners(self, host_name: Callable[[], str]) -> list[Listener]:
        """The controller listeners as other nodes reach them."""
        names = self.controller_listener_names()
        own = [listener for listener in self.listeners() if listener.name in names]
        found = {
            listener.name: listener
            for listener in listeners_module.default_advertised(own, host_name)
        }
        if self["advertised.listeners"] is not None:
            for listener in self._parsed_advertised(host_name):
                if listener.name in found:
                    found[listener.name] = listener
        return list(found.values())

    def bootstraps_from_itself(self) -> bool:
        """Whether `controller.quorum.bootstrap.servers` names nothing but this very node.

        Such a node can only be the first of its quorum, and may format itself at first use.
        """
        names = self.controller_listener_names()
        own = [listener for listener in self.listeners() if listener.name in names]
        servers = self["controller.quorum.bootstrap.servers"]
        return bool(servers) and all(
            any(listeners_module.is_at(listener, server) for listener in own) for server in servers
        )

    def inter_broker_listener_name(self) -> str:
        """The listener that brokers use between themselves."""
        name = self["inter.broker.listener.name"]
        return str(name).upper() if name else str(self["security.inter.broker.protocol"])

    def _check_together(self, given: tuple[str, ...]) -> None:
        """ConfigError without what config providers gave: it may be a secret."""
        from kwire.config.consistency import check_consistency

        try:
            check_consistency(self)
        except ConfigError as error:
            if not given:
                raise
            from kwire.config.providers import without

            raise ConfigError(without(str(error), given)) from None


def acts_for_listeners(definition: ConfigDefinition) -> bool:
    """Whether a listener's own value (`listener.name.x.`) has its effect."""
    return definition.support != "acts" or is_read_per_listener(definition.name)


def definition_of(name: str) -> ConfigDefinition | None:
    """The definition behind a setting's name, `listener.name.x.` prefixes included."""
    if name in BROKER:
        return BROKER[name]
    if name.startswith(OWN_PREFIXES):
        return KWIRE.get(name)
    if name.startswith(PREFIX):
        # listener.name.LISTENER[.MECHANISM].CONFIG: listener names hold no dot.
        _, _, rest = name[len(PREFIX) :].partition(".")
        while rest:
            if rest in BROKER:
                return BROKER[rest]
            _, _, rest = rest.partition(".")
    return None


def synonyms_of(name: str) -> tuple[str, ...]:
    """A setting's synonyms in order: with a listener prefix, the setting and its bare form."""
    definition = definition_of(name)
    if definition is None:
        return (name,)
    if definition.name != name:
        return (name, *definition.synonyms)
    return definition.synonyms


def _behind_prefix(name: str) -> list[str]:
    """The known settings with the `listener.name.x.` prefix of `name`, where it has one."""
    if not name.startswith(PREFIX):
        return []
    listener, dot, _ = name[len(PREFIX) :].partition(".")
    return [f"{PREFIX}{listener}.{known}" for known in BROKER] if dot else []


def _as_written(name: str, variables: Mapping[str, str]) -> str:
    """An unknown name as the user wrote it, with the broker's setting where it is a topic's."""
    behind = [known for known, definition in BROKER.items() if definition.topic_config == name]
    behind.sort(key=lambda known: known != f"log.{name}")
    shown = variables.get(name, name)
    return f"{shown} (a topic's; the broker's is {behind[0]})" if behind else shown


def _may_be_secret(name: str, near: list[str]) -> bool:
    """Whether an unknown setting is a misspelt one whose value nobody may see."""
    secrets = [known for known, definition in BROKER.items() if definition.sensitive]
    return any(word in name.lower() for word in SECRET_WORDS) or any(
        one.endswith(secret) for one in near for secret in secrets
    )


def _unknown(name: str, text: str, near: list[str]) -> str:
    """One line for an unknown setting, with the nearest known names."""
    from difflib import get_close_matches

    near = near or get_close_matches(name, [*BROKER, *KWIRE], n=3, cutoff=0.75)
    message = f"Unknown setting {name}={'[hidden]' if _may_be_secret(name, near) else text}"
    if near:
        return f"{message}: did you mean {' or '.join(near)}?"
    return f"{message}: accepted are Kafka's broker settings and those of kwire (kwire configs)"
