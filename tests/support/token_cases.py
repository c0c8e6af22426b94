"""Ways to get a token from an issuer, and what comes of them: asked of Apache Kafka's login
handler (`tests/golden/security/TokenOracle.java`) and of ours, with the same issuer.

A result is {"asked": [request, ...], "outcome": "token" or "fails", "attempts": "one" or "more"};
a request is its headers and its form, an assertion in it decoded, its times relative to `iat`.
"""

from __future__ import annotations

import base64
import json
import os
import pathlib
import subprocess
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote_plus

import pytest

pytest.importorskip("cryptography")

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from tests.support.token_endpoint import Asked, Reply, TokenEndpoint

ORACLE = pathlib.Path(__file__).parents[1] / "golden" / "security" / "TokenOracle.java"
PREFIX = "sasl.oauthbearer."
FAR_S = 4_000_000_000
HEADERS = ("Accept", "Authorization", "Cache-Control", "Content-Type")
RETRIEVER = "org.apache.kafka.common.security.oauthbearer.JwtBearerJwtRetriever"
SPECIAL = {"client.credentials.client.id": "a:b c%é", "client.credentials.client.secret": "d&e+f/é"}

Result = dict[str, Any]
Play = Callable[[list[tuple[dict[str, str], dict[str, str]]], "Allowed"], list[bool]]
"""(settings and options of each case, what is allowed) -> whether each gave a token."""


class Allowed(NamedTuple):
    urls: str
    files: str


class Case(NamedTuple):
    """`settings` by their names without `sasl.oauthbearer.`, or whole with `sasl.login.`;
    `{dir}` is where the files are; `url` in the place of the issuer's."""

    settings: Mapping[str, str]
    options: Mapping[str, str] = {}
    replies: tuple[Reply, ...] = ()
    url: str | None = None


def _encoded(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def token(**claims: object) -> str:
    """A token with this content, and a signature that nobody looks at."""
    return f"{_encoded({'alg': 'RS256'})}.{_encoded(claims)}.c2ln"


GOOD = token(sub="alice", exp=FAR_S, iat=FAR_S - 3600, scope="a b")
SECRET = {"client.credentials.client.id": "me", "client.credentials.client.secret": "s3cret"}
SIGNS = {
    "assertion.private.key.file": "{dir}/rsa.pem",
    "assertion.claim.iss": "issuer",
    "assertion.claim.sub": "subject",
    "assertion.claim.aud": "audience",
}
GRANTS = {"jwt.retriever.class": RETRIEVER}
FAST = {"sasl.login.retry.backoff.ms": "5", "sasl.login.retry.backoff.max.ms": "60000"}
LAST = Reply(400, "{}")
"""Nobody asks again behind it: how many attempts there are is no matter of time."""
TEMPLATE = {
    "header": {"kid": "k1", "typ": "X"},
    "payload": {"extra": [1], "iss": "template issuer", "sub": "template subject", "exp": 7},
}


def _answer(**fields: object) -> tuple[Reply, ...]:
    return (Reply(200, json.dumps(fields)),)


def _given(**claims: object) -> Case:
    return Case(SECRET, replies=_answer(access_token=token(**claims)))


CASES: dict[str, Case] = {
    "secret": Case({**SECRET, "scope": "x y"}),
    "secret, no scope": Case(SECRET),
    "secret, letters beyond ASCII": Case({**SPECIAL, "scope": "ü&x=y"}),
    "secret, encoded header": Case({**SPECIAL, "header.urlencode": "true"}),
    "options": Case({}, {"clientId": "id", "clientSecret": "secret", "scope": "scope"}),
    "options and settings": Case(
        SECRET, {"clientId": "id", "clientSecret": "secret", "scope": "scope"}
    ),
    "no secret": Case({"client.credentials.client.id": "me"}),
    "nothing": Case({}),
    "blank id": Case({**SECRET, "client.credentials.client.id": " "}),
    "assertion": Case(SIGNS),
    "assertion, id and scope": Case(
        {**SIGNS, "client.credentials.client.id": "me", "scope": "sc ope"}
    ),
    "assertion and secret": Case({**SIGNS, **SECRET}),
    "assertion of a file": Case(
        {"assertion.file": "{dir}/token", "client.credentials.client.id": "me"}
    ),
    "a key beside a secret": Case({**SECRET, "assertion.private.key.file": "{dir}/rsa.pem"}),
    "grant": Case({**SIGNS, **GRANTS, "scope": "x y"}),
    "grant, ES256": Case(
        {
            **SIGNS,
            **GRANTS,
            "assertion.private.key.file": "{dir}/ec.pem",
            "assertion.algorithm": "ES256",
        }
    ),
    "grant, key of another algorithm": Case({**SIGNS, **GRANTS, "assertion.algorithm": "ES256"}),
    "grant, template": Case(
        {
            **SIGNS,
            **GRANTS,
            "assertion.template.file": "{dir}/template.json",
            "assertion.claim.jti.include": "true",
            "assertion.claim.exp.seconds": "100",
            "assertion.claim.nbf.seconds": "7",
        }
    ),
    "grant, template alone": Case(
        {
            **GRANTS,
            "assertion.private.key.file": "{dir}/rsa.pem",
            "assertion.template.file": "{dir}/template.json",
        }
    ),
    "grant, no claims": Case({**GRANTS, "assertion.private.key.file": "{dir}/rsa.pem"}),
    "grant of a file": Case({**GRANTS, "assertion.file": "{dir}/token"}),
    "grant, nothing": Case(GRANTS),
    "grant, no such key": Case({**SIGNS, **GRANTS, "assertion.private.key.file": "{dir}/none"}),
    "grant, key not allowed": Case(
        {**SIGNS, **GRANTS, "assertion.private.key.file": "/etc/hostname"}
    ),
    "grant, encrypted key without passphrase": Case(
        {**SIGNS, **GRANTS, "assertion.private.key.file": "{dir}/encrypted.pem"}
    ),
    "token of a file": Case({}, url="file:{dir}/token"),
    "token of a file, three slashes": Case({}, url="file://{dir}/token"),
    "token of a file that is not allowed": Case({}, url="file:/etc/hostname"),
    "token of no file": Case({}, url="file:{dir}/none"),
    "address not allowed": Case(SECRET, url="http://localhost:1/x"),
    "address of FTP": Case(SECRET, url="ftp://localhost/x"),
    "no address": Case(SECRET, url=""),
    "not JSON": Case(SECRET, replies=(Reply(200, "hello"),)),
    "a list": Case(SECRET, replies=(Reply(200, "[]"),)),
    "no token": Case(SECRET, replies=_answer(a=1)),
    "blank token": Case(SECRET, replies=_answer(access_token=" ")),
    "a number": Case(SECRET, replies=_answer(access_token=5)),
    "id_token": Case(SECRET, replies=_answer(id_token=GOOD)),
    "token in blanks": Case(SECRET, replies=_answer(access_token=f" {GOOD}\n")),
    "opaque token": Case(SECRET, replies=_answer(access_token="opaque")),
    "empty answer": Case({**SECRET, **FAST}, replies=(Reply(200, ""), LAST)),
    "201": Case(SECRET, replies=(Reply(201, json.dumps({"access_token": GOOD})),)),
    "202": Case({**SECRET, **FAST}, replies=(Reply(202, json.dumps({"access_token": GOOD})), LAST)),
    **{
        str(status): Case({**SECRET, **FAST}, replies=(Reply(status, '{"error": "no"}'), LAST))
        for status in (400, 401, 403, 404, 408, 409, 415, 416, 429, 500, 501, 503, 505)
    },
    "500 twice": Case(
        {**SECRET, **FAST},
        replies=(Reply(500, "x"), Reply(500, "y"), *_answer(access_token=GOOD)),
    ),
    "token without sub": _given(exp=FAR_S),
    "token without exp": _given(sub="x"),
    "token without iat": _given(sub="x", exp=FAR_S),
    "token, scopes": _given(sub="x", exp=FAR_S, scope=["a", "b"]),
    "token, exp is a text": _given(sub="x", exp="soon"),
    "token, blank sub": _given(sub=" ", exp=FAR_S),
    "token without signature": Case(
        SECRET,
        replies=_answer(
            access_token=f"{_encoded({'alg': 'none'})}.{_encoded({'sub': 'x', 'exp': FAR_S})}."
        ),
    ),
    "token, other name of sub": Case(
        {**SECRET, "sub.claim.name": "who"},
        replies=_answer(access_token=token(who="x", exp=FAR_S)),
    ),
    "extension": Case(SECRET, {"extension_traceId": "123"}),
    "extension auth": Case(SECRET, {"extension_auth": "x"}),
    "extension with a digit": Case(SECRET, {"extension_a1": "x"}),
    "extension, bad value": Case(SECRET, {"extension_a": "\x01"}),
}


def results(play: Play, folder: pathlib.Path) -> dict[str, Result]:
    """What comes of each case."""
    _write_files(folder)
    names = list(CASES)

    def answer(asked: Asked) -> Reply:
        case = CASES[names[int(asked.path[1:])]]
        replies = case.replies or _answer(access_token=GOOD)
        at = sum(1 for each in issuer.asked if each.path == asked.path) - 1
        return replies[min(at, len(replies) - 1)]

    with TokenEndpoint(answer) as issuer:
        asked_for = []
        for number, case in enumerate(CASES.values()):
            settings = {
                name if name.startswith("sasl.") else PREFIX + name: text.format(dir=folder)
                for name, text in case.settings.items()
            }
            url = f"{issuer.url}/{number}" if case.url is None else case.url.format(dir=folder)
            if url:
                settings[f"{PREFIX}token.endpoint.url"] = url
            asked_for.append((settings, dict(case.options)))
        urls = [
            *(f"{issuer.url}/{number}" for number in range(len(CASES))),
            *(f"file:{folder}/token", f"file://{folder}/token", f"file:{folder}/none"),
            "ftp://localhost/x",
        ]
        files = [str(path) for path in folder.iterdir()] + [f"{folder}/none"]
        given = play(asked_for, Allowed(",".join(urls), ",".join(files)))
        found: dict[str, Result] = {}
        for number, (name, gave) in enumerate(zip(names, given, strict=True)):
            asked = [_shown(each) for each in issuer.asked if each.path == f"/{number}"]
            found[name] = {
                "asked": asked[:1],
                "attempts": ("none", "one", "more")[min(len(asked), 2)],
                "outcome": "token" if gave else "fails",
            }
            assert all(_without_times(each) == _without_times(asked[0]) for each in asked)
        return found


def _write_files(folder: pathlib.Path) -> None:
    keys: dict[str, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey] = {
        "rsa": rsa.generate_private_key(65537, 2048),
        "ec": ec.generate_private_key(ec.SECP256R1()),
    }
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    plain = serialization.NoEncryption()
    for name, key in keys.items():
        (folder / f"{name}.pem").write_bytes(key.private_bytes(pem, pkcs8, plain))
    encrypted = serialization.BestAvailableEncryption(b"hush")
    (folder / "encrypted.pem").write_bytes(keys["rsa"].private_bytes(pem, pkcs8, encrypted))
    (folder / "template.json").write_text(json.dumps(TEMPLATE))
    (folder / "token").write_text(GOOD + "\n")


def _shown(asked: Asked) -> Result:
    form = [tuple(pair.split("=", 1)) for pair in asked.body.split("&")]
    return {
        "method": asked.method,
        "headers": {name: asked.headers[name] for name in HEADERS if name in asked.headers},
        "form": [[name, _form_value(name, value)] for name, value in form],
    }


def _form_value(name: str, value: str) -> object:
    if not name.endswith("assertion") or unquote_plus(value) == GOOD:
        return value.replace(GOOD, "GOOD")
    header, claims, signature = value.split(".")
    decoded = json.loads(base64.urlsafe_b64decode(claims + "=="))
    issued = decoded["iat"]
    times = {key: decoded[key] - issued for key in ("exp", "nbf", "iat") if key in decoded}
    shown = {**decoded, **times}
    if "jti" in shown:
        shown["jti"] = "-".join(str(len(part)) for part in shown["jti"].split("-"))
    return {
        "header": dict(sorted(json.loads(base64.urlsafe_b64decode(header + "==")).items())),
        "claims": dict(sorted(shown.items())),
        "signature": len(signature),
    }


def _without_times(asked: Result) -> str:
    return json.dumps(asked)


def played_by_kafka(libs: pathlib.Path) -> Play:
    """Apache Kafka's login handler (needs a JVM)."""

    def play(cases: list[tuple[dict[str, str], dict[str, str]]], allowed: Allowed) -> list[bool]:
        lines = [json.dumps({"settings": each, "options": options}) for each, options in cases]
        prefix = "-Dorg.apache.kafka.sasl.oauthbearer.allowed"
        command = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", f"{prefix}.urls={allowed.urls}"]
        command += [f"{prefix}.files={allowed.files}", "-cp", f"{libs}/*", str(ORACLE)]
        finished = subprocess.run(
            command,
            input="\n".join(lines) + "\n",
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
            env=dict(os.environ),
        )
        answers = [line for line in finished.stdout.splitlines() if line.startswith("{")]
        return ["token" in json.loads(line) for line in answers]

    return play
