"""`config.providers`: values that are kept elsewhere, `${NAME:PATH:KEY}` in a setting's text.

    config.providers=file,env,dir                    names, as placeholders use them
    config.providers.NAME.class=CLASS                one of Kafka's own, a Java name
    config.providers.NAME.param.allowed.paths=P,...  file and directory: nothing outside of these
    config.providers.NAME.param.allowlist.pattern=R  environment: only variables that match

    ${file:PATH:KEY}   the value of KEY in the properties file PATH, which is UTF-8
    ${dir:PATH:FILE}   what the file FILE in the directory PATH holds, its last line end included
    ${env:VARIABLE}    an environment variable

A placeholder ends at the first `}`; its name ends at the first colon and its path at the second.
What no provider knows stays as it is, and what comes in is not looked at again. A name without a
class is left out. A file that cannot be read, or is no file, is an error; one that may not be read
is as if it were empty. Source: KIP-297, KIP-421, KIP-887, KIP-993; measured on Apache Kafka 4.4.

Kafka's allow-list is a pattern of Java's; here it is one of RE2's, as all that others may send.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol

from kwire.config.definitions import BROKER
from kwire.config.errors import ConfigError
from kwire.config.listeners import PROTOCOLS
from kwire.config.properties import MAX_FILE_BYTES, parse_properties
from kwire.config.provider_settings import PREFIX, PROVIDERS, has_providers, is_provider_setting

ALLOWED_PATHS = "allowed.paths"
ALLOWLIST_PATTERN = "allowlist.pattern"
FILE_CLASS = "org.apache.kafka.common.config.provider.FileConfigProvider"
DIRECTORY_CLASS = "org.apache.kafka.common.config.provider.DirectoryConfigProvider"
ENVIRONMENT_CLASS = "org.apache.kafka.common.config.provider.EnvVarConfigProvider"
SECRET_BYTES_MAX = 1 << 20
"""Of one file of a directory, and of one value with everything put in."""
PORT_DIGITS = 5
PART_LETTERS_MIN = 3
"""Shorter ones would blot out the words of a line."""
_SEPARATORS = re.compile(r"(?:[\s,;=@\[\]]|:(?://)?)+")


class ProviderError(ConfigError):
    """A provider that cannot be made, or cannot give what it is asked for.

    The message is Kafka's; `why` adds what the system said, empty where there is no more to say.
    `setting` is the provider's own that is at fault, where one is.
    """

    def __init__(self, message: str, why: str = "", setting: str = "") -> None:
        super().__init__(message)
        self.why = why
        self.setting = setting

    @property
    def whole(self) -> str:
        """Setting, message and reason in one line."""
        return ": ".join(part for part in (self.setting, str(self), self.why) if part)


class Placeholder(NamedTuple):
    """`text[start:end]` is `${provider:path:key}`; the path is empty where it has none."""

    start: int
    end: int
    provider: str
    path: str
    key: str


class Provider(Protocol):
    """Knows values by path and key."""

    def get(self, path: str, key: str) -> str | None:
        """The value, None where there is none. ProviderError."""


def placeholders(text: str) -> Iterator[Placeholder]:
    """Those of a text, in order; `${...}` without a colon is none."""
    position = 0
    while (start := text.find("${", position)) >= 0:
        close = text.find("}", start)
        if close < 0:
            return
        position = close + 1
        provider, colon, rest = text[start + 2 : close].partition(":")
        if colon:
            path, second, key = rest.partition(":")
            yield Placeholder(start, position, provider, *((path, key) if second else ("", path)))


class AllowedPaths:
    """What a provider may read: anything, or what lies below some directories or is one of them.

    ProviderError for a path that is not absolute or does not exist.
    """

    def __init__(self, text: str) -> None:
        self._paths: list[str] | None = None
        if text:
            entries = text.split(",")
            while entries and not entries[-1]:
                entries.pop()
            self._paths = [_existing(entry) for entry in entries]

    def allows(self, path: str) -> bool:
        """Whether `path`, with its links followed, may be read; no when it does not exist."""
        if self._paths is None:
            return True
        try:
            real = os.path.realpath(path, strict=True)
        except (OSError, ValueError):
            return False
        return any(os.path.commonpath((allowed, real)) == allowed for allowed in self._paths)


def _existing(path: str) -> str:
    if not os.path.isabs(path):
        raise ProviderError(f"Path {path} is not absolute")
    try:
        return os.path.realpath(path, strict=True)
    except (OSError, ValueError):
        raise ProviderError(f"Path {path} does not exist") from None


class FileProvider:
    """Keys of properties files; a file is read once in the provider's life."""

    PARAMETER = ALLOWED_PATHS

    def __init__(self, parameters: Mapping[str, str]) -> None:
        self._allowed = AllowedPaths(parameters.get(ALLOWED_PATHS, ""))
        self._read: dict[str, dict[str, str]] = {}

    def get(self, path: str, key: str) -> str | None:
        if not path or not self._allowed.allows(path):
            return None
        found = self._read.get(path)
        if found is None:
            message = f"Could not read properties from file {path}"
            text = _read_text(path, MAX_FILE_BYTES, message)
            try:
                found = self._read[path] = parse_properties(text)
            except ConfigError as error:
                raise ProviderError(message, str(error)) from None
        return found.get(key)


class DirectoryProvider:
    """Files of a directory, as secrets of containers are mounted."""

    PARAMETER = ALLOWED_PATHS

    def __init__(self, parameters: Mapping[str, str]) -> None:
        self._allowed = AllowedPaths(parameters.get(ALLOWED_PATHS, ""))

    def get(self, path: str, key: str) -> str | None:
        if not path or not self._allowed.allows(path) or os.path.basename(key) != key:
            return None
        file = os.path.join(path, key)
        # An entry of the directory, and a file: links to files are what such directories hold.
        if not key or not _is_file(file):
            return None
        return _read_text(file, SECRET_BYTES_MAX, f"Could not read file {file} for property {key}")


class EnvironmentProvider:
    """Variables of the process's environment."""

    PARAMETER = ALLOWLIST_PATTERN

    def __init__(self, parameters: Mapping[str, str]) -> None:
        self._matches = _pattern(parameters.get(ALLOWLIST_PATTERN))

    def get(self, path: str, key: str) -> str | None:
        if path:
            raise ProviderError(
                f"Path is not supported for EnvVarConfigProvider, invalid value '{path}'"
            )
        return os.environ.get(key) if self._matches(key) else None


def _pattern(text: str | None) -> Callable[[str], bool]:
    if text is None:
        return lambda name: True
    from kwire.protocol.errors import KafkaError
    from kwire.protocol.regex import compile_pattern

    try:
        return compile_pattern(text)
    except KafkaError as error:
        raise ProviderError(error.message or "") from None


def _is_file(path: str) -> bool:
    try:
        return os.path.isfile(path)
    except ValueError:
        return False


def _read_text(path: str, bytes_max: int, message: str) -> str:
    """The UTF-8 text of a file of a bounded size; ProviderError with `message`."""
    try:
        # Without O_NONBLOCK the opening of a pipe would wait for a writer, and all else with it.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        try:
            is_file = stat.S_ISREG(os.fstat(handle).st_mode)
            data = _up_to(handle, bytes_max + 1) if is_file else b""
        finally:
            os.close(handle)
    except (OSError, ValueError) as error:
        raise ProviderError(message, getattr(error, "strerror", "") or str(error)) from None
    if not is_file:
        raise ProviderError(message, "it is no file")
    if len(data) > bytes_max:
        raise ProviderError(message, f"it is larger than {bytes_max} bytes")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise ProviderError(message, "it is not UTF-8") from None


def _up_to(handle: int, size: int) -> bytes:
    parts: list[bytes] = []
    while size and (part := os.read(handle, size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


Kind = type[FileProvider] | type[DirectoryProvider] | type[EnvironmentProvider]
CLASSES: dict[str, Kind] = {
    FILE_CLASS: FileProvider,
    DIRECTORY_CLASS: DirectoryProvider,
    ENVIRONMENT_CLASS: EnvironmentProvider,
}
_CLASS_SUFFIX = ".class"
_PARAMETER = ".param."


class Providers:
    """The providers that `settings` list, by their names. ProviderError for one that cannot be."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.given: dict[str, None] = {}
        self._providers: dict[str, Provider] = {}
        for name in settings.get(PROVIDERS, "").split(","):
            self.add(name, settings)

    def add(self, name: str, settings: Mapping[str, str]) -> None:
        """The provider `name`, where `settings` have a class for it. ProviderError."""
        class_setting = f"{PREFIX}{name}{_CLASS_SUFFIX}"
        class_name = settings.get(class_setting)
        if class_name is None:
            return
        kind = CLASSES.get(class_name)
        if kind is None:
            raise ProviderError(
                f"Invalid value {class_name} for configuration {class_setting}: Could not load "
                "config provider class or one of its dependencies",
                f"accepted are {', '.join(CLASSES)}",
            )
        self._providers[name] = _made(kind, f"{PREFIX}{name}{_PARAMETER}", settings)

    def resolve(self, text: str) -> tuple[str, list[str]]:
        """`text` with what is known put in, and the placeholders that stay. ProviderError."""
        parts: list[str] = []
        unknown: list[str] = []
        position = size = 0
        for found in placeholders(text):
            provider = self._providers.get(found.provider)
            value = None if provider is None else provider.get(found.path, found.key)
            if value is None:
                unknown.append(text[found.start : found.end])
                continue
            self.given[value] = None
            parts += (text[position : found.start], value)
            position = found.end
            size += len(value)
            if size > SECRET_BYTES_MAX:
                raise ProviderError(f"a value of more than {SECRET_BYTES_MAX} characters")
        return "".join([*parts, text[position:]]), unknown


def _made(kind: Kind, prefix: str, settings: Mapping[str, str]) -> Provider:
    parameters = {
        setting.removeprefix(prefix): text
        for setting, text in settings.items()
        if setting.startswith(prefix)
    }
    try:
        return kind(parameters)
    except ProviderError as error:
        raise ProviderError(str(error), error.why, prefix + kind.PARAMETER) from None


class Resolved(NamedTuple):
    """Settings with what providers know put in.

    `as_set` has the texts, as they were set, of those that are others now; `notes` are lines to
    log: what was left as it is, and why. `given` is what providers gave, for `without`.
    """

    texts: dict[str, str]
    as_set: dict[str, str]
    notes: list[str]
    given: tuple[str, ...] = ()


def resolve_settings(settings: Mapping[str, str]) -> Resolved:
    """What a node is started with; ConfigError in one line that names the setting."""
    texts = dict(settings)
    if not has_providers(texts):
        return Resolved(texts, {}, [])
    try:
        providers = Providers(texts)
    except ProviderError as error:
        raise ConfigError(error.whole) from None
    as_set: dict[str, str] = {}
    notes = _notes(texts)
    for name, text in settings.items():
        if is_provider_setting(name) or "${" not in text:
            continue
        try:
            texts[name], unknown = providers.resolve(text)
        except ProviderError as error:
            raise ConfigError(f"{name}: {error.whole}") from None
        if texts[name] != text:
            as_set[name] = text
        if unknown:
            notes.append(f"{name} keeps {', '.join(unknown)}: no config provider knows a value")
    return Resolved(texts, as_set, notes, tuple(providers.given))


def without(message: str, given: Iterable[str]) -> str:
    """A line for people without what providers gave, nor the parts that settings are read in.

    Ports, protocols and the words of settings' names stay: they are no secrets, and stand in such
    lines anyway.
    """
    parts = {part for value in given for part in (value, *_SEPARATORS.split(value))}
    known = {*map(str.lower, PROTOCOLS), *(word for name in BROKER for word in name.split("."))}
    for part in sorted(parts, key=len, reverse=True):
        is_port = part.isdecimal() and len(part) <= PORT_DIGITS
        if len(part) >= PART_LETTERS_MIN and not is_port and part.lower() not in known:
            message = re.sub(re.escape(part), "[hidden]", message, flags=re.IGNORECASE)
    return message


def _notes(settings: Mapping[str, str]) -> list[str]:
    """A line for every provider setting that is without effect."""
    listed = settings[PROVIDERS].split(",")
    used = {PROVIDERS}
    notes: list[str] = []
    for name in listed:
        class_setting = f"{PREFIX}{name}{_CLASS_SUFFIX}"
        kind = CLASSES.get(settings.get(class_setting, ""))
        if kind is None:
            notes.append(f"{PROVIDERS}: {name!r} is left out, as {class_setting} is not set")
            continue
        used.add(class_setting)
        used.add(f"{PREFIX}{name}{_PARAMETER}{kind.PARAMETER}")
    notes += [
        f"{name} is without effect: no provider in {PROVIDERS} reads it"
        for name in settings
        if name.startswith(PREFIX) and name not in used
    ]
    return notes


def resolve_change(changed: Mapping[str, str]) -> Resolved:
    """All that a client wants a broker, or all brokers, to have set while they run.

    Only providers that are set with it count, as in Kafka: not those that the node was started
    with. They are left out of the result. ProviderError with Kafka's text.
    """
    providers = Providers(changed)
    texts: dict[str, str] = {}
    as_set: dict[str, str] = {}
    for name, text in changed.items():
        if not is_provider_setting(name):
            texts[name] = providers.resolve(text)[0]
            if texts[name] != text:
                as_set[name] = text
    return Resolved(texts, as_set, [])


Levels = tuple[Mapping[str, str], Mapping[str, str]]


class StoredLevels(NamedTuple):
    """Dynamic settings of the cluster's default and of one broker, as `Resolved` has them.

    `refused` are (level, setting, why) of what no provider gave anything for.
    """

    texts: Levels
    as_set: Levels
    refused: list[tuple[int, str, str]]


def resolve_stored(static: Mapping[str, str], levels: Levels) -> StoredLevels:
    """What is stored, by the providers of all levels together; never an error.

    A provider that cannot be made is named among what is refused, and does not count.
    """
    settings = {**static, **levels[0], **levels[1]}
    refused: list[tuple[int, str, str]] = []
    providers = Providers({})
    for name in settings.get(PROVIDERS, "").split(","):
        try:
            providers.add(name, settings)
        except ProviderError as error:
            setting = error.setting or f"{PREFIX}{name}{_CLASS_SUFFIX}"
            level = next((at for at in (1, 0) if setting in levels[at]), None)
            if level is not None:
                refused.append((level, setting, str(error)))
    texts: tuple[dict[str, str], dict[str, str]] = ({}, {})
    as_set: tuple[dict[str, str], dict[str, str]] = ({}, {})
    for level, stored in enumerate(levels):
        for name, text in stored.items():
            try:
                resolved = text if is_provider_setting(name) else providers.resolve(text)[0]
            except ProviderError as error:
                refused.append((level, name, error.whole))
                continue
            texts[level][name] = resolved
            if resolved != text:
                as_set[level][name] = text
    return StoredLevels(texts, as_set, refused)
