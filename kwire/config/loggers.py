"""Loggers as Kafka's BROKER_LOGGER resource sees them: names, levels, setting and unsetting them.

Level names are Kafka's (TRACE is DEBUG here, FATAL is CRITICAL). The logger `root` is Python's
root logger. A change lasts as long as the process. Source: KIP-412; texts measured on Kafka 4.4.
"""

from __future__ import annotations

import logging

from kwire.protocol.errors import ErrorCode, KafkaError

ROOT = "root"
_LEVELS = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": logging.DEBUG,
}
_NAMES = {
    logging.CRITICAL: "FATAL",
    logging.ERROR: "ERROR",
    logging.WARNING: "WARN",
    logging.INFO: "INFO",
    logging.DEBUG: "DEBUG",
}


def levels() -> dict[str, str]:
    """Every logger's name -> the level in effect."""
    names = [
        name
        for name, logger in sorted(logging.root.manager.loggerDict.items())
        if isinstance(logger, logging.Logger)
    ]
    result = {name: _level_name(logging.getLogger(name)) for name in names}
    result[ROOT] = _level_name(logging.root)
    return result


def _level_name(logger: logging.Logger) -> str:
    return _NAMES.get(logger.getEffectiveLevel(), "INFO")


def check_change(name: str, level: str | None) -> None:
    """Whether `level` (None: unset) can be applied; KafkaError with Kafka's code and text."""
    if name != ROOT and name not in levels():
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
    if level is None:
        if name == ROOT:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                "Removing the log level of the root logger is not allowed",
            )
    elif level not in _LEVELS:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Cannot set the log level of {name} to {level} as it is not a supported log level. "
            f"Valid log levels are {', '.join(sorted(_LEVELS))}",
        )


def change(name: str, level: str | None) -> None:
    """Set a logger's level, or let it follow its parent again (`level` None)."""
    logger = logging.root if name == ROOT else logging.getLogger(name)
    logger.setLevel(logging.NOTSET if level is None else _LEVELS[level])
