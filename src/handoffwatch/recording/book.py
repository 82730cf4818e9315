"""The book of samples: the catalogue's metrics as prometheus_client objects, with bounded series born at 0."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from opentelemetry.trace import SpanContext
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.metrics_core import Metric as Family

from handoffwatch.catalogue import LABEL_OVERFLOW, PREFIX, Born, Kind, Metric, Registered
from handoffwatch.errors import RegistrationError
from handoffwatch.vocabulary import OTHER

EXEMPLAR_EVERY_S: Final = 1.0
"""How often a histogram takes an exemplar, unless a larger value comes: a scrape reads only the last of each bucket."""


class Book:
    """Counts samples by metric and label values; values outside their set become `other` and are counted.

    Thread-safe. Every label set is bounded by the registrations, the closed sets and `series_max`.

    Args:
        registry: Where the metrics are exposed; a Watch has one of its own.
        metrics: The metrics that something feeds; only these are exposed.
        monotonic_s: The clock that spaces the exemplars.

    Raises:
        RegistrationError: The registry has a metric of one of these names already.
    """

    def __init__(
        self, registry: CollectorRegistry, metrics: Iterable[Metric], *, monotonic_s: Callable[[], float]
    ) -> None:
        self.metrics = tuple(metrics)
        self._monotonic_s = monotonic_s
        self._marked: dict[Any, tuple[float, float]] = {}
        self._parents: dict[str, Any] = {}
        self._children: dict[str, dict[tuple[str, ...], Any]] = {metric.name: {} for metric in self.metrics}
        self._sizes: dict[str, int] = {}
        self._registered: dict[Registered, set[str]] = {kind: {OTHER} for kind in Registered}
        for metric in self.metrics:
            self._parents[metric.name] = _parent(metric)
            self._sizes[metric.name] = 0
        _expose(registry, self._parents)

    def register(self, kind: Registered, *values: str) -> None:
        """Make `values` label values of this kind."""
        self._registered[kind].update(values)

    def bear(self, metric: Metric, known: Mapping[str, str]) -> None:
        """Create the series of `metric` at 0: the known labels as given, the others over their closed sets."""
        sets = [(known[label.name],) if label.name in known else _closed(label.values) for label in metric.labels]
        for values in itertools.product(*sets):
            self._child(metric, values)

    def add(
        self, metric: Metric, values: tuple[str, ...] = (), amount: float = 1.0, sampled: SpanContext | None = None
    ) -> None:
        """Raise a counter; the sampled span, when given, is its exemplar."""
        child = self._children[metric.name].get(values) or self._child(metric, values)
        if sampled is None:
            child.inc(amount)
        else:
            child.inc(amount, _exemplar(sampled))

    def observe(
        self, metric: Metric, values: tuple[str, ...], value: float, sampled: SpanContext | None = None
    ) -> None:
        """Add an observation to a histogram; the sampled span, when given, is its exemplar when one is due."""
        child = self._children[metric.name].get(values) or self._child(metric, values)
        if sampled is None or not self._is_due(child, value):
            child.observe(value)
        else:
            child.observe(value, _exemplar(sampled))

    def move(self, metric: Metric, values: tuple[str, ...], amount: float) -> None:
        """Move a gauge up or down."""
        (self._children[metric.name].get(values) or self._child(metric, values)).inc(amount)

    def set(self, metric: Metric, values: tuple[str, ...], value: float) -> None:
        """Set a gauge."""
        (self._children[metric.name].get(values) or self._child(metric, values)).set(value)

    def overflow(self, metric: Metric, label: str) -> None:
        """Count a label value that was folded into `other`."""
        self.add(LABEL_OVERFLOW, (metric.name, label))

    def _is_due(self, child: Any, value: float) -> bool:
        """Return whether a histogram takes an exemplar: the last is old, or this value is larger."""
        now_s = self._monotonic_s()
        marked = self._marked.get(child)
        if marked is not None and now_s - marked[0] < EXEMPLAR_EVERY_S and value <= marked[1]:
            return False
        self._marked[child] = (now_s, value)
        return True

    def _child(self, metric: Metric, values: tuple[str, ...]) -> Any:
        folded = self._folded(metric, values)
        children = self._children[metric.name]
        child = children.get(folded)
        if child is None:
            if self._sizes[metric.name] >= metric.series_max:
                folded = tuple(
                    OTHER if isinstance(label.values, Registered) else value
                    for label, value in zip(metric.labels, folded, strict=True)
                )
                self.overflow(metric, metric.labels[0].name)
            parent = self._parents[metric.name]
            child = children.setdefault(folded, parent.labels(*folded) if folded else parent)
            self._sizes[metric.name] += 1
        return child

    def _folded(self, metric: Metric, values: tuple[str, ...]) -> tuple[str, ...]:
        if metric is LABEL_OVERFLOW:
            return values
        folded = []
        for label, value in zip(metric.labels, values, strict=True):
            allowed = self._registered[label.values] if isinstance(label.values, Registered) else label.values
            if value in allowed:
                folded.append(value)
            else:
                folded.append(OTHER)
                self.overflow(metric, label.name)
        return tuple(folded)


class _WithoutCreated:
    """A collector that leaves the `_created` samples out: they double the counters in the text format."""

    def __init__(self, metric: Any) -> None:
        self._metric = metric

    def describe(self) -> Iterable[Family]:
        return self._metric.describe()  # type: ignore[no-any-return]

    def collect(self) -> Iterator[Family]:
        for family in self._metric.collect():
            family.samples = [sample for sample in family.samples if not sample.name.endswith("_created")]
            yield family


def _expose(registry: CollectorRegistry, parents: Mapping[str, Any]) -> None:
    """Register all metrics or none."""
    exposed: list[_WithoutCreated] = []
    for name, parent in parents.items():
        collector = _WithoutCreated(parent)
        try:
            registry.register(collector)
        except ValueError as error:
            for earlier in exposed:
                registry.unregister(earlier)
            raise RegistrationError(
                f"metric {PREFIX}{name}: the registry has one of this name already",
                hint="give each Watch a registry of its own: leave `registry` out",
            ) from error
        exposed.append(collector)


def _exemplar(sampled: SpanContext) -> dict[str, str]:
    return {"trace_id": format(sampled.trace_id, "032x"), "span_id": format(sampled.span_id, "016x")}


def _parent(metric: Metric) -> Counter | Gauge | Histogram:
    if metric.kind is Kind.COUNTER:
        return Counter(metric.full_name, metric.help, metric.label_names, registry=None)
    if metric.kind is Kind.HISTOGRAM:
        return Histogram(metric.full_name, metric.help, metric.label_names, buckets=metric.buckets, registry=None)
    return Gauge(metric.full_name, metric.help, metric.label_names, registry=None)


def _closed(values: tuple[str, ...] | Registered) -> tuple[str, ...]:
    return (OTHER,) if isinstance(values, Registered) else values


def registered_labels(metric: Metric) -> frozenset[Registered]:
    """Return the kinds of registered names among a metric's labels."""
    return frozenset(label.values for label in metric.labels if isinstance(label.values, Registered))


def born_with(metric: Metric, kinds: frozenset[Registered]) -> bool:
    """Return whether every series of `metric` comes into being with a registration of these kinds of names."""
    return metric.born is Born.PRODUCT and registered_labels(metric) <= kinds
