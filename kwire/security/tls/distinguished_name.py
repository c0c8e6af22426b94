"""The distinguished name of a certificate's subject, as Java's `X500Principal.getName()` writes it.

Kafka's principals are made of this text (RFC 2253, with Java's choices). A certificate is DER:

    Certificate ::= SEQUENCE { SEQUENCE {            tbsCertificate
        [0] version, INTEGER serial, SEQUENCE signature algorithm,
        Name issuer, SEQUENCE validity, Name subject, ... } ... }
    Name ::= SEQUENCE OF SET OF SEQUENCE { OBJECT IDENTIFIER type, ANY value }

Measured on Java 17 with Apache Kafka 4.4 (`tests/golden/security/test_distinguished_names.py`).
"""

from __future__ import annotations

from kwire.security.tls.der import Value, identifier, values

SEQUENCE, VERSION, EXTENSIONS = 0x30, 0xA0, 0xA3
ALTERNATIVE_NAMES = "2.5.29.17"
TEXT_KINDS, ADDRESS = (1, 2, 6), 7  # e-mail, DNS, URI
KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
# UTF8String, PrintableString, T61String, IA5String, GeneralString, BMPString. Java takes what is in
# any of them for UTF-8.
TEXT_TAGS = (12, 19, 20, 22, 27, 30)
ESCAPED = ',=+<>#;"\\'


def subject_of(certificate: bytes) -> str:
    """The subject's name of a certificate, DER; ValueError for what is none."""
    fields = _fields(certificate)
    if len(fields) < 5:
        raise ValueError("a certificate without a subject")
    return name_of(fields[4].whole)


def alternative_names(certificate: bytes) -> list[str]:
    """The alternative names of a certificate, DER: kind and name of each, as Java writes them."""
    for field in _fields(certificate):
        if field.tag != EXTENSIONS:
            continue
        for extension in values(next(values(field.content)).content):
            kind, *_, content = values(extension.content)
            if identifier(kind.content) == ALTERNATIVE_NAMES:
                names = next(values(next(values(content.whole)).content)).content
                return [_alternative(name) for name in values(names)]
    return []


def _alternative(name: Value) -> str:
    kind = name.tag & 0x1F
    if kind in TEXT_KINDS:
        text = name.content.decode("latin-1")
    elif kind == ADDRESS and len(name.content) == 4:
        text = ".".join(map(str, name.content))
    else:
        text = name.content.hex()
    return f"[{kind}, {text}]"


def _fields(certificate: bytes) -> list[Value]:
    """The fields of what is signed, from the serial number on."""
    (outer,) = values(certificate)
    fields = list(values(next(values(outer.content)).content))
    return fields[1:] if fields[0].tag == VERSION else fields


def name_of(name: bytes) -> str:
    """A Name, DER, in words; ValueError for what is none."""
    (sequence,) = values(name)
    if sequence.tag != SEQUENCE:
        raise ValueError("not a Name")
    parts = ["+".join(map(_attribute, values(part.content))) for part in values(sequence.content)]
    return ",".join(reversed(parts))


def _attribute(value: Value) -> str:
    kind, content = values(value.content)
    name = identifier(kind.content)
    keyword = KEYWORDS.get(name)
    if keyword is None or content.tag not in TEXT_TAGS:
        return f"{keyword or name}=#{content.whole.hex()}"
    return f"{keyword}={_escaped(content.content.decode(errors='replace'))}"


def _escaped(text: str) -> str:
    inner = text.strip(" ")
    leading = len(text) - len(text.lstrip(" ")) if inner else len(text)
    trailing = len(text) - leading - len(inner)
    written = "".join(f"\\{char}" if char in ESCAPED else char for char in inner)
    written = written.replace("\0", "\\00")
    return "\\ " * leading + written + "\\ " * trailing
