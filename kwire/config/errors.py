"""What is wrong with a setting, in one line."""

from __future__ import annotations


class ConfigError(ValueError):
    """A setting that cannot be used; the message is one line naming setting, value and what fits.

    The command line prints it and exits with code 2; API handlers turn it into INVALID_CONFIG.
    Line ends in a value are shown as spaces. `about` names the setting where Kafka's words, which
    the message then has, do not.
    """

    def __init__(self, message: str, about: str = "") -> None:
        super().__init__(" ".join(message.splitlines()))
        self.about = about
