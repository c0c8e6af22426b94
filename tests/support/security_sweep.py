"""Settings of security that a node is started with, right and wrong: which start, and what is said.

`cases(directory)` gives names and settings; `prepare(directory)` writes the files that they name.
What Apache Kafka 4.4 says is `tests/golden/data/security_configs.json.gz`: by name null, or the
texts of its refusal, with `@` for the directory.
"""

from __future__ import annotations

import gzip
import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.support.certificates import Authority
from tests.support.sasl import PLAIN_MODULE, SCRAM_MODULE

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ROOT / "tests" / "golden" / "data" / "security_configs.json.gz"
PORTS = (32110, 32111)
WORD = "a-word"
OAUTH = "org.apache.kafka.common.security.oauthbearer."
OAUTH_MODULE = f"{OAUTH}OAuthBearerLoginModule required;"
UNSECURED = f"{OAUTH}internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
VALIDATOR = f"{OAUTH}OAuthBearerValidatorCallbackHandler"
JNDI = "com.sun.security.auth.module.JndiLoginModule required;"
LDAP = "com.sun.security.auth.module.LdapLoginModule required;"
OWN = "listener.name.clients."
PLAIN_JAAS, SCRAM_JAAS = f"{OWN}plain.sasl.jaas.config", f"{OWN}scram-sha-512.sasl.jaas.config"
OAUTH_JAAS = f"{OWN}oauthbearer.sasl.jaas.config"
USERS = f'{PLAIN_MODULE} required username="n" password="p" user_n="p";'
MAP = "listener.security.protocol.map"
JWKS = "sasl.oauthbearer.jwks.endpoint.url"
ALLOWED = "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls"
ALLOWED_URL = "file://@/keys.json"

Settings = dict[str, str | None]
"""None takes a setting of the base away."""

BASE: Mapping[str, str] = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.bootstrap.servers": f"127.0.0.1:{PORTS[1]}",
    "controller.listener.names": "CONTROLLER",
    "listeners": f"CLIENTS://127.0.0.1:{PORTS[0]},CONTROLLER://127.0.0.1:{PORTS[1]}",
    "inter.broker.listener.name": "CLIENTS",
    "log.dirs": "@/data",
}
SASL: Settings = {
    MAP: "CLIENTS:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    PLAIN_JAAS: USERS,
}
SCRAM: Settings = {
    **SASL,
    "sasl.enabled.mechanisms": "SCRAM-SHA-512",
    "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
    PLAIN_JAAS: None,
    SCRAM_JAAS: f'{SCRAM_MODULE} required username="n" password="p";',
}
TOKENS: Settings = {
    **SASL,
    "sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
    OAUTH_JAAS: OAUTH_MODULE,
    f"{OWN}oauthbearer.sasl.server.callback.handler.class": VALIDATOR,
    JWKS: ALLOWED_URL,
    "sasl.oauthbearer.expected.audience": "kwire",
    "sasl.oauthbearer.allow.unverified.issuer": "true",
}
CONTROLLER: Settings = {
    **SASL,
    MAP: "CLIENTS:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.controller.plain.sasl.jaas.config": USERS,
}
TLS: Settings = {
    MAP: "CLIENTS:SSL,CONTROLLER:PLAINTEXT",
    "ssl.keystore.type": "PEM",
    "ssl.keystore.location": "@/node.pem",
    "ssl.truststore.type": "PEM",
    "ssl.truststore.location": "@/authority.pem",
}
P12: Settings = {
    **TLS,
    "ssl.keystore.type": "PKCS12",
    "ssl.keystore.location": "@/node.p12",
    "ssl.keystore.password": WORD,
}
INLINE: Settings = {
    **TLS,
    "ssl.keystore.location": None,
    "ssl.keystore.key": "@{key}",
    "ssl.keystore.certificate.chain": "@{certificate}",
}

OF_SASL: dict[str, Settings] = {
    "as it should be": {},
    "no mechanism between brokers": {"sasl.mechanism.inter.broker.protocol": None},
    "another mechanism between brokers": {"sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512"},
    "an unknown mechanism between brokers": {"sasl.mechanism.inter.broker.protocol": "X"},
    "enabled for the listener alone": {
        "sasl.enabled.mechanisms": None,
        f"{OWN}sasl.enabled.mechanisms": "PLAIN",
    },
    "enabled for all but the listener": {f"{OWN}sasl.enabled.mechanisms": "SCRAM-SHA-512"},
    "enabled for all but the listener, with its module": {
        f"{OWN}sasl.enabled.mechanisms": "SCRAM-SHA-512",
        SCRAM_JAAS: f"{SCRAM_MODULE} required;",
    },
    "no module": {PLAIN_JAAS: None},
    "a module for all listeners": {PLAIN_JAAS: None, "sasl.jaas.config": USERS},
    "a module for all mechanisms": {PLAIN_JAAS: None, f"{OWN}sasl.jaas.config": USERS},
    "a module of a mechanism for all": {PLAIN_JAAS: None, "plain.sasl.jaas.config": USERS},
    "two modules": {PLAIN_JAAS: USERS + USERS},
    "an empty text": {PLAIN_JAAS: ""},
    "a word": {PLAIN_JAAS: "x"},
    "no semicolon": {PLAIN_JAAS: USERS.rstrip(";")},
    "no flag": {PLAIN_JAAS: f'{PLAIN_MODULE} user_n="p";'},
    "an unknown flag": {PLAIN_JAAS: f'{PLAIN_MODULE} needed user_n="p";'},
    "a flag in capitals": {PLAIN_JAAS: USERS.replace("required", "REQUIRED")},
    "the flag optional": {PLAIN_JAAS: USERS.replace("required", "optional")},
    "an option without a value": {PLAIN_JAAS: f"{PLAIN_MODULE} required user_n;"},
    "an open quote": {PLAIN_JAAS: f'{PLAIN_MODULE} required user_n="p;'},
    "a module without users": {PLAIN_JAAS: f"{PLAIN_MODULE} required;"},
    "the module of another mechanism": {PLAIN_JAAS: f"{SCRAM_MODULE} required;"},
    "a module that is not allowed": {PLAIN_JAAS: JNDI},
    "another module that is not allowed": {PLAIN_JAAS: LDAP},
    "a module that is not there": {PLAIN_JAAS: "com.example.Mine required;"},
    "no mechanism": {"sasl.enabled.mechanisms": ""},
    "an unknown mechanism": {"sasl.enabled.mechanisms": "PLAIN,X"},
    "a mechanism in small letters": {"sasl.enabled.mechanisms": "plain"},
    "a mechanism twice": {"sasl.enabled.mechanisms": "PLAIN,PLAIN"},
    "a mechanism of Java's": {"sasl.enabled.mechanisms": "PLAIN,DIGEST-MD5"},
    "Kerberos without a module": {
        "sasl.enabled.mechanisms": "GSSAPI",
        "sasl.mechanism.inter.broker.protocol": "GSSAPI",
    },
    "SCRAM beside it without a module": {"sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256"},
    "time to log in anew: none": {"connections.max.reauth.ms": "-1"},
    "time to log in anew: a word": {"connections.max.reauth.ms": "x"},
    "time to log in anew, of the mechanism: a word": {f"{OWN}plain.connections.max.reauth.ms": "x"},
    "frame before authentication: negative": {"sasl.server.max.receive.size": "-1"},
    "frame before authentication: none": {"sasl.server.max.receive.size": "0"},
    "frame before authentication: a word": {"sasl.server.max.receive.size": "x"},
    "delay: negative": {"connection.failed.authentication.delay.ms": "-1"},
    "delay: longer than idle": {"connection.failed.authentication.delay.ms": "600001"},
    "a handler that is not there": {
        f"{OWN}plain.sasl.server.callback.handler.class": "com.example.Mine"
    },
    "a handler for all that is not there": {
        "sasl.server.callback.handler.class": "com.example.Mine"
    },
    "a login handler that is not there": {"sasl.login.callback.handler.class": "com.example.Mine"},
    "a login class that is not there": {"sasl.login.class": "com.example.Mine"},
    "a client's handler that is not there": {
        "sasl.client.callback.handler.class": "com.example.Mine"
    },
    "a principal builder that is not there": {"principal.builder.class": "com.example.Mine"},
    "Kafka's principal builder": {
        "principal.builder.class": "org.apache.kafka.common.security.authenticator."
        "DefaultKafkaPrincipalBuilder"
    },
    "rules of Kerberos names that are none": {"sasl.kerberos.principal.to.local.rules": "x"},
    "an empty secret of tokens": {"delegation.token.secret.key": ""},
    "life of tokens: none": {"delegation.token.max.lifetime.ms": "0"},
    "both ways to name the listener between brokers": {
        "security.inter.broker.protocol": "SASL_PLAINTEXT"
    },
    "the protocol between brokers": {
        "inter.broker.listener.name": None,
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
    },
    "an unknown protocol between brokers": {
        "inter.broker.listener.name": None,
        "security.inter.broker.protocol": "TLS",
    },
    "an unknown protocol of the listener": {MAP: "CLIENTS:TLS,CONTROLLER:PLAINTEXT"},
    "a protocol in small letters": {MAP: "CLIENTS:sasl_plaintext,CONTROLLER:PLAINTEXT"},
    "no protocol of the listener": {MAP: "CONTROLLER:PLAINTEXT"},
}
OF_SCRAM: dict[str, Settings] = {
    "as it should be": {},
    "no module": {SCRAM_JAAS: None},
    "nothing to log in with": {SCRAM_JAAS: f"{SCRAM_MODULE} required;"},
    "the module of PLAIN": {SCRAM_JAAS: USERS},
    "the other hash between brokers": {"sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256"},
    "a hash that is not there": {"sasl.enabled.mechanisms": "SCRAM-SHA-512,SCRAM-SHA-1"},
}
OF_TOKENS: dict[str, Settings] = {
    "as it should be": {},
    "no module": {OAUTH_JAAS: None},
    "no keys": {JWKS: None},
    "keys at an address that is not allowed": {JWKS: "https://127.0.0.1:1/keys"},
    "keys of a file that is not allowed": {JWKS: "file://@/other.json"},
    "keys at no address": {JWKS: "keys"},
    "keys by another protocol": {JWKS: "ftp://127.0.0.1/keys"},
    "no audience": {"sasl.oauthbearer.expected.audience": None},
    "no issuer": {"sasl.oauthbearer.allow.unverified.issuer": None},
    "tokens without a signature": {
        f"{OWN}oauthbearer.sasl.server.callback.handler.class": UNSECURED,
        JWKS: None,
    },
    "the handler that nothing asks for": {
        f"{OWN}oauthbearer.sasl.server.callback.handler.class": None
    },
    "another handler": {f"{OWN}oauthbearer.sasl.server.callback.handler.class": "com.example.Mine"},
    "skew: negative": {"sasl.oauthbearer.clock.skew.seconds": "-1"},
    "no claim of the subject": {"sasl.oauthbearer.sub.claim.name": ""},
    "refresh: none": {"sasl.oauthbearer.jwks.endpoint.refresh.ms": "0"},
}
OF_CONTROLLER: dict[str, Settings] = {
    "as it should be": {},
    "no mechanism": {"sasl.mechanism.controller.protocol": None},
    "a mechanism that is not enabled": {"sasl.mechanism.controller.protocol": "SCRAM-SHA-512"},
    "an unknown mechanism": {"sasl.mechanism.controller.protocol": "X"},
    "no module": {"listener.name.controller.plain.sasl.jaas.config": None},
    "enabled for the listener alone": {
        "sasl.enabled.mechanisms": None,
        f"{OWN}sasl.enabled.mechanisms": "PLAIN",
        "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
    },
    "enabled for all but the listener": {
        "listener.name.controller.sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.controller.scram-sha-512.sasl.jaas.config": f"{SCRAM_MODULE} required;",
    },
    "without a user of its own": {
        "listener.name.controller.plain.sasl.jaas.config": f'{PLAIN_MODULE} required user_n="p";'
    },
    "of SASL where brokers have none": {
        MAP: "CLIENTS:PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": None,
    },
    "TLS without a store": {MAP: "CLIENTS:SASL_PLAINTEXT,CONTROLLER:SSL"},
    "TLS with a store of its own": {
        MAP: "CLIENTS:SASL_PLAINTEXT,CONTROLLER:SSL",
        "listener.name.controller.ssl.keystore.type": "PEM",
        "listener.name.controller.ssl.keystore.location": "@/node.pem",
    },
}
OF_TLS: dict[str, Settings] = {
    "as it should be": {},
    "no key store": {"ssl.keystore.location": None, "ssl.keystore.type": None},
    "no place of the key store": {"ssl.keystore.location": None},
    "a file that is not there": {"ssl.keystore.location": "@/none.pem"},
    "a file that is nothing": {"ssl.keystore.location": "@/damaged.pem"},
    "a folder": {"ssl.keystore.location": "@"},
    "a key of another certificate": {"ssl.keystore.location": "@/mismatched.pem"},
    "a key alone": {"ssl.keystore.location": "@/key.pem"},
    "a certificate alone": {"ssl.keystore.location": "@/certificate.pem"},
    "an encrypted key without its password": {"ssl.keystore.location": "@/encrypted.pem"},
    "an encrypted key": {
        "ssl.keystore.location": "@/encrypted.pem",
        "ssl.key.password": WORD,
    },
    "an encrypted key with another password": {
        "ssl.keystore.location": "@/encrypted.pem",
        "ssl.key.password": "other",
    },
    "a password of a PEM store": {"ssl.keystore.password": WORD},
    "a type in small letters": {"ssl.keystore.type": "pem"},
    "an unknown type": {"ssl.keystore.type": "BKS"},
    "an empty type": {"ssl.keystore.type": ""},
    "a PEM file as JKS": {"ssl.keystore.type": "JKS", "ssl.keystore.password": WORD},
    "an expired certificate": {"ssl.keystore.location": "@/expired.pem"},
    "a certificate of later": {"ssl.keystore.location": "@/later.pem"},
    "a certificate without names of hosts": {"ssl.keystore.location": "@/nameless.pem"},
    "a certificate that the trust store does not vouch for": {
        "ssl.keystore.location": "@/stranger.pem"
    },
    "no trust store": {"ssl.truststore.location": None, "ssl.truststore.type": None},
    "no trust store, certificates asked for": {
        "ssl.truststore.location": None,
        "ssl.truststore.type": None,
        "ssl.client.auth": "required",
    },
    "a trust store that is not there": {"ssl.truststore.location": "@/none.pem"},
    "a trust store that is nothing": {"ssl.truststore.location": "@/damaged.pem"},
    "an empty trust store": {"ssl.truststore.location": "@/empty.pem"},
    "a password of a PEM trust store": {"ssl.truststore.password": WORD},
    "trusted certificates in the settings": {
        "ssl.truststore.location": None,
        "ssl.truststore.certificates": "@{authority}",
    },
    "trusted certificates in both": {"ssl.truststore.certificates": "@{authority}"},
    "trusted certificates of nothing": {
        "ssl.truststore.location": None,
        "ssl.truststore.certificates": "x",
    },
    "an unknown type of trust store": {"ssl.truststore.type": "BKS"},
    "certificates asked for": {"ssl.client.auth": "required"},
    "certificates asked for in capitals": {"ssl.client.auth": "REQUIRED"},
    "certificates asked for by a word": {"ssl.client.auth": "never"},
    "TLS 1.2": {"ssl.enabled.protocols": "TLSv1.2"},
    "TLS 1.3": {"ssl.enabled.protocols": "TLSv1.3"},
    "TLS 1.1": {"ssl.enabled.protocols": "TLSv1.1"},
    "an unknown version": {"ssl.enabled.protocols": "TLSv1.4"},
    "no version": {"ssl.enabled.protocols": ""},
    "the context's version": {"ssl.protocol": "TLSv1.2"},
    "the context's version: TLS": {"ssl.protocol": "TLS"},
    "the context's version: unknown": {"ssl.protocol": "x"},
    "a suite of TLS 1.2": {
        "ssl.enabled.protocols": "TLSv1.2",
        "ssl.cipher.suites": "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    },
    "an unknown suite": {"ssl.cipher.suites": "X"},
    "names not compared": {"ssl.endpoint.identification.algorithm": ""},
    "names compared, in small letters": {"ssl.endpoint.identification.algorithm": "https"},
    "names compared by nothing known": {"ssl.endpoint.identification.algorithm": "X"},
    "an unknown provider": {"ssl.provider": "X"},
    "an unknown source of chance": {"ssl.secure.random.implementation": "X"},
    "an unknown key manager": {"ssl.keymanager.algorithm": "X"},
    "an unknown trust manager": {"ssl.trustmanager.algorithm": "X"},
    "an engine that is not there": {"ssl.engine.factory.class": "com.example.Mine"},
    "rules of names": {"ssl.principal.mapping.rules": "RULE:^CN=(.*?),.*$/$1/L,DEFAULT"},
    "rules of names that are none": {"ssl.principal.mapping.rules": "RULE:x"},
    "a rule with another end": {"ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/X"},
    "a rule with an open group": {"ssl.principal.mapping.rules": "RULE:^CN=(.*$/$1/"},
    "no rules of names": {"ssl.principal.mapping.rules": ""},
    "a store of the listener": {
        "ssl.keystore.location": "@/none.pem",
        f"{OWN}ssl.keystore.location": "@/node.pem",
    },
    "a wrong store of the listener": {f"{OWN}ssl.keystore.location": "@/none.pem"},
    "a wrong store where no listener has TLS": {
        MAP: "CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "ssl.keystore.location": "@/none.pem",
    },
    "TLS and SASL": {**SASL, MAP: "CLIENTS:SASL_SSL,CONTROLLER:PLAINTEXT"},
    "TLS and SASL without a store": {
        **SASL,
        MAP: "CLIENTS:SASL_SSL,CONTROLLER:PLAINTEXT",
        "ssl.keystore.location": None,
        "ssl.keystore.type": None,
    },
}
OF_P12: dict[str, Settings] = {
    "as it should be": {},
    "no password": {"ssl.keystore.password": None},
    "another password": {"ssl.keystore.password": "other"},
    "the password of the key": {"ssl.key.password": WORD},
    "another password of the key": {"ssl.key.password": "other"},
    "read as JKS": {"ssl.keystore.type": "JKS"},
    "read as PEM": {"ssl.keystore.type": "PEM"},
    "the default type": {"ssl.keystore.type": None},
    "a store without a key": {"ssl.keystore.location": "@/authority.p12"},
    "a trust store without a password": {
        "ssl.truststore.type": "PKCS12",
        "ssl.truststore.location": "@/authority.p12",
    },
    "a trust store with its password": {
        "ssl.truststore.type": "PKCS12",
        "ssl.truststore.location": "@/authority.p12",
        "ssl.truststore.password": WORD,
    },
    "a trust store with another password": {
        "ssl.truststore.type": "PKCS12",
        "ssl.truststore.location": "@/authority.p12",
        "ssl.truststore.password": "other",
    },
}
OF_INLINE: dict[str, Settings] = {
    "as it should be": {},
    "a key alone": {"ssl.keystore.certificate.chain": None},
    "a certificate alone": {"ssl.keystore.key": None},
    "a key that is none": {"ssl.keystore.key": "x"},
    "a certificate that is none": {"ssl.keystore.certificate.chain": "x"},
    "beside a file": {"ssl.keystore.location": "@/node.pem"},
    "beside a password of the store": {"ssl.keystore.password": WORD},
    "of another type": {"ssl.keystore.type": "JKS"},
    "an encrypted key": {"ssl.keystore.key": "@{encrypted}", "ssl.key.password": WORD},
    "an encrypted key without its password": {"ssl.keystore.key": "@{encrypted}"},
}
GROUPS: dict[str, tuple[Settings, dict[str, Settings]]] = {
    "SASL": (SASL, OF_SASL),
    "SCRAM": (SCRAM, OF_SCRAM),
    "tokens": (TOKENS, OF_TOKENS),
    "controller": (CONTROLLER, OF_CONTROLLER),
    "TLS": (TLS, OF_TLS),
    "PKCS12": (P12, OF_P12),
    "inline": (INLINE, OF_INLINE),
}


def prepare(directory: Path) -> None:
    """The files that the settings name."""
    authority, stranger = Authority(), Authority("a stranger")
    authority.write(directory)
    node = authority.sign("node")
    node.write(directory, "node")
    authority.sign("node", days=(-30, -3)).write(directory, "expired")
    authority.sign("node", days=(3, 30)).write(directory, "later")
    authority.sign("node", ()).write(directory, "nameless")
    stranger.sign("node").write(directory, "stranger")
    other = authority.sign("node")
    texts = {
        "damaged.pem": "nothing",
        "empty.pem": "",
        "mismatched.pem": other.key_pem() + node.pem,
        "key.pem": node.key_pem(),
        "certificate.pem": node.pem,
        "encrypted.pem": node.key_pem(WORD) + node.pem,
        "encrypted-key.pem": node.key_pem(WORD),
        "keys.json": '{"keys": []}',
        "other.json": '{"keys": []}',
    }
    for name, text in texts.items():
        (directory / name).write_text(text)
    (directory / "node.p12").write_bytes(node.pkcs12(WORD))
    (directory / "authority.p12").write_bytes(authority.pkcs12(WORD))


def cases(directory: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Name and settings of each, all that a node is started with."""
    for group, (base, changes) in GROUPS.items():
        for name, change in changes.items():
            settings = {**BASE, **base, **change}
            filled = {
                key: _filled(text, directory) for key, text in settings.items() if text is not None
            }
            yield f"{group}: {name}", filled


def _filled(text: str, directory: Path) -> str:
    texts = {
        "@{key}": "key.pem",
        "@{certificate}": "certificate.pem",
        "@{authority}": "authority.pem",
        "@{encrypted}": "encrypted-key.pem",
    }
    if text in texts:
        return (directory / texts[text]).read_text()
    return text.replace("@", str(directory))


def ask_kafka(libs: Path, directory: Path) -> dict[str, list[str] | None]:
    """What Kafka's start says to all of them, in one JVM."""
    names, settings = zip(*cases(directory), strict=True)
    done = subprocess.run(
        [
            *("java", "-XX:TieredStopAtLevel=1", "-Dlog4j2.level=OFF"),
            f"{ALLOWED}={_filled(ALLOWED_URL, directory)}",
            *("-cp", f"{libs}/*", str(ROOT / "compat_tests" / "peers" / "SecurityConfigs.java")),
        ],
        input="".join(f"{json.dumps(each)}\n" for each in settings),
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("answer ")]
    answers = {}
    for name, line in zip(names, lines, strict=True):
        answers[name] = json.loads(line.removeprefix("answer ").replace(str(directory), "@"))
    return answers


def recorded() -> dict[str, list[str] | None]:
    """What Apache Kafka 4.4 said."""
    found: dict[str, list[str] | None] = json.loads(gzip.decompress(RECORDED.read_bytes()))
    return found
