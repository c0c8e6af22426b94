"""The classes of the messages are what the schema says."""

from __future__ import annotations

from kwire.protocol import messages, schema
from kwire.protocol.bare_classes import bare_class
from kwire.protocol.structs import Message, Tagged
from tools import generate_messages


def test_generated_classes_are_up_to_date() -> None:
    assert generate_messages.outdated(generate_messages.files()) == []


def test_a_changed_schema_is_noticed() -> None:
    made = generate_messages.files()
    made["api/fetch.py"] += "# more\n"
    del made["api/produce.py"]
    made["api/echo.py"] = ""
    assert generate_messages.outdated(made) == ["api/echo.py", "api/fetch.py", "api/produce.py"]


def test_every_class_has_the_fields_of_its_struct() -> None:
    for path in sorted(generate_messages.SCHEMA.rglob("*.txt")):
        for definition in generate_messages.messages_of(path):
            cls = messages.by_name(definition.name)
            assert issubclass(cls, Message)
            assert cls.STRUCTS.keys() == {definition.name, *definition.structs}
            structs = {**definition.structs, definition.name: definition.root}
            for name, struct in structs.items():
                check_class(cls.STRUCTS[name], struct)


def check_class(cls: type, struct: schema.Struct) -> None:
    assert tuple(field.name for field in struct.fields) == cls.FIELDS
    for field in struct.fields:
        assert isinstance(vars(cls)[field.name], Tagged) == (field.tag is not None)
    made = cls()
    for field in struct.fields:
        if field.default is not ...:
            assert getattr(made, field.name) == field.default
    bare = bare_class(cls)()
    bare._tagged = None
    for name in cls.FIELDS:
        setattr(bare, name, getattr(made, name))
    assert isinstance(bare, cls)
    assert bare == made == bare.copy()
    assert repr(bare) == repr(made)
