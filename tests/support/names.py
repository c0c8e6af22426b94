"""Distinguished names that are out of the ordinary, rules for them, and what Java makes of both."""

from __future__ import annotations

import pathlib
import subprocess
from typing import NamedTuple

from kwire.security.tls.distinguished_name import name_of
from kwire.security.tls.errors import TlsError
from kwire.security.tls.principal_mapping import PrincipalMapping

ORACLE = pathlib.Path(__file__).parents[1] / "golden" / "security" / "NameOracle.java"
UTF8, PRINTABLE, T61, IA5, VISIBLE, GENERAL, UNIVERSAL, BMP, NUMERIC = (
    *(12, 19, 20, 22, 26, 27, 28, 30, 18),
)
OCTETS, INTEGER = 4, 2
CN, SN, SERIAL, C, L, ST, STREET, ORG, OU, TITLE = (f"2.5.4.{n}" for n in range(3, 13))
GIVEN, QUALIFIER, EMAIL = "2.5.4.42", "2.5.4.46", "1.2.840.113549.1.9.1"
DC, UID, OWN = "0.9.2342.19200300.100.1.25", "0.9.2342.19200300.100.1.1", "1.3.6.1.4.1.99999.1.128"
LARGE = "2.999.1.4294967296"


class Attribute(NamedTuple):
    """One attribute of a name: its type, and the tag and content of its value."""

    type: str
    value: str | bytes
    tag: int = UTF8


A = Attribute
NAMES: tuple[tuple[tuple[Attribute, ...], ...], ...] = (
    ((A(C, "US", PRINTABLE),), (A(ORG, "Example"),), (A(CN, "kafka"),)),
    ((A(CN, 'a,b+c"d\\e<f>g;h=i#j'),),),
    ((A(CN, "#begins"),), (A(ORG, "ends#"),)),
    ((A(CN, " begins"),), (A(ORG, "ends "),), (A(OU, "  both  "),)),
    ((A(CN, " "),), (A(ORG, "   "),)),
    ((A(CN, ""),), (A(ORG, "x"),)),
    ((A(CN, "in  side   blanks"),),),
    ((A(CN, "Zoë Müller"),), (A(ORG, "日本語"),), (A(OU, "Ω≈ç√"),)),
    ((A(CN, "emoji \U0001f600 here"),),),
    ((A(CN, "Zoë", BMP),), (A(ORG, "Zoë", T61),), (A(OU, "Zoë", UNIVERSAL),)),
    ((A(CN, "plain", IA5),), (A(ORG, "plain", VISIBLE),), (A(OU, "plain", GENERAL),)),
    ((A(CN, "12 34", NUMERIC),), (A(ORG, "x", PRINTABLE),)),
    ((A(CN, b"\x01\x02", OCTETS),), (A(ORG, b"\x05", INTEGER),)),
    ((A(EMAIL, "who@example.com", IA5),), (A(CN, "who"),)),
    ((A(DC, "com", IA5),), (A(DC, "example", IA5),), (A(UID, "who"),)),
    ((A(DC, "com"),), (A(UID, "who", PRINTABLE),)),
    ((A(SN, "Family"),), (A(GIVEN, "Given"),), (A(TITLE, "Dr."),), (A(QUALIFIER, "x"),)),
    ((A(SERIAL, "0815", PRINTABLE),), (A(CN, "device"),)),
    ((A(OWN, "ours"),), (A(CN, "x"),)),
    ((A(LARGE, "large arc"),), (A(CN, "x"),)),
    ((A(CN, "one"), A(OU, "two")), (A(ORG, "three"),)),
    ((A(OU, "b"), A(OU, "a"), A(CN, "c")),),
    ((A(UID, "u"), A(EMAIL, "e@x", IA5)), (A(C, "DE", PRINTABLE),)),
    ((A(STREET, "1 Main St."),), (A(L, "Town"),), (A(ST, "State"),), (A(C, "us", PRINTABLE),)),
    ((A(CN, "line\nbreak\tand\rmore"),),),
    ((A(CN, "nul\0inside"),),),
    ((A(CN, "del\x7f and \x1f and \x80\x9f"),),),
    ((A(CN, "quo'te (x) /y/ :z? -."),),),
    ((A(CN, "*.example.com"),), (A(ORG, "a_b@c!d$e%f&g"),)),
    ((A(CN, "\u00a0nbsp\u00a0"),), (A(ORG, "\u2003em\u2003"),)),
    ((A(CN, "e\u0301 composed"),), (A(ORG, "\ufeffbom"),)),
    ((A(CN, "rtl \u202e abc \u05d0"),),),
    ((A(CN, "x" * 300),),),
    ((A(CN, "same"),), (A(CN, "same"),), (A(CN, "same"),)),
    ((A(CN, "UPPER lower"),), (A(ORG, "ÄÖÜ"),)),
    ((A(CN, "back\\slash\\"),), (A(ORG, "=begins"),), (A(OU, "ends,"),)),
    ((A(CN, "x, y", PRINTABLE),), (A(ORG, '"quoted"'),)),
    (),
)
RULES = (
    "DEFAULT",
    "",
    " DEFAULT ",
    "RULE:^CN=(.*?),.*$/$1/",
    "RULE:^CN=(.*?),.*$/$1/L",
    "RULE:^CN=(.*?),.*$/$1/U,DEFAULT",
    r"RULE:^CN=(\w+),O=(\w+).*$/$2-$1@x/ , RULE:^.*CN=([^,]*).*$/$1/L, DEFAULT",
    "RULE:.*/everybody/",
    "RULE:^(.*)$/user-$1/",
    "RULE:^nothing$/x/",
    "RULE:^CN=(.).*$/$1$1/",
    r"RULE:^CN=(.).*$/\$1 \\ $1/",
    "RULE:^CN=(.).*$/$2/",
    "RULE:^CN=(.).*$/$10/",
    "RULE:^CN=.*$//",
    "RULE:^CN=(.*),O=(.*)$/$1/,RULE:^C.*$/c/",
    "RULE:a/b",
    "RULE:a",
    "default",
    "DEFAULT,x",
    "RULE:[/x/",
    "RULE:^CN=(.*?),.*$/$1/X",
    "RULE:^CN=(.*?),.*$/$1/LL",
    "DEFAULT,",
    ",",
    "RULE:^CN=(.*?),.*$/$1/ RULE:x/y/",
)
MAPPED = ("CN=kafka,O=Example,C=US", "CN=Zoë,O=x", "O=only", "")


def der_of(name: tuple[tuple[Attribute, ...], ...]) -> bytes:
    """A name as a certificate has it."""
    parts = [_value(0x31, b"".join(map(_attribute, part))) for part in name]
    return _value(0x30, b"".join(parts))


def _attribute(attribute: Attribute) -> bytes:
    value = attribute.value
    if isinstance(value, str):
        encoding = {BMP: "utf-16-be", UNIVERSAL: "utf-32-be", T61: "latin-1"}
        value = value.encode(encoding.get(attribute.tag, "utf-8"))
    return _value(0x30, _identifier(attribute.type) + _value(attribute.tag, value))


def _identifier(text: str) -> bytes:
    first, second, *rest = map(int, text.split("."))
    content = b""
    for number in (40 * first + second, *rest):
        digits = [number & 0x7F]
        while number := number >> 7:
            digits.append(number & 0x7F | 0x80)
        content += bytes(reversed(digits))
    return _value(6, content)


def _value(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size < 0x80:
        return bytes([tag, size]) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + content


def questions() -> list[str]:
    """What is asked of Java, a line each."""
    asked = [f"N {der_of(name).hex()}" for name in NAMES]
    return asked + [f"R {_units(name)} {_units(rules)}" for rules in RULES for name in MAPPED]


def our_answer(question: str) -> str:
    """What kwire says to one of `questions`."""
    kind, *hexes = question.split(" ")
    if kind == "N":
        return name_of(bytes.fromhex(hexes[0]))
    name, rules = (bytes.fromhex(text).decode("utf-16-be") for text in hexes)
    try:
        found = PrincipalMapping(rules).name_of(name)
    except TlsError as error:
        return f"E {error}"
    return "E No rules apply" if found is None else found


def is_same(java: str, ours: str) -> bool:
    """Java's words about a pattern are its own; the rules that do not apply are in the log."""
    if java.startswith(("E No rules apply", "E Unclosed")):
        return ours.startswith("E ")
    return java == ours


def answers_of_java(libs: pathlib.Path) -> list[str]:
    """For each question a name, or "E " and why there is none."""
    done = subprocess.run(
        ["java", "-Xmx256m", "-cp", f"{libs}/*", ORACLE],
        input="\n".join(questions()).encode() + b"\n",
        capture_output=True,
        check=True,
        timeout=120,
    )
    lines = done.stdout.decode().split("\n")[:-1]
    return [bytes.fromhex(line).decode("utf-16-be", errors="surrogatepass") for line in lines]


def _units(text: str) -> str:
    return text.encode("utf-16-be").hex()
