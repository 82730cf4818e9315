"""Links: the span of a read-back points to the span of the run whose effect it reads."""

from __future__ import annotations

from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from handoffwatch import Settings, Watch
from handoffwatch.events import EffectVerified
from handoffwatch.ledger import LedgerSettings
from handoffwatch.recording.traceparent import links_to, traceparent_of
from handoffwatch.vocabulary import Criticality, VerificationResult
from support.outcomes import StillClock
from support.telemetry import Spans, ids
from support.watched import new_watched

TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def verified(traceparent: str) -> EffectVerified:
    """Return a read-back of an operation whose run has this span."""
    result = VerificationResult.LANDED
    return EffectVerified("r-1", "refunds", "refund", "op-1", Criticality.CRITICAL, result, 0.0, traceparent)


def test_verification_span_is_linked_to_the_run_when_it_names_it() -> None:
    """The link carries the ids and flags of the run's span."""
    watched = new_watched()
    watched.watch.recorder.emit(verified(TRACEPARENT))
    (link,) = watched.spans.one("verify_effect refund").links
    assert format(link.context.trace_id, "032x") == "0af7651916cd43dd8448eb211c80319c"
    assert format(link.context.span_id, "016x") == "b7ad6b7169203331"
    assert link.context.trace_flags.sampled


@pytest.mark.parametrize(
    "traceparent",
    [
        "",
        "nonsense",
        TRACEPARENT[:-1],
        TRACEPARENT.replace("00-", "ff-", 1),
        "00-" + "0" * 32 + "-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-" + "0" * 16 + "-01",
        TRACEPARENT + "\n" + TRACEPARENT,
        "\udcff",
    ],
)
def test_verification_span_has_no_link_when_the_traceparent_is_unreadable(traceparent: str) -> None:
    """The span is recorded all the same."""
    watched = new_watched()
    watched.watch.recorder.emit(verified(traceparent))
    assert watched.spans.one("verify_effect refund").links == ()


def test_traceparent_is_empty_when_there_is_no_span() -> None:
    """A program without an SDK stores nothing and gets no link."""
    assert traceparent_of(trace.INVALID_SPAN) == ""
    assert links_to("") is None


def test_traceparent_names_a_span_when_it_is_not_sampled() -> None:
    """Another process may have sampled the trace; the flags say what this one did."""
    tracer = Spans(sampler=ALWAYS_OFF).provider.get_tracer("host")
    with tracer.start_as_current_span("request") as span:
        (link,) = links_to(traceparent_of(span)) or ()
        assert (link.context.trace_id, link.context.span_id) == (
            span.get_span_context().trace_id,
            span.get_span_context().span_id,
        )
        assert not link.context.trace_flags.sampled


def open_watch(folder: Path, spans: Spans) -> Watch:
    """Return a watch over the ledger of the folder, with the operation `refund`."""
    settings = Settings(ledger=LedgerSettings(url=f"sqlite:///{folder / 'ledger.db'}"))
    watch = Watch(settings=settings, clock=StillClock().clock(), tracer_provider=spans.provider)
    watch.operation("refund", key="order_id", polls_s=(0.0,))
    watch.workflow("refunds", operations=["refund"])
    return watch


@pytest.mark.parametrize("known_from", ["expectation", "call", "claim"])
def test_read_back_in_another_process_is_linked_to_the_run_however_the_operation_became_known(
    tmp_path: Path, known_from: str
) -> None:
    """The run's span travels through the ledger, whether host, call or the agent's claim alone named the refund."""
    agents, exporter = Spans(), Spans()
    watch = open_watch(tmp_path, agents)

    @watch.tool("issue_refund", safety="unsafe", operation="refund")
    def issue_refund(order_id: str) -> str:
        return order_id

    with watch.run("refunds") as run:
        if known_from == "expectation":
            run.expect("refund", order_id="4417")
        elif known_from == "call":
            issue_refund("4417")
        run.claim("partial", operations=[("refund", "4417")])

    assert open_watch(tmp_path, exporter).settler().run_once() == 1
    (link,) = exporter.one("verify_effect refund").links
    assert (link.context.trace_id, link.context.span_id) == ids(agents.one("invoke_workflow refunds"))
