"""Java properties files (`server.properties`, `meta.properties`), read as Java reads them.

Bytes are ISO-8859-1; a byte order mark of UTF-8, which editors put at the head, is skipped (Java
would take it for a part of the first name). A line that ends in an odd number of backslashes
continues on the next one, whose leading blanks go. `#` and `!` start a comment line. The key ends
at the first unescaped `=`, `:` or blank. Escapes: `\\t \\n \\r \\f \\uXXXX`; a backslash before
anything else vanishes.
"""

from __future__ import annotations

import codecs

from kwire.config.errors import ConfigError

_BLANKS = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
MAX_FILE_BYTES = 16 << 20


def read_properties(path: str) -> dict[str, str]:
    """The settings of a properties file in file order; ConfigError when it cannot be read."""
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    if len(data) > MAX_FILE_BYTES:
        raise ConfigError(f"{path}: larger than {MAX_FILE_BYTES} bytes")
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ConfigError(f"{path}: is UTF-16, expected ISO-8859-1 or UTF-8; save it anew")
    try:
        return parse_properties(data.removeprefix(codecs.BOM_UTF8).decode("latin-1"))
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def parse_properties(text: str) -> dict[str, str]:
    """Keys and values of the text of a properties file; a later line replaces an earlier one."""
    result: dict[str, str] = {}
    for line in _logical_lines(text):
        key, value = _split(line)
        result[_unescape(key)] = _unescape(value)
    return result


def _logical_lines(text: str) -> list[str]:
    lines: list[str] = []
    pending: str | None = None
    for natural in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        stripped = natural.lstrip(_BLANKS)
        if pending is None and (not stripped or stripped[0] in "#!"):
            continue
        line = stripped if pending is None else pending + stripped
        backslashes = len(stripped) - len(stripped.rstrip("\\"))
        if backslashes % 2:
            pending = line[:-1]
        else:
            lines.append(line)
            pending = None
    if pending:
        lines.append(pending)
    return lines


def _split(line: str) -> tuple[str, str]:
    position = 0
    while position < len(line):
        character = line[position]
        if character == "\\":
            position += 2
            continue
        if character in "=:" or character in _BLANKS:
            break
        position += 1
    key, rest = line[:position], line[position:].lstrip(_BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANKS)
    return key, rest


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    parts: list[str] = []
    position = 0
    while position < len(text):
        character = text[position]
        if character != "\\":
            parts.append(character)
            position += 1
            continue
        escaped = text[position + 1 : position + 2]
        position += 2
        if escaped == "u":
            parts.append(_unicode(text[position : position + 4]))
            position += 4
        else:
            parts.append(_ESCAPES.get(escaped, escaped))
    joined = "".join(parts)
    # Two escaped surrogates make one character.
    return joined.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _unicode(digits: str) -> str:
    if len(digits) != 4 or not all(d in "0123456789abcdefABCDEF" for d in digits):
        raise ConfigError(f"malformed \\u escape \\u{digits}")
    return chr(int(digits, 16))


def format_properties(settings: dict[str, str], comments: list[str] | None = None) -> str:
    """Properties text that Java reads back to `settings`, with comment lines on top."""
    lines = [f"#{comment}" for comment in comments or []]
    for key, value in settings.items():
        lines.append(f"{_escape(key, True)}={_escape(value, False)}")
    return "\n".join(lines) + "\n"


def _escape(text: str, is_key: bool) -> str:
    parts: list[str] = []
    for index, character in enumerate(text):
        if character == " ":
            parts.append("\\ " if is_key or index == 0 else " ")
        elif character in "\\#!=:":
            parts.append("\\" + character)
        elif character in "\t\n\r\f":
            parts.append({"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}[character])
        elif not " " <= character <= "~":
            units = character.encode("utf-16-be", "surrogatepass")
            parts.extend(f"\\u{units[i : i + 2].hex().upper()}" for i in range(0, len(units), 2))
        else:
            parts.append(character)
    return "".join(parts)
