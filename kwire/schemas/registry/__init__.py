"""A schema registry as a state machine: subjects, versions, ids, configs, modes; pure.

json_values.py   JSON with types and bounds
errors.py        what a request is refused with: the codes that registries have for it
names.py         subjects, and the contexts they are in
requests.py      what comes in the bodies of requests, checked
records.py       keys and values of the topic `_schemas`
version.py       one version of a subject, and its GUID
state.py         all of it, and what is looked up in it; only `replay(key, value)` changes it
scopes.py        which config and which mode hold for a subject
schemas.py       schemas parsed, with those they refer to
metadata.py      metadata and rule sets: checked, merged
machine.py       the state with what reads it; a decision: (records, answer)
registering.py, deleting.py, settings.py   requests that change it -> a decision
queries.py, checks.py                      requests that do not

Source: the public REST API reference of Confluent's Schema Registry; the records are those that it
and others of its kind read and write. How they get into the topic: `kwire/http/purposes/registry/`.
"""
