"""A critic's answer and policy: bounded, checked, and never more than a flag."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handoffwatch import Finding, RegistrationError
from handoffwatch.decision import summary_of
from handoffwatch.handoffs.critique import (
    CONCERN_CHARACTERS_MAX,
    CriticAnswer,
    CriticOutcome,
    CriticPolicy,
    CriticRequest,
    outcome_of,
)
from handoffwatch.handoffs.risks import RiskLimits
from handoffwatch.vocabulary import CriticResult, Reaction, RiskSignal, Severity, Verdict

WORDS = "The amount is ten times that of the order."
SIGNALS = frozenset({RiskSignal.LOW_CONFIDENCE})


def test_answer_has_no_concern_when_nothing_is_said() -> None:
    """The quiet answer is the default."""
    answer = CriticAnswer()
    assert (answer.concern, answer.reaction, answer.tokens, answer.cost_usd) == (None, Reaction.FLAG, 0, 0.0)


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (WORDS, WORDS),
        ("", None),
        (" \n\t ", None),
        ("two\nlines  and\r\n\ttabs ", "two lines and tabs"),
        ("x" * 501, "x" * 500),
        ("x" * 499 + " y", "x" * 499),
        ("half \udca0 of a character", "half ? of a character"),
        ("nul \x00 and \x1b[31mred", "nul ? and ?[31mred"),
        ("返金の額が違います", "返金の額が違います"),
    ],
    ids=["plain", "empty", "blank", "lines", "too long", "cut at a space", "surrogate", "control", "Japanese"],
)
def test_answer_keeps_its_concern_as_one_bounded_line(said: str, kept: str | None) -> None:
    """A model's text becomes one line that every database can keep; a blank one is no concern."""
    assert CriticAnswer(said).concern == kept


@pytest.mark.parametrize(
    ("given_reaction", "kept"),
    [("flag", Reaction.FLAG), ("warn", Reaction.WARN), ("block", Reaction.FLAG), ("hold", Reaction.FLAG)]
    + [(reaction, Reaction.WARN if reaction is Reaction.WARN else Reaction.FLAG) for reaction in Reaction],
)
def test_answer_reacts_with_a_flag_at_most_when_it_asks_for_more(given_reaction: Any, kept: Reaction) -> None:
    """A critic cannot stop a handoff, and what it says is heard all the same."""
    assert CriticAnswer(WORDS, reaction=given_reaction).reaction is kept


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"concern": 7}, "critic answer: concern: must be a text or None, got int"),
        ({"concern": ["a"]}, "critic answer: concern: must be a text or None, got list"),
        ({"reaction": "stop"}, "critic answer: reaction: must be flag or warn, got str"),
        ({"reaction": None}, "critic answer: reaction: must be flag or warn, got NoneType"),
        ({"reaction": ["flag"]}, "critic answer: reaction: must be flag or warn, got list"),
        ({"tokens": -1}, "usage: tokens: must be an integer from 0 to 100000000, got int"),
        ({"cost_usd": math.nan}, "usage: cost_usd: must be a number from 0 to 10000, got float"),
    ],
)
def test_answer_is_refused_when_a_value_breaks_its_rule(fields: dict[str, Any], message: str) -> None:
    """The author of a critic hears of it where the answer is made."""
    with pytest.raises(ValueError, match="must be") as caught:
        CriticAnswer(**fields)
    assert str(caught.value) == message


@pytest.mark.parametrize(("reaction", "kept"), [("flag", Reaction.FLAG), ("warn", Reaction.WARN)])
def test_outcome_has_one_finding_without_the_words_when_there_is_a_concern(reaction: Any, kept: Reaction) -> None:
    """The finding goes into logs and spans; the model's sentence does not."""
    outcome = outcome_of(CriticAnswer(WORDS, reaction=reaction, tokens=900, cost_usd=0.002), duration_s=1.5)
    assert outcome == CriticOutcome(CriticResult.CONCERN, WORDS, kept, 900, 0.002, 1.5)
    assert outcome.findings == (
        Finding(
            "critic_concern",
            "$",
            "the critic asks that a person looks at this handoff",
            kept,
            Severity.WARNING,
            True,
            "critic",
        ),
    )


@pytest.mark.parametrize("result", [each for each in CriticResult if each is not CriticResult.CONCERN])
def test_outcome_has_no_finding_when_there_is_no_concern(result: CriticResult) -> None:
    """Neither a content critic nor one that failed says anything about the handoff."""
    assert CriticOutcome(result).findings == ()


def test_outcome_keeps_usage_and_no_reaction_when_the_critic_is_content() -> None:
    """A good word costs as much as a bad one."""
    assert outcome_of(CriticAnswer(tokens=10, cost_usd=1), duration_s=0.5) == CriticOutcome(
        CriticResult.NO_CONCERN, None, None, 10, 1.0, 0.5
    )


def test_outcome_is_written_as_json_when_a_case_keeps_it() -> None:
    """The case holds the words, what they cost and how long they took."""
    outcome = outcome_of(CriticAnswer(WORDS, tokens=900, cost_usd=0.002), duration_s=1.5)
    assert json.loads(json.dumps(outcome._asdict(), allow_nan=False)) == {
        "result": "concern",
        "concern": WORDS,
        "reaction": "flag",
        "tokens": 900,
        "cost_usd": 0.002,
        "duration_s": 1.5,
        "note": "",
    }


@given(
    concern=st.none() | st.text() | st.binary() | st.integers(),
    reaction=st.sampled_from([*Reaction, "flag", "block", "stop"]) | st.none() | st.integers(),
    tokens=st.integers() | st.floats() | st.none(),
    cost_usd=st.integers() | st.floats() | st.text(),
)
def test_answer_never_blocks_or_holds_whatever_the_critic_returns(
    concern: Any, reaction: Any, tokens: Any, cost_usd: Any
) -> None:
    """What is accepted gives a warned verdict at most, and its text is bounded and can be written."""
    try:
        answer = CriticAnswer(concern, reaction=reaction, tokens=tokens, cost_usd=cost_usd)
    except ValueError:
        return
    outcome = outcome_of(answer, duration_s=0.0)
    assert summary_of(outcome.findings).verdict in (Verdict.ALLOWED, Verdict.WARNED)
    assert bool(outcome.findings) == (outcome.result is CriticResult.CONCERN)
    assert len((outcome.concern or "").encode()) <= 4 * CONCERN_CHARACTERS_MAX


def test_request_and_answer_show_no_content_when_they_are_printed() -> None:
    """A critic that logs its question does not log the payload."""
    request = CriticRequest(
        route="executor->reviewer",
        source="executor",
        target="reviewer",
        run_id="r-1",
        handoff_id="h-1",
        attempt=1,
        handoff={"payload": {"card": "CANARY"}},
        signals=SIGNALS,
        reasons=("low_confidence",),
    )
    assert "CANARY" not in f"{request!r} {CriticAnswer('CANARY')!r}"
    assert request.handoff["payload"] == {"card": "CANARY"}


def test_policy_has_the_documented_defaults_when_only_its_signals_are_named() -> None:
    """Every handoff with a signal is looked at, for ten seconds at most, and money is not bounded."""
    policy = CriticPolicy(signals=SIGNALS)
    assert (policy.sample, policy.time_s_max, policy.limits) == (1.0, 10.0, RiskLimits())
    assert (policy.cost_usd_max_per_run, policy.tokens_max_per_run) == (None, None)


@pytest.mark.parametrize("named", [["low_confidence"], {"low_confidence"}, SIGNALS, (RiskSignal.LOW_CONFIDENCE,)])
def test_policy_reads_its_signals_when_they_are_texts_or_members(named: Any) -> None:
    """A policy may be written with plain texts."""
    assert CriticPolicy(signals=named).signals == SIGNALS


_SIGNALS_RULE = "some of new_schema_version, low_confidence, agents_in_conflict, sensitive_operation, large_payload"


@pytest.mark.parametrize(
    ("field", "value", "rule", "example"),
    [
        ("signals", "low_confidence", f"{_SIGNALS_RULE}, got str", '{"low_confidence"}'),
        ("signals", (), f"{_SIGNALS_RULE}, got tuple", '{"low_confidence"}'),
        ("signals", ["low_trust"], f"{_SIGNALS_RULE}, got list", '{"low_confidence"}'),
        ("signals", [["low_confidence"]], f"{_SIGNALS_RULE}, got list", '{"low_confidence"}'),
        ("signals", None, f"{_SIGNALS_RULE}, got NoneType", '{"low_confidence"}'),
        ("sample", 1.5, "a number from 0 to 1, got float", "0.1"),
        ("sample", -0.1, "a number from 0 to 1, got float", "0.1"),
        ("sample", math.nan, "a number from 0 to 1, got float", "0.1"),
        ("sample", True, "a number from 0 to 1, got bool", "0.1"),
        ("time_s_max", 0, "seconds above 0, at most 600, got int", "10"),
        ("time_s_max", 600.5, "seconds above 0, at most 600, got float", "10"),
        ("time_s_max", math.inf, "seconds above 0, at most 600, got float", "10"),
        ("time_s_max", None, "seconds above 0, at most 600, got NoneType", "10"),
        ("cost_usd_max_per_run", 0, "dollars above 0, or None, got int", "0.50"),
        ("cost_usd_max_per_run", math.inf, "dollars above 0, or None, got float", "0.50"),
        ("cost_usd_max_per_run", math.nan, "dollars above 0, or None, got float", "0.50"),
        ("cost_usd_max_per_run", "1", "dollars above 0, or None, got str", "0.50"),
        ("tokens_max_per_run", 0, "an integer of at least 1, or None, got int", "20_000"),
        ("tokens_max_per_run", 1.0, "an integer of at least 1, or None, got float", "20_000"),
        ("tokens_max_per_run", True, "an integer of at least 1, or None, got bool", "20_000"),
        ("limits", None, "RiskLimits, got NoneType", "RiskLimits(confidence_min=0.5)"),
    ],
)
def test_policy_is_refused_when_a_value_breaks_its_rule(field: str, value: object, rule: str, example: str) -> None:
    """The message names the field, the rule and the kind of value; the hint can be typed."""
    with pytest.raises(RegistrationError) as caught:
        CriticPolicy(**{"signals": SIGNALS, field: value})  # type: ignore[arg-type]
    assert caught.value.message == f"critic policy: {field}: must be {rule}"
    assert caught.value.hint == f"{field}={example}"
