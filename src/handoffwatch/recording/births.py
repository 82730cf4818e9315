"""Which series are born at 0 with the process and with each registration, so that an alert sees the first event."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from handoffwatch import catalogue as c
from handoffwatch.catalogue import Registered
from handoffwatch.reasons import REASONS
from handoffwatch.recording.book import Book, born_with
from handoffwatch.tools.classification import declared_codes
from handoffwatch.vocabulary import (
    OK,
    OTHER,
    BypassCause,
    Check,
    Criticality,
    FailureClass,
    Mode,
    Reaction,
    RunOutcome,
    Safety,
    ToolCode,
    ToolsNeed,
    ZeroSuccessCause,
)

_H: Final = frozenset({Registered.ROUTE, Registered.AGENT, Registered.SCHEMA_VERSION})


def bear_process(book: Book, *, release: str, semconv: str) -> None:
    """Bear what exists from the start: series without registered names, and those of unknown names."""
    book.register(Registered.TEXT, release, semconv)
    book.register(Registered.REASON, *REASONS)
    book.set(c.BUILD_INFO, (release, semconv), 1)
    for metric in book.metrics:
        if born_with(metric, frozenset()):
            book.bear(metric, {})
    for metric in book.metrics:
        for label in metric.labels:
            if isinstance(label.values, Registered):
                book.bear(c.LABEL_OVERFLOW, {"metric": metric.name, "label": label.name})
    codes = [(code, reason.reaction) for code, reason in REASONS.items()]
    _bear_handoffs(book, OTHER, OTHER, OTHER, OTHER, mode=Mode.ENFORCE, codes=codes)
    _bear_all(book, frozenset({Registered.TOOL}), {"tool": OTHER})
    _bear_tool_codes(book, OTHER, declared_codes(Safety.UNSAFE))


def bear_route(
    book: Book,
    name: str,
    source: str,
    target: str,
    *,
    versions: list[str],
    mode: Mode,
    criticality: Criticality,
    codes: Collection[tuple[str, Reaction]],
    bypasses: Collection[tuple[Check, BypassCause]],
) -> None:
    """Bear the series of a route, for each of its schema versions and for an unknown one.

    `codes` are the reason codes that its handoffs can yield, with each reaction they can have; `bypasses` are the
    checks that they can pass without. An unchecked route has no versions.
    """
    book.register(Registered.REASON, *(code for code, _ in codes))
    book.register(Registered.ROUTE, name)
    book.register(Registered.AGENT, source, target)
    book.register(Registered.SCHEMA_VERSION, *versions)
    book.register(Registered.NAME, name)
    book.set(c.HANDOFF_ROUTE_INFO, (name, source, target, mode, criticality), 1)
    for version in (*versions, OTHER):
        _bear_handoffs(book, name, source, target, version, mode=mode, codes=codes)
    for check, cause in bypasses:
        book.bear(c.CHECKS_BYPASSED, {"check": check, "name": name, "cause": cause})


def bear_boundary(book: Book, route: str, patterns: Collection[str]) -> None:
    """Bear the series of a route's boundary, for each pattern that a divergence can break."""
    book.register(Registered.PATH, *patterns)
    for pattern in patterns:
        book.bear(c.HANDOFF_DIVERGENCES, {"route": route, "path": pattern})


def bear_workflow(book: Book, name: str, *, tools: ToolsNeed) -> None:
    """Bear the series of a workflow."""
    book.register(Registered.WORKFLOW, name)
    book.register(Registered.NAME, name)
    _bear_all(book, frozenset({Registered.WORKFLOW}), {"workflow": name})
    for outcome in RunOutcome:
        book.bear(c.RUNS, {"workflow": name, "tools": tools, "outcome": outcome})
    book.bear(c.CHECKS_BYPASSED, {"check": Check.LEDGER, "name": name, "cause": BypassCause.LEDGER_DOWN})
    for cause in ZeroSuccessCause:
        book.bear(c.RUNS_WITHOUT_TOOL_SUCCESS, {"workflow": name, "tools": tools, "cause": cause})


def bear_tool(book: Book, name: str, *, codes: Collection[tuple[ToolCode, FailureClass]]) -> None:
    """Bear the series of a tool, with the codes and classes that its calls can fail with."""
    book.register(Registered.TOOL, name)
    _bear_all(book, frozenset({Registered.TOOL}), {"tool": name})
    _bear_tool_codes(book, name, codes)


def bear_operation(book: Book, name: str) -> None:
    """Bear the series of an operation."""
    book.register(Registered.OPERATION, name)
    book.register(Registered.NAME, name)
    _bear_all(book, frozenset({Registered.OPERATION}), {"operation": name})
    for cause in (BypassCause.LEDGER_DOWN, BypassCause.UNCHECKED):
        book.bear(c.CHECKS_BYPASSED, {"check": Check.LEDGER, "name": name, "cause": cause})


def _bear_all(book: Book, kinds: frozenset[Registered], known: dict[str, str]) -> None:
    for metric in book.metrics:
        if born_with(metric, kinds) and not born_with(metric, frozenset()):
            book.bear(metric, known)


def _bear_handoffs(
    book: Book,
    route: str,
    source: str,
    target: str,
    version: str,
    *,
    mode: Mode,
    codes: Collection[tuple[str, Reaction]],
) -> None:
    known = {"route": route, "source_agent": source, "target_agent": target, "schema_version": version}
    _bear_all(book, _H, known)
    for code, reaction in codes:
        book.bear(c.HANDOFF_FINDINGS, {**known, "mode": mode, "reason": code, "reaction": reaction})


def _bear_tool_codes(book: Book, name: str, codes: Collection[tuple[ToolCode, FailureClass]]) -> None:
    book.bear(c.TOOL_ATTEMPTS, {"tool": name, "code": OK})
    for code, failure_class in codes:
        book.bear(c.TOOL_ATTEMPTS, {"tool": name, "code": code})
        book.bear(c.TOOL_FAILURES, {"tool": name, "code": code, "failure_class": failure_class})
