"""The critic's events: counted by route, timed when it was asked, and told in the log without a word of the model."""

from __future__ import annotations

import itertools
import logging

import pytest

from handoffwatch import Settings, Watch
from handoffwatch.events import CriticAnswered, UsageReported
from handoffwatch.vocabulary import CheckPurpose, CriticResult, RiskSignal
from support.telemetry import born, counted, exemplar_of, exemplars, samples
from support.watched import Findings, new_watched

ROUTE = "planner->executor"
METRICS = ("critic_checks_total", "critic_duration_seconds_count", "critic_duration_seconds_sum")
USAGE = ("check_tokens_total", "check_cost_usd_total")


def _answered(result: CriticResult, *, note: str = "", route: str = ROUTE) -> CriticAnswered:
    signals = (RiskSignal.LOW_CONFIDENCE, RiskSignal.LARGE_PAYLOAD)
    return CriticAnswered("r-1", route, "h-1", result, 0.25, signals, note)


def test_critic_series_are_born_at_0_when_a_route_is_registered() -> None:
    """The first concern, failure, token and cent of a route move series that exist."""
    watch = Watch(settings=Settings())
    watch.route(ROUTE, contract=Findings)
    routes = [ROUTE, "other"]

    assert born(watch.registry, "critic_checks_total") == {
        f'{{result="{result}",route="{route}"}}': 0 for result, route in itertools.product(CriticResult, routes)
    }
    assert born(watch.registry, "critic_duration_seconds_count") == {f'{{route="{route}"}}': 0 for route in routes}
    for name in USAGE:
        assert born(watch.registry, name) == {
            f'{{purpose="{purpose}",route="{route}"}}': 0 for purpose, route in itertools.product(CheckPurpose, routes)
        }


@pytest.mark.parametrize("result", [CriticResult.NO_CONCERN, CriticResult.CONCERN, CriticResult.ERROR])
def test_critic_is_counted_and_timed_when_it_was_asked(result: CriticResult) -> None:
    """A failure has taken its time too."""
    watch = new_watched().watch
    watch.recorder.emit(_answered(result))
    assert counted(watch.registry, *METRICS) == {
        f'critic_checks_total{{result="{result}",route="{ROUTE}"}}': 1,
        f'critic_duration_seconds_count{{route="{ROUTE}"}}': 1,
        f'critic_duration_seconds_sum{{route="{ROUTE}"}}': 0.25,
    }


def test_critic_is_counted_and_not_timed_when_it_was_skipped() -> None:
    """A critic that was not asked took no time."""
    watch = new_watched().watch
    watch.recorder.emit(_answered(CriticResult.SKIPPED))
    assert counted(watch.registry, *METRICS) == {f'critic_checks_total{{result="skipped",route="{ROUTE}"}}': 1}


def test_usage_is_added_up_by_purpose_when_it_is_reported() -> None:
    """Repairs and critics are paid for apart, and nothing else moves."""
    watch = new_watched().watch
    for purpose, tokens, cost_usd in (("critic", 900, 0.25), ("critic", 100, 0.5), ("repair", 7, 0.0)):
        watch.recorder.emit(UsageReported("r-1", ROUTE, CheckPurpose(purpose), tokens, cost_usd))
    assert counted(watch.registry, *USAGE, *METRICS) == {
        f'check_tokens_total{{purpose="critic",route="{ROUTE}"}}': 1_000,
        f'check_cost_usd_total{{purpose="critic",route="{ROUTE}"}}': 0.75,
        f'check_tokens_total{{purpose="repair",route="{ROUTE}"}}': 7,
    }


def test_no_series_is_new_when_critics_answer_on_known_and_unknown_routes() -> None:
    """A route that nobody registered is `other`, and is counted as such."""
    watch = new_watched().watch
    before = set(samples(watch.registry))
    for result, route in itertools.product(CriticResult, (ROUTE, "made->up")):
        watch.recorder.emit(_answered(result, route=route))
    for purpose in CheckPurpose:
        watch.recorder.emit(UsageReported("r-1", "made->up", purpose, 1, 1.0))
    assert set(samples(watch.registry)) == before
    assert counted(watch.registry, "label_overflow_total") != {}


def test_exemplars_lead_to_the_run_when_a_critic_has_a_concern_or_fails() -> None:
    """A content critic marks its latency alone."""
    watched = new_watched()
    with watched.watch.run("refunds") as run:
        for result in CriticResult:
            watched.watch.recorder.emit(_answered(result), within=run.scope)

    led = exemplar_of(watched.spans.one("invoke_workflow refunds"))
    assert {line: labels for line, labels in exemplars(watched.watch.registry).items() if "critic" in line} == {
        f'handoffwatch_critic_checks_total{{result="concern",route="{ROUTE}"}}': led,
        f'handoffwatch_critic_checks_total{{result="error",route="{ROUTE}"}}': led,
        f'handoffwatch_critic_duration_seconds_bucket{{le="0.25",route="{ROUTE}"}}': led,
    }


_WHERE = f"run_id=r-1 handoff_id=h-1 route={ROUTE} signals=low_confidence,large_payload"


@pytest.mark.parametrize(
    ("event", "lines"),
    [
        (_answered(CriticResult.CONCERN), [("handoffwatch", logging.INFO, f"critic concern: {_WHERE}")]),
        (
            _answered(CriticResult.ERROR, note="TimeoutError"),
            [("handoffwatch", logging.WARNING, f"critic failed: {_WHERE}: TimeoutError")],
        ),
        (
            _answered(CriticResult.SKIPPED, note="the budget of the run is used up"),
            [("handoffwatch", logging.INFO, f"critic skipped: {_WHERE}: the budget of the run is used up")],
        ),
        (_answered(CriticResult.SKIPPED), []),
        (_answered(CriticResult.NO_CONCERN), []),
        (UsageReported("r-1", ROUTE, CheckPurpose.REPAIR, 1, 1.0), []),
    ],
    ids=["concern", "error", "budget", "chance", "no concern", "usage"],
)
def test_log_says_what_a_critic_did_when_it_is_worth_a_line(
    event: CriticAnswered | UsageReported, lines: list[tuple[str, int, str]], caplog: pytest.LogCaptureFixture
) -> None:
    """What chance left out and what is well have none."""
    caplog.set_level(logging.DEBUG, "handoffwatch")
    new_watched().watch.recorder.emit(event)
    assert caplog.record_tuples == lines


def test_log_line_stays_one_bounded_line_when_ids_and_notes_are_hostile(caplog: pytest.LogCaptureFixture) -> None:
    """Nobody forges a line through the name of an exception."""
    event = _answered(CriticResult.ERROR, note="a\ncritic failed: forged")._replace(run_id="x" * 500)
    new_watched().watch.recorder.emit(event)
    assert caplog.messages == [
        f"critic failed: run_id={'x' * 200} handoff_id=h-1 route={ROUTE} signals=low_confidence,large_payload: "
        "a\\ncritic failed: forged"
    ]
