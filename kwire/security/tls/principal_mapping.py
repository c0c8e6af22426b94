"""`ssl.principal.mapping.rules`: from the distinguished name of a certificate to a user's name.

Rules are tried in their order, the first that fits counts: `DEFAULT` takes the whole name,
`RULE:pattern/replacement/`, then `L` or `U`, what the replacement makes of it, in lower or upper
case. Patterns are Java's; they come from whoever runs the node. Source: KIP-371; measured on Apache
Kafka 4.4 (`tests/golden/security/test_distinguished_names.py`).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from kwire.security.tls.errors import TlsError

_RULE = r"(DEFAULT)|RULE:((\\.|[^\\/])*)/((\\.|[^\\/])*)/([LU]?).*?|(.*?)"
_SPLITTER = re.compile(rf"\s*({_RULE})\s*(,\s*|$)")
_PARSER = re.compile(_RULE)
_REFERENCE = re.compile(r"\\(.)|\$(\d+)", re.DOTALL)


class _Rule(NamedTuple):
    """`pattern` None is DEFAULT; `case` is L, U or empty."""

    pattern: re.Pattern[str] | None
    replacement: str
    case: str

    def apply(self, name: str) -> str | None:
        """The user's name; None where the rule does not fit."""
        if self.pattern is None:
            return name
        if self.pattern.fullmatch(name) is None:
            return None
        result = self.pattern.sub(lambda match: _expanded(self.replacement, match), name)
        if self.case == "L":
            return result.lower()
        return result.upper() if self.case == "U" else result


class PrincipalMapping:
    """The rules of a setting; TlsError for one that is none."""

    def __init__(self, text: str) -> None:
        self._rules = [_parsed(rule) for rule in _split(text)]

    def name_of(self, distinguished_name: str) -> str | None:
        """The name of the user with this certificate; None where no rule fits."""
        for rule in self._rules:
            name = rule.apply(distinguished_name)
            if name is not None:
                return name
        return None


def _split(text: str) -> list[str]:
    return [match[1] for match in _SPLITTER.finditer(text.strip()) if match[1]]


def _parsed(rule: str) -> _Rule:
    match = _PARSER.match(rule)
    assert match is not None, "the last alternative is empty"
    if match.end() != len(rule):
        raise TlsError(f"Invalid rule: `{rule}`, unmatched substring: `{rule[match.end() :]}`")
    if match[2] is None:
        return _Rule(None, "", "")
    try:
        pattern = re.compile(match[2], re.ASCII)
    except re.error as error:
        raise TlsError(f"Invalid rule: `{rule}`: {error}") from None
    return _Rule(pattern, match[4], match[6])


def _expanded(replacement: str, match: re.Match[str]) -> str:
    """A replacement as Java writes them: `$1` is a group, a backslash takes the next one as is."""
    groups = match.re.groups

    def one(reference: re.Match[str]) -> str:
        if reference[1] is not None:
            return reference[1]
        digits = reference[2]
        used = 1
        if int(digits[0]) > groups:
            return reference[0]
        while used < len(digits) and int(digits[: used + 1]) <= groups:
            used += 1
        return (match[int(digits[:used])] or "") + digits[used:]

    return _REFERENCE.sub(one, replacement)
