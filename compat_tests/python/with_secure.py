"""Logins of kafka-python, confluent-kafka and aiokafka: every mechanism over TLS, and a certificate.

Each case writes and reads as the user who has the rights. SECURE: the file of settings that ../README.md describes.
"""

import asyncio
import json
import logging
import os
import ssl
import time

import harness
from harness import equal, fresh, until

GIVEN = json.load(open(os.environ["SECURE"]))
MECHANISMS = ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN", "OAUTHBEARER")
VALUES = [b"v%d" % n for n in range(100)]
WRONG = "wrong"
TOKEN_LIFE_S = 3600


def context():
    return ssl.create_default_context(cafile=GIVEN["authority"])


# -- one client each: topic and login in, values out


def kafka_python(topic, mechanism, password=GIVEN["password"]):
    from kafka import KafkaConsumer, KafkaProducer
    from kafka.net.sasl.oauth import AbstractTokenProvider

    class Tokens(AbstractTokenProvider):
        def token(self):
            return GIVEN["token"]

    login = {
        "ssl_cafile": GIVEN["authority"],
        "bootstrap_servers": GIVEN["sasl_ssl"],
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": mechanism,
    }
    if mechanism is None:
        login = {
            "ssl_cafile": GIVEN["authority"],
            "bootstrap_servers": GIVEN["ssl"],
            "security_protocol": "SSL",
            "ssl_certfile": GIVEN["certificate"],
            "ssl_keyfile": GIVEN["key"],
        }
    elif mechanism == "OAUTHBEARER":
        login["sasl_oauth_token_provider"] = Tokens()
    else:
        login |= {"sasl_plain_username": GIVEN["user"], "sasl_plain_password": password}
    producer = KafkaProducer(
        **login, acks="all", bootstrap_timeout_ms=30_000 if password != WRONG else 2_000
    )
    try:
        sent = [producer.send(topic, value) for value in VALUES]
        for each in sent:
            each.get(30)
    finally:
        producer.close(5)
    consumer = KafkaConsumer(
        topic, group_id=topic, auto_offset_reset="earliest", consumer_timeout_ms=30_000, **login
    )
    got = [next(consumer).value for _ in VALUES]
    consumer.close()
    return got


def aiokafka(topic, mechanism, password=GIVEN["password"]):
    import aiokafka
    from aiokafka.abc import AbstractTokenProvider

    class Tokens(AbstractTokenProvider):
        async def token(self):
            return GIVEN["token"]

    async def talk():
        tls = context()
        login = {
            "ssl_context": tls,
            "bootstrap_servers": GIVEN["sasl_ssl"],
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": mechanism,
        }
        if mechanism is None:
            tls.load_cert_chain(GIVEN["certificate"], GIVEN["key"])
            login = {
                "ssl_context": tls,
                "bootstrap_servers": GIVEN["ssl"],
                "security_protocol": "SSL",
            }
        elif mechanism == "OAUTHBEARER":
            login["sasl_oauth_token_provider"] = Tokens()
        else:
            login |= {"sasl_plain_username": GIVEN["user"], "sasl_plain_password": password}
        async with aiokafka.AIOKafkaProducer(**login, acks="all") as producer:
            for each in [await producer.send(topic, value) for value in VALUES]:
                await each
        async with aiokafka.AIOKafkaConsumer(
            topic, group_id=topic, auto_offset_reset="earliest", **login
        ) as consumer:
            return [(await consumer.getone()).value for _ in VALUES]

    return asyncio.run(asyncio.wait_for(talk(), 60))


def confluent_settings(mechanism, password=GIVEN["password"]):
    if mechanism is None:
        return {
            "bootstrap.servers": GIVEN["ssl"],
            "security.protocol": "SSL",
            "ssl.ca.location": GIVEN["authority"],
            "ssl.certificate.location": GIVEN["certificate"],
            "ssl.key.location": GIVEN["key"],
        }
    login = {
        "bootstrap.servers": GIVEN["sasl_ssl"],
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "ssl.ca.location": GIVEN["authority"],
    }
    if mechanism == "OAUTHBEARER":
        return login | {"oauth_cb": lambda _: (GIVEN["token"], time.time() + TOKEN_LIFE_S)}
    return login | {"sasl.username": GIVEN["user"], "sasl.password": password}


def confluent(topic, mechanism):
    from confluent_kafka import Consumer, Producer

    login = confluent_settings(mechanism)
    producer = Producer({**login, "acks": "all"})
    for value in VALUES:
        producer.produce(topic, value)
    equal(producer.flush(60), 0, "records not sent")
    consumer = Consumer({**login, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    got = []
    until(
        lambda: (
            got.extend(m.value() for m in consumer.consume(len(VALUES), 1.0) if not m.error())
            or len(got) >= len(VALUES)
        ),
        60,
    )
    consumer.close()
    return got


# -- cases


def case_of(client, mechanism):
    def writes_and_reads(_bootstrap):
        equal(client(fresh("secure"), mechanism), VALUES)

    word = "certificate" if mechanism is None else mechanism.lower().replace("-", "_")
    writes_and_reads.__name__ = f"{client.__name__}_{word}"
    return writes_and_reads


for client in (kafka_python, aiokafka, confluent):
    for mechanism in (*MECHANISMS, None):
        harness.case(case_of(client, mechanism))


@harness.case
def kafka_python_wrong_password_is_refused(_bootstrap):
    """It does not read what comes with the end of a connection, and so never says why (with Apache Kafka, too)."""
    for mechanism in ("SCRAM-SHA-512", "PLAIN"):
        harness.raises("Unable to bootstrap", kafka_python, fresh("secure"), mechanism, WRONG)


@harness.case
def aiokafka_wrong_password_is_refused(_bootstrap):
    """It only says in its log why it cannot connect."""
    told = []
    handler = logging.Handler()
    handler.emit = lambda record: told.append(record.getMessage())
    logging.getLogger("aiokafka").addHandler(handler)
    for mechanism in ("SCRAM-SHA-512", "PLAIN"):
        told.clear()
        harness.raises("KafkaConnectionError", aiokafka, fresh("secure"), mechanism, WRONG)
        assert any("Authentication" in text for text in told), told


@harness.case
def confluent_wrong_password_is_refused(_bootstrap):
    from confluent_kafka import KafkaError, Producer

    for mechanism in ("SCRAM-SHA-512", "PLAIN"):
        errors = []
        producer = Producer({**confluent_settings(mechanism, WRONG), "error_cb": errors.append})
        until(
            lambda: (
                producer.poll(0.2)
                or KafkaError._AUTHENTICATION in [error.code() for error in errors]
            )
        )


if __name__ == "__main__":
    harness.main("python-secure")
