"""What a watch has told the world: its samples as parsed text, its exemplars, its spans as a real SDK finished them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, Final

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Sampler
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

PREFIX: Final = "handoffwatch_"


class Spans:
    """The spans that ended, kept in memory by a provider of the SDK.

    Args:
        sampler: Which spans are sampled; all unless said.
        processors: Further processors of the host, called before the one that keeps the spans.
    """

    def __init__(self, sampler: Sampler = ALWAYS_ON, processors: Sequence[SpanProcessor] = ()) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(sampler=sampler, shutdown_on_exit=False)
        for processor in processors:
            self.provider.add_span_processor(processor)
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    @property
    def ended(self) -> tuple[ReadableSpan, ...]:
        """All spans in the order in which they ended."""
        return self._exporter.get_finished_spans()

    @property
    def names(self) -> list[str]:
        """The names of all spans in the order in which they ended."""
        return [span.name for span in self.ended]

    @property
    def traces(self) -> set[int]:
        """The ids of all traces."""
        return {ids(span)[0] for span in self.ended}

    def named(self, name: str) -> list[ReadableSpan]:
        """The spans of a name."""
        return [span for span in self.ended if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        """The only span of a name."""
        (span,) = self.named(name)
        return span

    def parent(self, span: ReadableSpan) -> str | None:
        """The name of a span's parent; None for the root of a trace."""
        if span.parent is None:
            return None
        (parent,) = [other for other in self.ended if ids(other)[1] == span.parent.span_id]
        return parent.name


def ids(span: ReadableSpan) -> tuple[int, int]:
    """Return the trace id and the span id."""
    context = span.get_span_context()
    assert context is not None
    return context.trace_id, context.span_id


def attributes(span: ReadableSpan) -> dict[str, Any]:
    """Return a span's attributes as a plain dict."""
    return dict(span.attributes or {})


def exposition(registry: CollectorRegistry) -> str:
    """Return the text that `/metrics` would answer."""
    return generate_latest(registry).decode("utf-8")


def samples(registry: CollectorRegistry) -> dict[str, float]:
    """Return every sample by its line's beginning, such as `handoffwatch_runs_started_total{workflow="refunds"}`.

    The labels stand in alphabetical order. The text is parsed as Prometheus would parse it.
    """
    families = parse_text(exposition(registry))
    return {_line(sample.name, sample.labels): sample.value for family in families for sample in family.samples}


def counted(registry: CollectorRegistry, *names: str) -> dict[str, float]:
    """Return the samples of these metrics that are not 0, without the common prefix."""
    return {
        line.removeprefix(PREFIX): value
        for line, value in samples(registry).items()
        if value and line.removeprefix(PREFIX).partition("{")[0] in names
    }


def born(registry: CollectorRegistry, name: str) -> dict[str, float]:
    """Return the label sets of one metric, `{…}` as in the exposition, with their values."""
    found = samples(registry).items()
    return {line.removeprefix(PREFIX + name): value for line, value in found if line.partition("{")[0] == PREFIX + name}


def series(registry: CollectorRegistry) -> int:
    """Return the number of series."""
    return len(samples(registry))


def exemplars(registry: CollectorRegistry) -> dict[str, dict[str, str]]:
    """Return the labels of every exemplar by the beginning of its sample's OpenMetrics line."""
    families = parse_openmetrics(generate_openmetrics(registry).decode("utf-8"))
    return {
        _line(sample.name, sample.labels): dict(sample.exemplar.labels)
        for family in families
        for sample in family.samples
        if sample.exemplar is not None
    }


def exemplar_of(span: ReadableSpan) -> dict[str, str]:
    """Return the labels of the exemplar that points to a span."""
    trace_id, span_id = ids(span)
    return {"trace_id": format(trace_id, "032x"), "span_id": format(span_id, "016x")}


@contextlib.contextmanager
def unchanged(registry: CollectorRegistry) -> Iterator[None]:
    """Assert that the block leaves the exposition as it was, byte for byte."""
    before = exposition(registry)
    yield
    assert exposition(registry) == before


def _line(name: str, labels: dict[str, str]) -> str:
    if not labels:
        return name
    listed = ",".join(f'{key}="{labels[key]}"' for key in sorted(labels))
    return f"{name}{{{listed}}}"
