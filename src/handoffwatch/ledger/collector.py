"""The ledger's numbers as Prometheus series: new families for every scrape, from one snapshot."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from handoffwatch import catalogue
from handoffwatch.catalogue import Kind, Registered
from handoffwatch.ledger.facts import Labels, Snapshot
from handoffwatch.ledger.ledger import Ledger
from handoffwatch.vocabulary import OTHER, Component, Effect, Mode

_LOG = logging.getLogger("handoffwatch.ledger")

_COUNTERS: Final = (
    catalogue.LEDGER_CLAIMS,
    catalogue.LEDGER_CLAIMS_SETTLED,
    catalogue.LEDGER_FALSE_SUCCESSES,
    catalogue.LEDGER_UNCLAIMED,
    catalogue.LEDGER_EFFECTS_SETTLED,
    catalogue.LEDGER_FINAL_EVALS,
    catalogue.LEDGER_VIOLATIONS_BEFORE_EVAL,
    catalogue.LEDGER_HANDOFF_REVIEWS,
    catalogue.LEDGER_GUARD_REVIEWS,
)
_OF_EVERY_WORKFLOW: Final = (
    catalogue.LEDGER_FINAL_EVALS,
    catalogue.LEDGER_VIOLATIONS_BEFORE_EVAL,
    catalogue.LEDGER_GUARD_REVIEWS,
)
"""The counters of workflows that need no operations."""

_UNKNOWN_ROUTE: Final = {"route": OTHER, "schema_version": OTHER, "mode": Mode.ENFORCE}
_TIMESTAMPS: Final = (catalogue.LEDGER_FALSE_SUCCESS_LAST, catalogue.LEDGER_VERIFICATION_LAST)
_OPEN: Final = (
    catalogue.LEDGER_CLAIMS_OPEN,
    catalogue.LEDGER_EFFECTS_OPEN,
    catalogue.LEDGER_EFFECTS_OVERDUE,
    catalogue.LEDGER_EFFECTS_OLDEST,
    catalogue.LEDGER_CASES_OPEN,
    catalogue.LEDGER_CASES_OLDEST,
)
_OWN: Final = (catalogue.COLLECTOR_SUCCESS, catalogue.COLLECTOR_DURATION, catalogue.COLLECTOR_REGRESSIONS)

FED: Final = (*_COUNTERS, *_TIMESTAMPS, *_OPEN, *_OWN)
"""The metrics of the catalogue that this collector feeds."""

Values = Mapping[Labels, float]


class LedgerCollector(Collector):
    """Reads the ledger at each scrape; thread-safe.

    When the ledger cannot be read its series are absent, which is not 0, and `collector_success` is 0. A counter that
    fell between two scrapes (a restored backup) gives the ledger a new id, so that no rate counts the fall as a reset.

    Args:
        ledger: The ledger to read; its clock measures how long that takes.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._lock = threading.Lock()
        self._seen: Snapshot | None = None
        self._regressions = 0

    def describe(self) -> Iterable[Metric]:
        """Return the families without their samples, and without reading the ledger."""
        return [_family(metric) for metric in FED]

    def collect(self) -> Iterable[Metric]:
        """Return the families of one snapshot."""
        with self._lock:
            started_s = self._ledger.clock.monotonic_s()
            families = self._read()
            duration_s = self._ledger.clock.monotonic_s() - started_s
            own = {
                catalogue.COLLECTOR_SUCCESS: float(families is not None),
                catalogue.COLLECTOR_DURATION: duration_s,
                catalogue.COLLECTOR_REGRESSIONS: float(self._regressions),
            }
        return [*(families or []), *(_own_family(metric, value) for metric, value in own.items())]

    def _read(self) -> list[Metric] | None:
        try:
            snapshot = self._ledger.snapshot()
            if self._seen is not None and _has_fallen(self._seen, snapshot):
                self._ledger.renew_id(snapshot.ledger_id)
                self._regressions += 1
                snapshot = self._ledger.snapshot()
            self._seen = snapshot
            return [_family(metric, snapshot.label, values) for metric, values in _values(snapshot)]
        except Exception as error:  # noqa: BLE001  a scrape must not fail: collector_success says that this part did
            _LOG.warning("the ledger cannot be read: %s", type(error).__name__)
            return None


def _has_fallen(before: Snapshot, now: Snapshot) -> bool:
    if before.ledger_id != now.ledger_id:
        return False
    return any(now.counters.get(key, 0) < value for key, value in before.counters.items())


def _values(snapshot: Snapshot) -> Iterator[tuple[catalogue.Metric, Values]]:
    """Yield each metric that the ledger feeds with its values, those born at 0 first."""
    for metric in _COUNTERS:
        yield metric, _born(metric, snapshot) | _stored(metric, snapshot.counters)
    for metric in _TIMESTAMPS:
        yield metric, _born(metric, snapshot) | _stored(metric, snapshot.timestamps)
    yield from _open_values(snapshot)


def _open_values(snapshot: Snapshot) -> Iterator[tuple[catalogue.Metric, Values]]:
    metric = catalogue.LEDGER_CLAIMS_OPEN
    yield metric, _born(metric, snapshot) | {labels: float(n) for labels, n in snapshot.claims.items()}
    metric = catalogue.LEDGER_EFFECTS_OPEN
    yield metric, _born(metric, snapshot) | {labels: float(group.count) for labels, group in snapshot.effects.items()}
    metric = catalogue.LEDGER_EFFECTS_OVERDUE
    overdue = _born(metric, snapshot)
    for (operation, _effect), group in snapshot.effects.items():
        overdue[(operation,)] = overdue.get((operation,), 0.0) + group.overdue
    yield metric, overdue
    yield catalogue.LEDGER_EFFECTS_OLDEST, {key: group.oldest_unix_s for key, group in snapshot.effects.items()}
    metric = catalogue.LEDGER_CASES_OPEN
    yield metric, _born(metric, snapshot) | {labels: float(group.count) for labels, group in snapshot.cases.items()}
    yield catalogue.LEDGER_CASES_OLDEST, {key: group.oldest_unix_s for key, group in snapshot.cases.items()}


def _stored(metric: catalogue.Metric, rows: Mapping[tuple[str, Labels], float]) -> dict[Labels, float]:
    return {labels: float(value) for (name, labels), value in rows.items() if name == metric.name}


def _born(metric: catalogue.Metric, snapshot: Snapshot) -> dict[Labels, float]:
    """Return every combination that the registrations can yield, at 0."""
    born: dict[Labels, float] = {}
    for known in _known(metric, snapshot):
        choices = [(str(known[label.name]),) if label.name in known else _closed(label) for label in metric.labels[1:]]
        born |= dict.fromkeys(itertools.product(*choices), 0.0)
    return {key: value for key, value in born.items() if _can_be(metric, key)}


def _known(metric: catalogue.Metric, snapshot: Snapshot) -> Iterator[Mapping[str, str]]:
    """Yield the values of labels that belong together, for each registration that bears series of the metric."""
    registered = {label.values for label in metric.labels[1:]} & set(Registered)
    if Registered.ROUTE in registered:
        for route in snapshot.routes:
            for version in (route.schema_version, OTHER):
                yield {"route": route.route, "schema_version": version, "mode": route.mode}
        yield _UNKNOWN_ROUTE
    elif metric in _OF_EVERY_WORKFLOW:
        for workflow in snapshot.workflows:
            yield {"workflow": workflow}
    elif registered:
        for row in snapshot.registrations:
            yield {"workflow": row.workflow, "operation": row.operation, "criticality": row.criticality}
    else:
        yield {}


def _closed(label: catalogue.Label) -> tuple[str, ...]:
    if isinstance(label.values, Registered):
        raise TypeError(f"catalogue: label {label.name}: must be known to the ledger's registrations")
    return tuple(str(value) for value in label.values)


def _can_be(metric: catalogue.Metric, labels: Labels) -> bool:
    """Return whether a settled effect can have this cause: landed has none, not_landed always has one."""
    if metric is not catalogue.LEDGER_EFFECTS_SETTLED:
        return True
    *_, effect, cause = labels
    return (effect == Effect.LANDED) is (cause == "")


def _family(metric: catalogue.Metric, ledger: str = "", values: Values | None = None) -> Metric:
    """Return a new family with one sample for each value, sorted by labels."""
    kind = CounterMetricFamily if metric.kind is Kind.COUNTER else GaugeMetricFamily
    family = kind(metric.full_name, metric.help, labels=metric.label_names)
    for labels, value in sorted((values or {}).items()):
        family.add_metric([ledger, *labels], value)
    return family


def _own_family(metric: catalogue.Metric, value: float) -> Metric:
    """Return the family of a metric about this collector."""
    family = _family(metric)
    family.add_metric([Component.LEDGER], value)  # type: ignore[attr-defined]
    return family
