"""The watchdog: is this state fit for the next step?"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic import ValidationError

from handoffwatch.clock import Clock
from handoffwatch.decision import Decision, Finding, reacting, summary_of
from handoffwatch.handoffs.context import NO_CONTEXT, HandoffContext, TaskFacts
from handoffwatch.handoffs.contract import CompiledContract, compile_envelope
from handoffwatch.handoffs.examination import examine_dict, examine_text, name_errors
from handoffwatch.handoffs.limits import TaskLimits, judge_limits
from handoffwatch.handoffs.reading import PAYLOAD_BYTES_MAX, read_handoff
from handoffwatch.handoffs.routes import Route, Routes
from handoffwatch.handoffs.rules import judge_demands, judge_identity, skipped_rules
from handoffwatch.handoffs.structure import errors_of, finding
from handoffwatch.handoffs.truncation import judge_truncation
from handoffwatch.values.json_text import INTEGER_MAX, PLAIN_TYPES, decode, encode, is_encodable, kind_of
from handoffwatch.vocabulary import OTHER, Mode, Severity, Verdict

_NO_ID: Final = (None, "")
_NUMBERS: Final = (int, float)
_FIELDS_MANY: Final = 1_000
_NOTHING_SEEN: Final = TaskFacts()[1:]
"""Of a task that went neither round nor wrong: it may be handed over until its hops are used up."""


class Watchdog:
    """Judges handoffs by the contracts of their routes.

    Pure apart from the clock and the source of ids that are handed in: no I/O, no telemetry, and no exception for
    any input. Safe to use from any thread once its routes are registered.

    Args:
        routes: The registered routes.
        clock: Times the check.
        new_id: Makes the id of a handoff that has none.
        payload_bytes_max: The largest handoff that is judged, as JSON text.
        limits: How often a task may be handed over.
    """

    def __init__(
        self,
        routes: Routes,
        *,
        clock: Clock,
        new_id: Callable[[], str] = lambda: uuid.uuid4().hex,
        payload_bytes_max: int = PAYLOAD_BYTES_MAX,
        limits: TaskLimits = TaskLimits(),  # noqa: B008 - a tuple
    ) -> None:
        self.routes = routes
        self._bytes_max = payload_bytes_max
        self.limits = limits
        self._clock = clock
        self._new_id = new_id
        self._envelope = compile_envelope()

    def inspect(
        self,
        raw: object,
        *,
        expected_source: str | None = None,
        expected_target: str | None = None,
        context: HandoffContext | None = None,
    ) -> Decision:
        """Return the decision about one attempt of a handoff.

        Args:
            raw: A dict, a Pydantic model, or JSON text as the model wrote it; anything else is a finding.
            expected_source: The agent that the orchestrator knows to be sending.
            expected_target: The agent that the orchestrator is about to start; compared exactly.
            context: What the orchestrator knows; rules without their fact are listed in `skipped`.

        Returns:
            All findings at once. An error inside a check or contract is the finding `check_failed`, which blocks.
        """
        started_s = self._clock.monotonic_s()
        known = context if isinstance(context, HandoffContext) else NO_CONTEXT
        handoff_id, route = "", None
        try:
            if context is not None and known is not context:
                raise TypeError("the context must be a HandoffContext")
            now_unix_s = self._clock.wall_s()
            if type(raw) is dict:
                quick = self._quick(raw, expected_source, expected_target, known, now_unix_s, started_s)
                if quick is not None:
                    return quick
            findings: list[Finding] = []
            received, received_text = read_handoff(raw, findings, bytes_max=self._bytes_max)
            handoff, text = self._identified(received, received_text, known, findings)
            handoff_id = self._id_of(handoff, known)
            route = self.routes.resolve(
                expected_source or handoff.get("source_agent"), expected_target or handoff.get("target_agent"), findings
            )
            if route is not None and route.is_unchecked:
                passed = decode(received_text) if received_text else None
                return self._decide([], passed, handoff_id, route, "", known.attempt, ("contract",), (), started_s)
            contract = self._contract(handoff, route, findings)
            self._judge_envelope(findings, handoff, contract, expected_source, expected_target, known)
            judge_truncation(findings, handoff, raw_text_ended=True)
            normalized, coerced = examine_text(findings, handoff, text, contract, context=known, now_unix_s=now_unix_s)
            if normalized is not None:
                _fill(normalized, known)
            if route is not None:
                if route.reactions:
                    findings = [reacting(item, route.reactions.get(item.code)) for item in findings]
                if route.mode is Mode.SHADOW or normalized is None:
                    normalized = decode(received_text) if received_text else None
            skipped = skipped_rules(handoff, contract, known)
            return self._decide(
                findings, normalized, handoff_id, route, contract.version, known.attempt, skipped, coerced, started_s
            )
        except Exception as error:  # noqa: BLE001 - our own fault fails closed; recording counts it by its code
            failed = finding("check_failed", "$", f"a check raised {kind_of(error)}, so nothing was proven")
            if route is None and type(expected_source) is type(expected_target) is str:
                route = self.routes.find(expected_source, expected_target)
            own_id = handoff_id or self._id(known)
            return self._decide([failed], None, own_id, route, "", known.attempt, (), (), started_s)

    def _quick(
        self,
        raw: dict[str, Any],
        source: str | None,
        target: str | None,
        context: HandoffContext,
        now_unix_s: float,
        started_s: float,
    ) -> Decision | None:
        """Return the decision about a dict of plain values; None when it must be looked at with care."""
        sent_from, sent_to = raw.get("source_agent"), raw.get("target_agent")
        version, handoff_id = raw.get("schema_version"), raw.get("handoff_id")
        if not type(sent_from) is type(sent_to) is type(version) is type(handoff_id) is str or not handoff_id:
            return None
        route = self.routes.find(sent_from, sent_to)
        if route is None or route.mode is Mode.SHADOW:
            return None
        contract = route.contracts.get(version)
        payload = raw.get("payload")
        if type(payload) is dict and len(payload) > _FIELDS_MANY:
            return None  # its size is looked at before each unknown field is named
        if contract is None or (contract.failed is not None and raw.get("status") == "failed"):
            return None
        findings: list[Finding] = []
        try:
            normalized = examine_dict(findings, raw, contract, context=context, now_unix_s=now_unix_s)
            if (
                normalized is None
                or normalized["finish_reason"] is not None
                or len(encode(normalized)) > self._bytes_max
            ):
                return None
        except ValidationError as error:
            return self._refused(raw, error, route, contract, source, target, context, now_unix_s, started_s)
        except Exception:  # noqa: BLE001 - whatever it is, the careful way meets it again and names it
            return None
        self._judge_envelope(findings, normalized, contract, source, target, context)
        if findings:
            return None
        skipped = skipped_rules(normalized, contract, context)
        _fill(normalized, context)
        return self._decide(
            findings, normalized, handoff_id, route, contract.version, context.attempt, skipped, (), started_s
        )

    def _refused(
        self,
        raw: dict[str, Any],
        error: ValidationError,
        route: Route,
        contract: CompiledContract,
        source: str | None,
        target: str | None,
        context: HandoffContext,
        now_unix_s: float,
        started_s: float,
    ) -> Decision | None:
        """Return the decision about a dict whose shape is wrong; None when what is wrong is no plain value."""
        details = errors_of(error)
        kinds = {type(detail["input"]) for detail in details}
        if contract.options.lax or not kinds <= PLAIN_TYPES:
            return None
        if not kinds.isdisjoint(_NUMBERS) and any(_is_bent(detail["input"]) for detail in details):
            return None
        handoff = {name: value for name, value in raw.items() if type(value) in PLAIN_TYPES}
        findings: list[Finding] = []
        self._judge_envelope(findings, handoff, contract, source, target, context)
        judge_truncation(findings, handoff, raw_text_ended=True)
        name_errors(findings, handoff, details, contract)
        judge_demands(findings, handoff, contract, context=context, now_unix_s=now_unix_s)
        if route.reactions:
            findings = [reacting(item, route.reactions.get(item.code)) for item in findings]
            if summary_of(findings).verdict is Verdict.WARNED:
                return None
        skipped = skipped_rules(handoff, contract, context)
        handoff_id = self._id_of(handoff, context)
        return self._decide(
            findings, None, handoff_id, route, contract.version, context.attempt, skipped, (), started_s
        )

    def _judge_envelope(
        self,
        findings: list[Finding],
        handoff: Mapping[str, Any],
        contract: CompiledContract,
        source: str | None,
        target: str | None,
        context: HandoffContext,
    ) -> None:
        """Add to `findings` where the envelope contradicts what the orchestrator knows."""
        judge_identity(findings, handoff, expected_source=source, expected_target=target, context=context)
        task = context.task
        if task is not None and (task[0] >= self.limits.hops_max or task[1:] != _NOTHING_SEEN):
            judge_limits(findings, handoff, contract, task, self.limits)

    def _identified(
        self, handoff: dict[str, Any], text: bytes, context: HandoffContext, findings: list[Finding]
    ) -> tuple[dict[str, Any], bytes]:
        """Return the handoff with its id filled in and its version as text, and the JSON text of that."""
        filled: dict[str, Any] = {}
        if type(handoff.get("schema_version")) is int:
            filled["schema_version"] = str(handoff["schema_version"])
        if handoff.get("handoff_id") in _NO_ID:
            sentence = "handoff_id should name the handoff; one was made"
            findings.append(finding("missing_handoff_id", "handoff_id", sentence))
            filled["handoff_id"] = self._id(context)
        if filled:
            handoff = {**handoff, **filled}
            text = encode(handoff) if text else text
        return handoff, text

    def _id_of(self, handoff: Mapping[str, Any], context: HandoffContext) -> str:
        """Return the envelope's id when it is a text that can be written, else another."""
        sent = handoff.get("handoff_id")
        return sent if type(sent) is str and sent and is_encodable(sent) else self._id(context)

    def _id(self, context: HandoffContext) -> str:
        known = context.handoff_id
        return known if isinstance(known, str) and known and is_encodable(known) else self._new_id()

    def _contract(self, handoff: Mapping[str, Any], route: Route | None, findings: list[Finding]) -> CompiledContract:
        """Return the contract to judge by: the route's for this version, else the bare envelope and a finding."""
        if route is None:
            return self._envelope
        version = handoff.get("schema_version")
        contract = route.contracts.get(version) if isinstance(version, str) else None
        if contract is None and isinstance(version, str) and version:
            sentence = f"schema_version must be one of {', '.join(sorted(route.contracts))}"
            findings.append(finding("unknown_schema_version", "schema_version", sentence))
            return self._envelope
        if contract is None:
            contract = next(iter(route.contracts.values())) if len(route.contracts) == 1 else self._envelope
        return contract.failed if contract.failed is not None and handoff.get("status") == "failed" else contract

    def _decide(
        self,
        findings: list[Finding],
        normalized: dict[str, Any] | None,
        handoff_id: str,
        route: Route | None,
        version: str,
        attempt: int,
        skipped: tuple[str, ...],
        coerced: tuple[str, ...],
        started_s: float,
    ) -> Decision:
        name, mode = (route.name, route.mode) if route is not None else (OTHER, Mode.ENFORCE)
        if not findings:
            return Decision(
                True, [], Severity.INFO, False, handoff_id, normalized, Verdict.ALLOWED, (), name, version or OTHER,
                attempt, mode, skipped, coerced, self._clock.monotonic_s() - started_s,
            )  # fmt: skip
        reasons, verdict, severity, retryable = summary_of(findings)
        allowed = verdict is Verdict.WARNED or mode is Mode.SHADOW
        return Decision(
            allowed, list(reasons), severity, retryable, handoff_id,
            normalized if allowed or verdict is Verdict.HELD else None, verdict, tuple(findings), name,
            version or OTHER, attempt, mode, skipped, coerced, self._clock.monotonic_s() - started_s,
        )  # fmt: skip


def _is_bent(value: object) -> bool:
    """Return whether a number would be another one for a reader of JSON: `survey` names it."""
    return type(value) in _NUMBERS and not -INTEGER_MAX <= value <= INTEGER_MAX  # type: ignore[operator]


def _fill(normalized: dict[str, Any], context: HandoffContext) -> None:
    """Fill the optional fields of the envelope that the sender left out."""
    if normalized["run_id"] is None:
        normalized["run_id"] = context.run_id
    if normalized["context_version"] is None:
        normalized["context_version"] = context.context_version
    if normalized["attempt"] is None:
        normalized["attempt"] = context.attempt
