"""Who a client is by its certificate: what the rules make of its name is what ACLs speak of."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwire.cli.client import Client
from kwire.cli.cluster import free_ports
from kwire.cli.operations import create_topic
from kwire.client.errors import ClientError
from kwire.testing.cluster import Broker
from tests.support.certificates import Authority, secure_options


def test_the_mapped_name_of_a_certificate_has_the_rights(tmp_path: Path) -> None:
    authority = Authority()
    plain, tls = (f"127.0.0.1:{port}" for port in free_ports(2))
    audit = tmp_path / "audit.log"
    options = secure_options(tmp_path, authority.sign(), authority) | {
        "kwire.audit.log": str(audit),
        "kwire.audit.events": "authentication_failure",
        "listeners": f"PLAINTEXT://{plain},SSL://{tls}",
        "ssl.client.auth": "requested",
        "ssl.principal.mapping.rules": "RULE:^CN=(svc-.*)$/$1/U,RULE:^CN=known$/known/",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:SVC-A;User:CN=other",
    }
    told = {}
    with Broker(options=options, pass_listen=False):
        for name in ("svc-a", "svc-b", "other", None):
            lines = [
                "security.protocol=SSL",
                "ssl.truststore.type=PEM",
                f"ssl.truststore.location={tmp_path / 'authority.pem'}",
            ]
            if name is not None:
                store = authority.sign(name, ()).write(tmp_path, name)
                lines += ["ssl.keystore.type=PEM", f"ssl.keystore.location={store}"]
            path = tmp_path / "client.properties"
            path.write_text("\n".join(lines) + "\n")
            try:
                with Client(tls, command_config=str(path)) as client:
                    create_topic(client, f"t-{name}", 1, 1, {})
                told[name] = "done"
            except ClientError as error:
                told[name] = str(error)
    assert told["svc-a"] == "done"
    for name in ("svc-b", None):  # a name without rights, and User:ANONYMOUS
        assert "uthoriz" in told[name], told
    assert "closed the connection" in told["other"], told  # no rule fits: nobody is served
    assert "no rule of ssl.principal.mapping.rules fits" in audit.read_text()


def test_rules_that_cannot_be_read_are_named_at_the_start(tmp_path: Path) -> None:
    authority = Authority()
    options = secure_options(tmp_path, authority.sign(), authority) | {
        "listeners": "SSL://127.0.0.1:0",
        "inter.broker.listener.name": "SSL",
        "ssl.principal.mapping.rules": "RULE:x",
    }
    with pytest.raises(Exception, match="Invalid rule: `RULE:x`"):
        Broker(options=options, pass_listen=False).start()
