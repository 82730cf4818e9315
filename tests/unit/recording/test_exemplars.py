"""Exemplars: samples of bad events and latencies point to their sampled span, and to nothing else."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, Decision, Sampler, SamplingResult

from handoffwatch import Contract, Settings, Watch
from handoffwatch.events import EffectVerified
from handoffwatch.recording.book import EXEMPLAR_EVERY_S
from handoffwatch.recording.settings import RecordingSettings
from handoffwatch.vocabulary import Criticality, VerificationResult
from support.telemetry import Spans, counted, exemplar_of, exemplars
from support.watched import Watched, bad_handoff, handoff, new_watched

_BLOCKS = (
    'handoffwatch_handoff_blocks_total{attempt="first",mode="enforce",route="planner->executor",schema_version="1",'
    'source_agent="planner",target_agent="executor"}'
)
_FAILURES = 'handoffwatch_tool_failures_total{code="timeout",failure_class="retryable",tool="find_order"}'


class _RecordOnly(Sampler):
    """Records every span and samples none."""

    def should_sample(self, *_args: object, **_kwargs: object) -> SamplingResult:
        return SamplingResult(Decision.RECORD_ONLY)

    def get_description(self) -> str:
        return "record only"


def _bad_run(watched: Watched) -> None:
    watched.watch.tool("find_order", safety="safe", attempts_max=1)
    with watched.watch.run("refunds", task_id="t-1") as run:
        run.handoff("planner", "executor", bad_handoff())
        run.call("find_order").raised(TimeoutError())
        run.answer("It is on its way.")


def test_exemplars_point_to_the_spans_when_they_are_sampled() -> None:
    """Trace id and span id equal the span's; the run's span stands for what has no span of its own."""
    watched = new_watched()

    _bad_run(watched)

    found = exemplars(watched.watch.registry)
    handed, called, run = (
        exemplar_of(watched.spans.one(name))
        for name in ("handoff executor", "execute_tool find_order", "invoke_workflow refunds")
    )
    assert found[_BLOCKS] == handed
    assert found['handoffwatch_handoff_overhead_seconds_bucket{le="5e-05",route="planner->executor"}'] == handed
    assert found[_FAILURES] == called
    assert found['handoffwatch_tool_duration_seconds_bucket{le="0.005",tool="find_order"}'] == called
    unsuccessful = '{cause="all_failed",tools="required",workflow="refunds"}'
    assert found[f"handoffwatch_runs_without_tool_success_total{unsuccessful}"] == run
    assert found['handoffwatch_runs_with_unrecovered_tool_failure_total{workflow="refunds"}'] == run


def test_exemplar_of_a_refusal_points_to_its_run_when_the_guard_refuses() -> None:
    """A refusal is a bad event; a person must come from its sample to its trace."""
    watched = new_watched()

    _bad_run(watched)

    refused = 'handoffwatch_guard_blocks_total{mode="enforce",reason="no_tool_success",workflow="refunds"}'
    assert exemplars(watched.watch.registry)[refused] == exemplar_of(watched.spans.one("invoke_workflow refunds"))


def test_exemplar_of_a_read_back_points_to_its_span_when_an_effect_is_verified() -> None:
    """The latency of a read-back leads to the read-back."""
    watched = new_watched()
    watched.watch.operation("refund", key="order_id")

    watched.watch.recorder.emit(
        EffectVerified("r-1", "refunds", "refund", "op-1", Criticality.CRITICAL, VerificationResult.LANDED, 0.25)
    )

    assert exemplars(watched.watch.registry) == {
        'handoffwatch_verification_seconds_bucket{le="0.25",operation="refund"}': exemplar_of(
            watched.spans.one("verify_effect refund")
        )
    }


@pytest.mark.parametrize("sampler", [ALWAYS_OFF, _RecordOnly()], ids=["dropped", "recorded only"])
def test_samples_have_no_exemplar_when_the_span_is_not_sampled(sampler: Sampler) -> None:
    """An exemplar without a trace behind it leads nowhere."""
    watched = new_watched(spans=Spans(sampler=sampler))

    _bad_run(watched)

    assert exemplars(watched.watch.registry) == {}
    assert counted(watched.watch.registry, "handoff_blocks_total") != {}


def test_samples_have_no_exemplar_when_the_setting_is_off() -> None:
    """The setting is obeyed, and everything is still counted."""
    watched = new_watched(settings=Settings(recording=RecordingSettings(exemplars=False)))

    _bad_run(watched)

    assert exemplars(watched.watch.registry) == {}
    assert len(watched.spans.ended) == 3


def test_good_events_have_no_exemplar_on_counters_when_everything_is_well() -> None:
    """Counters point to bad events only."""
    watched = new_watched()
    watched.watch.tool("find_order", safety="safe")

    with watched.watch.run("refunds", task_id="t-1") as run:
        run.handoff("planner", "executor", handoff())
        run.call("find_order").returned([])

    assert {line.partition("{")[0] for line in exemplars(watched.watch.registry)} == {
        "handoffwatch_handoff_overhead_seconds_bucket",
        "handoffwatch_tool_duration_seconds_bucket",
    }


class Plan(Contract, version="1"):
    """A contract."""

    result: str


@pytest.mark.parametrize("agent", ["x" * 100, "返金" * 50], ids=["100 characters", "Japanese"])
def test_exemplar_holds_the_two_ids_alone_when_the_names_are_long(agent: str) -> None:
    """It stays within the 128 characters that a server takes, whatever the route is called."""
    spans = Spans()
    watch = Watch(settings=Settings(), tracer_provider=spans.provider)
    watch.workflow("refunds")
    watch.route(f"planner->{agent}", contract=Plan)

    with watch.run("refunds", task_id="t-1") as run:
        run.handoff("planner", agent, {})

    found = exemplars(watch.registry)
    assert [labels for line, labels in found.items() if "handoff_blocks_total" in line] == [
        exemplar_of(spans.one(f"handoff {agent}"))
    ]
    assert counted(watch.registry, "handoff_blocks_total") == {
        f'handoff_blocks_total{{attempt="first",mode="enforce",route="planner->{agent}",schema_version="1",'
        f'source_agent="planner",target_agent="{agent}"}}': 1
    }


def test_exemplar_of_a_latency_is_the_slowest_of_its_time_when_many_calls_end() -> None:
    """A new one is taken when the call was slower, or when the last one is old; in between the host pays nothing."""
    watched = new_watched()
    watched.watch.tool("find_order", safety="safe")
    bucket = 'handoffwatch_tool_duration_seconds_bucket{le="0.25",tool="find_order"}'
    chosen = []

    with watched.watch.run("refunds") as run:
        for duration_s, pause_s in ((0.2, 0.0), (0.15, 0.0), (0.22, 0.0), (0.15, EXEMPLAR_EVERY_S)):
            watched.time.now_s += pause_s
            call = run.call("find_order")
            watched.time.now_s += duration_s
            call.returned([])
            spans = [exemplar_of(span) for span in watched.spans.named("execute_tool find_order")]
            chosen.append(spans.index(exemplars(watched.watch.registry)[bucket]))

    assert chosen == [0, 0, 2, 3]
