"""A span's address as text, so that a later span can be linked to it. Source: W3C Trace Context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

_HEADER: Final = "traceparent"
_PROPAGATOR: Final = TraceContextTextMapPropagator()


def traceparent_of(span: Span) -> str:
    """Return the `traceparent` of a span; empty when nothing records it anywhere."""
    carrier: dict[str, str] = {}
    _PROPAGATOR.inject(carrier, trace.set_span_in_context(span, Context()))
    return carrier.get(_HEADER, "")


def context_of(traceparent: str) -> Context:
    """Return the context in which the span that a `traceparent` names is the current one; an empty one for none."""
    return _PROPAGATOR.extract({_HEADER: traceparent}, Context())


def links_to(traceparent: str) -> Sequence[Link] | None:
    """Return the link to the span that a `traceparent` names; None when it names none."""
    named = trace.get_current_span(context_of(traceparent)).get_span_context()
    return (Link(named),) if named.is_valid else None
