"""Valid values: the `check` column of the tables, in Kafka's wording (measured on Kafka 4.4).

Notation, one word and its arguments:

    range LOW [HIGH]    bounds, inclusive          gzip-level     1 to 9, or -1
    one A,B             one of these               one-nocase A,B in any case
    list [A,B]          nothing empty in it        list+ [A,B]    the same, and not empty
    non-empty           a string with something    replicas       `*` or partition:broker entries
    endpoints           host:port entries          voters         id@host:port entries
    offset-reset        earliest, latest or by_duration:ISO-8601

What a `list` has twice counts once (KAFKA-19875).
"""

from __future__ import annotations

from kwire.config.errors import ConfigError
from kwire.config.values import Value, parse, to_text


def without_repeats(rule: str, value: Value) -> Value:
    """A list under a `list` rule without what it has twice; any other value as it is."""
    if isinstance(value, list) and rule.partition(" ")[0] in ("list", "list+"):
        return list(dict.fromkeys(value))
    return value


def check_repeats(name: str, rule: str, value: Value) -> None:
    """ConfigError when a list under a `list` rule has something twice."""
    if isinstance(value, list) and value != without_repeats(rule, value):
        raise ConfigError(f"Configuration '{name}' values must not be duplicated.")


def check(name: str, rule: str, value: Value) -> None:
    """Raise ConfigError, worded as Kafka does, when `value` breaks `rule`."""
    if not rule or value is None:
        return
    word, _, argument = rule.partition(" ")
    _RULES[word](name, argument, value)


def advice(kind: str, rule: str) -> str:
    """What a config of this type and rule accepts, for people: `an int of at least 1`."""
    word, _, argument = rule.partition(" ")
    article = "an" if kind == "int" else "a"
    text = f"{article} {kind}"
    if word == "range":
        low, _, high = argument.partition(" ")
        text += f" from {low} to {high}" if high else f" of at least {low}"
    elif word in ("one", "one-nocase"):
        text = "one of " + argument.replace(",", ", ")
    elif word in ("list", "list+"):
        text = "a comma-separated list" + (" of " + argument.replace(",", ", ") if argument else "")
    elif word in _ADVICE:
        text = _ADVICE[word]
    elif kind == "boolean":
        text = "true or false"
    return text


_ADVICE = {
    "gzip-level": "a number from 1 to 9, or -1",
    "non-empty": "a string that is not empty",
    "replicas": "* or a list of partition:broker",
    "endpoints": "a list of host:port",
    "voters": "a list of id@host:port",
    "offset-reset": "earliest, latest or by_duration:PnDTnHnMn.nS",
}


def _invalid(name: str, value: Value, why: str) -> ConfigError:
    return ConfigError(f"Invalid value {to_text(value)} for configuration {name}: {why}")


def _range(name: str, argument: str, value: Value) -> None:
    low, _, high = argument.partition(" ")
    assert isinstance(value, int | float)
    if value < float(low) if "." in low else value < int(low):
        raise _invalid(name, value, f"Value must be at least {low}")
    if high and (value > float(high) if "." in high else value > int(high)):
        raise _invalid(name, value, f"Value must be no more than {high}")


def _gzip_level(name: str, argument: str, value: Value) -> None:
    assert isinstance(value, int)
    if value != -1 and not 1 <= value <= 9:
        raise _invalid(name, value, "Value must be between 1 and 9 or equal to -1")


def _one(name: str, argument: str, value: Value) -> None:
    if value not in argument.split(","):
        raise _invalid(name, value, "String must be one of: " + argument.replace(",", ", "))


def _one_nocase(name: str, argument: str, value: Value) -> None:
    assert isinstance(value, str)
    if value.upper() not in argument.split(","):
        options = argument.replace(",", ", ")
        raise _invalid(name, value, f"String must be one of (case insensitive): {options}")


def _list(name: str, argument: str, value: Value) -> None:
    assert isinstance(value, list)
    for entry in value:
        if not entry:
            raise ConfigError(f"Configuration '{name}' values must not be empty.")
        if argument:
            _one(name, argument, entry)


def _list_with_entries(name: str, argument: str, value: Value) -> None:
    if not value:
        options = "[" + argument.replace(",", ", ") + "]" if argument else "any non-empty value"
        raise ConfigError(
            f"Configuration '{name}' must not be empty. Valid values include: {options}"
        )
    _list(name, argument, value)


def _non_empty(name: str, argument: str, value: Value) -> None:
    if not value:
        raise _invalid(name, value, "String must be non-empty")


def _is_replica(entry: str) -> bool:
    partition, colon, broker = entry.partition(":")
    return bool(colon) and all(part.isdecimal() and part.isascii() for part in (partition, broker))


def _replicas(name: str, argument: str, value: Value) -> None:
    assert isinstance(value, list)
    if value == ["*"] or all(not entry or _is_replica(entry) for entry in value):
        return
    raise ConfigError(
        f"Invalid value [{', '.join(value)}] for configuration {name}: {name} must be the literal "
        "'*' or a list of replicas in the following format: "
        "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
    )


def is_number(text: str) -> bool:
    """Whether a text is digits, and no more of them than a port or a node's id has."""
    return text.isdecimal() and text.isascii() and len(text) <= 10


def split_host_port(text: str) -> tuple[str, int] | None:
    """`host:port`, `[::1]:port` or `NAME://host:port` -> (host, port), else None."""
    _, _, address = text.rpartition("//")
    host, colon, port = address.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        return None
    if not colon or not host or not is_number(port):
        return None
    return host, int(port)


def _endpoints(name: str, argument: str, value: Value) -> None:
    assert isinstance(value, list)
    for entry in value:
        if split_host_port(entry) is None:
            raise ConfigError(
                f"Failed to parse host name from {entry} for the configuration {name}. "
                'Each entry should be in the form "{host}:{port}"'
            )


def _voters(name: str, argument: str, value: Value) -> None:
    assert isinstance(value, list)
    for entry in value:
        voter, at, address = entry.partition("@")
        if not (at and is_number(voter) and split_host_port(address)):
            raise ConfigError(
                f"Invalid configuration value for {name}. Each entry should be in the form "
                "`{id}@{host}:{port}`."
            )


def csv_map(name: str, text: str) -> dict[str, str]:
    """`key:value,...` -> mapping as Kafka reads it: keys end at the last colon, the last counts."""
    result: dict[str, str] = {}
    entries = [entry.strip() for entry in text.strip().split(",")]
    while entries and not entries[-1]:
        entries.pop()
    for entry in entries:
        key, colon, value = entry.rpartition(":")
        if not colon:
            raise ConfigError(
                f"Error parsing configuration property '{name}': begin 0, end -1, length "
                f"{len(entry)}"
            )
        result[key.strip()] = value.strip()
    return result


def address_limits(name: str, text: str) -> dict[str, int]:
    """`host:limit,...` -> mapping, of addresses and names; an IPv6 address may hold colons.
    ConfigError if malformed."""
    limits: dict[str, int] = {}
    for address, limit in csv_map(name, text).items():
        try:
            number = parse(name, "int", limit)
        except ConfigError:
            raise ConfigError(f'For input string: "{limit}"', name) from None
        assert isinstance(number, int)
        limits[address] = number
    return limits


def duration_ms(text: str) -> int | None:
    """Milliseconds of a non-negative ISO-8601 duration as Java's Duration.parse reads it."""
    import re

    match = re.fullmatch(
        r"([+-]?)P(?:([+-]?\d{1,19})D)?(T(?:([+-]?\d{1,19})H)?(?:([+-]?\d{1,19})M)?"
        r"(?:([+-]?\d{1,19}(?:\.\d{0,9})?)S)?)?",
        text,
        re.IGNORECASE | re.ASCII,
    )
    if match is None or text[-1] in "PpTt":
        return None
    sign, days, _, hours, minutes, seconds = match.groups()
    total = (
        int(days or 0) * 86_400_000
        + int(hours or 0) * 3_600_000
        + int(minutes or 0) * 60_000
        + int(float(seconds or 0) * 1000)
    )
    total = -total if sign == "-" else total
    return total if 0 <= total // 1000 < 1 << 63 else None


def _offset_reset(name: str, argument: str, value: Value) -> None:
    assert isinstance(value, str)
    prefix, _, duration = value.partition(":")
    if value in ("earliest", "latest"):
        return
    if prefix == "by_duration" and duration_ms(duration) is not None:
        return
    raise _invalid(
        name,
        value,
        f"Invalid value `{value}` for configuration {name}. The value must be either 'earliest', "
        "'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'.",
    )


_RULES = {
    "range": _range,
    "gzip-level": _gzip_level,
    "one": _one,
    "one-nocase": _one_nocase,
    "list": _list,
    "list+": _list_with_entries,
    "non-empty": _non_empty,
    "replicas": _replicas,
    "endpoints": _endpoints,
    "voters": _voters,
    "offset-reset": _offset_reset,
}
