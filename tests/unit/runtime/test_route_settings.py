"""What the file says of a route: it overrides the code, and a line that does nothing is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from handoffwatch import ConfigError, Contract, RegistrationError, Settings, Watch, rule
from handoffwatch.vocabulary import Action, Mode, Reaction
from support.telemetry import born
from support.watched import handoff


class Findings(Contract, confidence_min=0.5):
    """What a receiver needs."""

    result: str
    confidence: float = 1.0

    @rule("too_short", "the executor needs a whole sentence", path="payload.result", reaction="flag")
    def long_enough(self) -> bool:
        return len(self.result) > 3


def watch_with(text: str, folder: Path, **options: Any) -> Watch:
    """Return a watch with one route, and settings from a file."""
    path = folder / "handoffwatch.yaml"
    path.write_text(text, encoding="utf-8")
    watch = Watch(path)
    watch.workflow("refunds", tools="none")
    watch.route("planner->executor", contract=Findings, **options)
    return watch


@pytest.mark.parametrize(
    ("lines", "options", "mode", "reactions"),
    [
        ("", {}, Mode.ENFORCE, {}),
        ("", {"mode": "shadow", "reactions": {"low_confidence": "block"}}, Mode.SHADOW,
         {"low_confidence": Reaction.BLOCK}),
        ("mode: shadow", {}, Mode.SHADOW, {}),
        ("mode: enforce", {"mode": "shadow"}, Mode.ENFORCE, {}),
        ("reactions: {too_short: block}", {}, Mode.ENFORCE, {"too_short": Reaction.BLOCK}),
        ("reactions: {too_short: block}", {"reactions": {"too_short": "warn", "low_confidence": "hold"}}, Mode.ENFORCE,
         {"too_short": Reaction.BLOCK, "low_confidence": Reaction.HOLD}),
        ("reactions: {low_confidence: warn}", {"mode": "shadow", "reactions": {"low_confidence": "block"}}, Mode.SHADOW,
         {"low_confidence": Reaction.WARN}),
    ],
    ids=str,
)  # fmt: skip
def test_file_overrides_the_code_when_it_names_the_route(
    lines: str, options: dict[str, Any], mode: Mode, reactions: dict[str, Reaction], tmp_path: Path
) -> None:
    """Line by line: what the file does not say is as the code says."""
    text = f"handoffs:\n  routes:\n    planner->executor:\n      {lines}\n" if lines else ""

    (route,) = watch_with(text, tmp_path, **options).watchdog.routes

    assert (route.mode, dict(route.reactions)) == (mode, reactions)


def test_one_line_of_the_file_enforces_when_the_code_registers_shadow(tmp_path: Path) -> None:
    """Going from shadow to enforce is one line, and metrics, decisions and flow follow it."""
    bad = handoff(payload={"result": 7})
    shadow = watch_with("", tmp_path, mode="shadow")
    line = "handoffs: {routes: {planner->executor: {mode: enforce}}}"
    enforced = watch_with(line, tmp_path, mode="shadow")

    steps = [watch.run("refunds", task_id="t-1").handoff("planner", "executor", bad) for watch in (shadow, enforced)]

    assert [step.action for step in steps] == [Action.DELIVER, Action.REPAIR]
    assert [step.decision and step.decision.mode for step in steps] == [Mode.SHADOW, Mode.ENFORCE]
    assert [
        any('mode="enforce"' in labels for labels in born(watch.registry, "handoff_route_info"))
        for watch in (shadow, enforced)
    ] == [False, True]


def test_series_are_born_with_the_reaction_of_the_file_when_it_differs(tmp_path: Path) -> None:
    """What the file says is what is counted, from 0 on."""
    watch = watch_with("handoffs: {routes: {planner->executor: {reactions: {too_short: block}}}}", tmp_path)
    labels = (
        'mode="enforce",reaction="{}",reason="too_short",route="planner->executor",schema_version="1",'
        'source_agent="planner",target_agent="executor"'
    )

    samples = born(watch.registry, "handoff_findings_total")

    assert samples["{" + labels.format("block") + "}"] == 0
    assert "{" + labels.format("flag") + "}" not in samples


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("planer->executor", "did you mean planner->executor?"),
        ("Planner->executor", "did you mean planner->executor?"),
        ("planner-> executor", "did you mean planner->executor?"),
        ("billing", "register it with watch.route(…), or remove the line"),
    ],
)
def test_first_run_is_refused_when_the_file_names_a_route_that_nobody_registered(
    name: str, hint: str, tmp_path: Path
) -> None:
    """A misspelt line would leave a route in shadow without a word."""
    watch = watch_with(f'handoffs: {{routes: {{"{name}": {{mode: enforce}}}}}}', tmp_path)

    with pytest.raises(RegistrationError) as refused:
        watch.run("refunds")

    assert refused.value.message == f"settings: handoffs.routes: {name}: no route of this name is registered"
    assert refused.value.hint == hint


def test_run_begins_when_the_route_of_the_file_is_registered_after_a_refusal(tmp_path: Path) -> None:
    """The settings are held against the routes until they fit."""
    watch = watch_with("handoffs: {routes: {executor->reviewer: {mode: shadow}}}", tmp_path)
    with pytest.raises(RegistrationError):
        watch.run("refunds")

    watch.route("executor->reviewer", contract=Findings)

    with watch.run("refunds") as run:
        assert run.workflow.name == "refunds"


def test_route_is_refused_when_the_file_reacts_to_a_code_that_it_cannot_yield(tmp_path: Path) -> None:
    """A code that is misspelt in the file is told at registration, with what it may have meant."""
    with pytest.raises(RegistrationError) as refused:
        watch_with("handoffs: {routes: {planner->executor: {reactions: {too_shrt: block}}}}", tmp_path)

    assert refused.value.message == "route planner->executor: reactions: too_shrt is no reason code of this route"
    assert refused.value.hint == "did you mean too_short?"


@pytest.mark.parametrize(
    "lines",
    [
        "mode: dry", "mode: Enforce", "mode: true", "reactions: {low_confidence: stop}", "reactions: [low_confidence]",
        "reactions: {low_confidence: true}", "mod: shadow", "criticality: critical",
    ],
)  # fmt: skip
def test_file_is_refused_when_it_says_something_else_of_a_route(lines: str, tmp_path: Path) -> None:
    """An unknown key or a value outside its set is an error of the file, with its line."""
    with pytest.raises(ConfigError) as refused:
        watch_with(f"handoffs:\n  routes:\n    planner->executor:\n      {lines}\n", tmp_path)

    assert "handoffwatch.yaml:" in str(refused.value)
    assert "handoffs.routes.planner->executor" in str(refused.value)


def test_settings_made_in_code_override_too_when_they_name_the_route() -> None:
    """Whoever makes the settings in code gets the same."""
    settings = Settings.model_validate({"handoffs": {"routes": {"planner->executor": {"mode": "shadow"}}}})
    watch = Watch(settings=settings)

    watch.route("planner->executor", contract=Findings)

    (route,) = watch.watchdog.routes
    assert route.mode is Mode.SHADOW
