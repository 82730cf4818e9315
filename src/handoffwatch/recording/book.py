"""The book of samples: the catalogue's metrics as prometheus_client objects, with bounded series born at 0."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.metrics_core import Metric as Family

from handoffwatch.catalogue import LABEL_OVERFLOW, Born, Kind, Metric, Registered
from handoffwatch.vocabulary import OTHER

Exemplar = dict[str, str]


class Book:
    """Counts samples by metric and label values; values outside their set become `other` and are counted.

    Thread-safe. Every label set is bounded by the registrations, the closed sets and `series_max`.

    Args:
        registry: Where the metrics are exposed; a Watch has one of its own.
        metrics: The metrics that something feeds; only these are exposed.
    """

    def __init__(self, registry: CollectorRegistry, metrics: Iterable[Metric]) -> None:
        self.metrics = tuple(metrics)
        self._parents: dict[str, Any] = {}
        self._children: dict[tuple[str, tuple[str, ...]], Any] = {}
        self._sizes: dict[str, int] = {}
        self._registered: dict[Registered, set[str]] = {kind: {OTHER} for kind in Registered}
        for metric in self.metrics:
            self._parents[metric.name] = _parent(metric)
            self._sizes[metric.name] = 0
            registry.register(_WithoutCreated(self._parents[metric.name]))

    def register(self, kind: Registered, *values: str) -> None:
        """Make `values` label values of this kind."""
        self._registered[kind].update(values)

    def bear(self, metric: Metric, known: Mapping[str, str], **closed: Sequence[str]) -> None:
        """Create the series of `metric` at 0: the known labels as given, the others over their closed sets.

        Args:
            metric: The metric.
            known: Values of registered labels.
            closed: For a label, fewer values than its closed set.
        """
        sets: list[Sequence[str]] = []
        for label in metric.labels:
            if label.name in known:
                sets.append((known[label.name],))
            else:
                sets.append(closed.get(label.name) or _closed(label.values))
        for values in itertools.product(*sets):
            self._child(metric, values)

    def add(
        self, metric: Metric, values: tuple[str, ...] = (), amount: float = 1.0, exemplar: Exemplar | None = None
    ) -> None:
        """Raise a counter."""
        child = self._children.get((metric.name, values)) or self._child(metric, values)
        child.inc(amount, exemplar) if exemplar else child.inc(amount)

    def observe(self, metric: Metric, values: tuple[str, ...], value: float, exemplar: Exemplar | None = None) -> None:
        """Add an observation to a histogram."""
        child = self._children.get((metric.name, values)) or self._child(metric, values)
        child.observe(value, exemplar) if exemplar else child.observe(value)

    def move(self, metric: Metric, values: tuple[str, ...], amount: float) -> None:
        """Move a gauge up or down."""
        (self._children.get((metric.name, values)) or self._child(metric, values)).inc(amount)

    def set(self, metric: Metric, values: tuple[str, ...], value: float) -> None:
        """Set a gauge."""
        (self._children.get((metric.name, values)) or self._child(metric, values)).set(value)

    def overflow(self, metric: Metric, label: str) -> None:
        """Count a label value that was folded into `other`."""
        self.add(LABEL_OVERFLOW, (metric.name, label))

    def _child(self, metric: Metric, values: tuple[str, ...]) -> Any:
        folded = self._folded(metric, values)
        key = (metric.name, folded)
        child = self._children.get(key)
        if child is None:
            if self._sizes[metric.name] >= metric.series_max:
                folded = tuple(
                    OTHER if isinstance(label.values, Registered) else value
                    for label, value in zip(metric.labels, folded, strict=True)
                )
                key = (metric.name, folded)
                self.overflow(metric, "series_max")
            parent = self._parents[metric.name]
            child = self._children.setdefault(key, parent.labels(*folded) if folded else parent)
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
