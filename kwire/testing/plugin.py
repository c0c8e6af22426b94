"""The pytest plugin: the fixtures `kafka` and `kafka_cluster`, the marker `kafka`.

It is loaded by every run of pytest, so that it imports nothing before a fixture is used.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

import pytest

if TYPE_CHECKING:
    from kwire.testing.broker import Broker
    from kwire.testing.broker_cluster import Cluster

MARKER = "kafka"
OPTIONS = ("brokers", "config", "process", "faults")
LOG_CHARACTERS = 20_000

T = TypeVar("T")

_running = pytest.StashKey["dict[str, Any]"]()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "kafka(brokers=1, config=None, process=False, faults=False): what the fixtures kafka and "
        "kafka_cluster start: how many brokers, with which configs of Kafka's, in threads or as "
        "processes",
    )


@pytest.fixture
def kafka(request: pytest.FixtureRequest) -> Iterator[Broker | Cluster]:
    """A broker of this test's own, with a port of its own: `kafka.bootstrap`, `kafka.topic("t")`.

    With the marker `kafka(brokers=3)` it is a cluster.
    """
    options = _options(request)
    brokers = options.pop("brokers", 1)
    if brokers == 1:
        from kwire.testing.broker import Broker

        broker = _started(lambda: Broker(**options))
        with broker:
            yield _shown(request, "kafka", broker)
    else:
        yield from _cluster(request, "kafka", brokers, options)


@pytest.fixture
def kafka_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Three brokers in one cluster of this test's own: `kafka_cluster[1].kill()`."""
    options = _options(request)
    yield from _cluster(request, "kafka_cluster", options.pop("brokers", 3), options)


def _cluster(
    request: pytest.FixtureRequest, name: str, brokers: int, options: dict[str, Any]
) -> Iterator[Cluster]:
    from kwire.testing.broker_cluster import Cluster

    cluster = _started(lambda: Cluster(brokers, **options))
    with cluster:
        yield _shown(request, name, cluster)


def _started(make: Callable[[], T]) -> T:
    """Brokers as a marker says, that serve; in one line where they cannot have it."""
    from kwire.testing.brokers.runner import BrokerFailed

    told = ""
    try:
        made: Any = make()
    except (TypeError, ValueError) as error:
        told = f"pytest.mark.kafka: {error}"
    if not told:
        try:
            return cast("T", made.start())
        except BrokerFailed as error:
            told = str(error)
    # Outside of the blocks, whose error would be shown too.
    pytest.fail(told, pytrace=False)


def _options(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What the markers of a test say; the nearest one wins option by option."""
    found: dict[str, Any] = {}
    for marker in request.node.iter_markers(MARKER):
        if marker.args:
            _refuse(f"{marker.args[0]!r} has no name")
        for name, value in marker.kwargs.items():
            _check(name, value)
            if name == "config":
                found[name] = {**(value or {}), **found.get(name, {})}
            else:
                found.setdefault(name, value)
    return found


def _check(name: str, value: object) -> None:
    if name not in OPTIONS:
        _refuse(f"{name!r} is no option")
    if name == "brokers":
        from kwire.testing.broker_cluster import BROKERS_MAX

        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= BROKERS_MAX:
            _refuse(f"brokers={value!r}", f"1 to {BROKERS_MAX}")
    if name in ("process", "faults") and not isinstance(value, bool):
        _refuse(f"{name}={value!r}", "True and False")
    if name == "config":
        from kwire.testing.brokers.runner import setting_texts

        if value is None:
            return
        if not isinstance(value, Mapping):
            _refuse(f"config={value!r}", "a dictionary of configs")
        told = ""
        try:
            setting_texts(value)
        except TypeError as error:
            told = str(error)
        if told:  # outside of the block, whose error would be shown too
            pytest.fail(f"pytest.mark.kafka: {told}", pytrace=False)


def _refuse(
    what: str, accepted: str = "brokers=N, config={...}, process=True, faults=True"
) -> NoReturn:
    pytest.fail(f"pytest.mark.kafka: {what}; accepted: {accepted}", pytrace=False)


def _shown(request: pytest.FixtureRequest, name: str, brokers: Any) -> Any:
    """Its log is a section of the report if the test fails."""
    request.node.stash.setdefault(_running, {})[name] = brokers
    return brokers


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that failed shows what its brokers logged."""
    report = yield
    for name, brokers in item.stash.get(_running, {}).items():
        if report.failed:
            report.sections.append((f"log of {name}", brokers.log_text()[-LOG_CHARACTERS:]))
    return report
