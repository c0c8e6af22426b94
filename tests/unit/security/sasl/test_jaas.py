"""JAAS text as Kafka reads it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.config.errors import ConfigError
from kwire.security.sasl import jaas
from kwire.security.sasl.jaas import LoginModule, check_module, parse_jaas, parse_jaas_file

PLAIN = jaas.PLAIN_MODULE


def options(text: str) -> dict[str, str]:
    (module,) = parse_jaas(text)
    return dict(module.options)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("M required;", {}),
        ('M required user_a="x" b=y;', {"user_a": "x", "b": "y"}),
        ("M REQUIRED user_a='it''s' ;", None),
        ('M required a=\'say "x"\' b="it\'s";', {"a": 'say "x"', "b": "it's"}),
        (r'M required a="\"\\\n\t\101\x";', {"a": '"\\\n\tAx'}),
        ("M\n  sufficient\n  a=b-c_d$e.f\n;", {"a": "b-c_d$e.f"}),
        ("M required /* of\n old */ a=b // c=d\n e=f;", {"a": "b", "e": "f"}),
        ('M required a="x;y=z" b="";', {"a": "x;y=z", "b": ""}),
        ("M required a=ä;", {"a": "ä"}),
    ],
)
def test_options(text: str, expected: dict[str, str] | None) -> None:
    if expected is None:
        with pytest.raises(ConfigError):
            parse_jaas(text)
    else:
        assert options(text) == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "Login module not specified"),
        ("M", "control flag not specified"),
        ("M sometimes;", "Invalid login module control flag 'sometimes'"),
        ("M required", "not terminated by semi-colon"),
        ("M required a;", "Value not specified for key 'a'"),
        ("M required a=;", "Value not specified for key 'a'"),
        ("M required a=123;", "Value not specified for key 'a'"),
    ],
)
def test_what_is_malformed_is_refused_in_kafkas_words(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        parse_jaas(text)


def test_a_secret_with_wrong_quotes_is_not_told() -> None:
    with pytest.raises(ConfigError) as error:
        parse_jaas('M required user_a=first "hunter2 hunter3" x;')
    assert "hunter" not in str(error.value)


def test_sections_of_a_file() -> None:
    text = """
    KafkaServer { A required a=b; B optional; };
    sasl_plain.KafkaServer { A required; };
    """
    assert parse_jaas_file(text) == {
        "KafkaServer": [LoginModule("A", {"a": "b"}), LoginModule("B", {})],
        "sasl_plain.KafkaServer": [LoginModule("A", {})],
    }
    for bad in ("KafkaServer { A required; }", "KafkaServer { A required;", "KafkaServer A;"):
        with pytest.raises(ConfigError):
            parse_jaas_file(bad)


@pytest.mark.parametrize(
    "name",
    [
        "com.sun.security.auth.module.JndiLoginModule",
        "com.sun.security.auth.module.LdapLoginModule",
    ],
)
def test_other_login_modules_are_refused_by_name(name: str) -> None:
    """CVE-2023-25194, CVE-2024-31141: a login module is code that somebody else names."""
    with pytest.raises(ConfigError, match=f"{name} is not allowed"):
        check_module(LoginModule(name, {}))
    check_module(LoginModule(PLAIN, {}))


def test_options_are_in_no_repr() -> None:
    assert "hunter2" not in repr(parse_jaas('M required password="hunter2";'))


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    for parse in (parse_jaas, parse_jaas_file):
        try:
            parse(text)
        except ConfigError:
            pass


@given(st.dictionaries(st.from_regex(r"\Auser_[a-z]{1,8}\Z"), st.text(max_size=20), max_size=4))
def test_whatever_stands_in_quotes_comes_out(given_options: dict[str, str]) -> None:
    quoted = {
        name: value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        for name, value in given_options.items()
    }
    text = " ".join(f'{name}="{value}"' for name, value in quoted.items())
    if "\r" in text:
        return  # it ends a line, and there is an escape for it as well
    assert options(f"M required {text};") == given_options
