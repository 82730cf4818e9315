"""The watchdog: is this state fit for the next step?"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic_core import ValidationError

from handoffwatch.clock import Clock
from handoffwatch.decision import Decision, Finding, is_retryable, verdict_of, worst_severity
from handoffwatch.handoffs.context import NO_CONTEXT, HandoffContext
from handoffwatch.handoffs.contract import CompiledContract, compile_envelope
from handoffwatch.handoffs.routes import Route, Routes
from handoffwatch.handoffs.rules import judge_completeness, judge_identity, skipped_rules
from handoffwatch.handoffs.structure import finding, findings_of_error, findings_of_faults, kind_of
from handoffwatch.values.json_text import decode, encode, find_faults, may_hide_numbers
from handoffwatch.vocabulary import OTHER, Mode, Verdict

PAYLOAD_BYTES_MAX: Final = 1024 * 1024
"""The largest handoff that is judged, as JSON text. Source: DESIGN section 11."""


_NO_ID: Final = (None, "")
_PASSING: Final = (Verdict.ALLOWED, Verdict.WARNED)


class Watchdog:
    """Judges handoffs by the contracts of their routes.

    Pure apart from the clock and the source of ids that are handed in: no I/O, no telemetry, and no exception for
    any input. Safe to use from any thread once its routes are registered.

    Args:
        routes: The registered routes.
        clock: Times the check.
        new_id: Makes the id of a handoff that has none.
    """

    def __init__(self, routes: Routes, *, clock: Clock, new_id: Callable[[], str] = lambda: uuid.uuid4().hex) -> None:
        self.routes = routes
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
        context = context or NO_CONTEXT
        route: Route | None = None
        try:
            findings: list[Finding] = []
            handoff, text = self._read(raw, context, findings)
            route = self.routes.resolve(
                expected_source or handoff.get("source_agent"), expected_target or handoff.get("target_agent"), findings
            )
            contract = self._contract(handoff, route, findings)
            judge_identity(
                findings, handoff, expected_source=expected_source, expected_target=expected_target, context=context
            )
            normalized = self._validate(handoff, text, contract, context, findings)
            handoff_id = handoff.get("handoff_id")
            return self._decide(
                handoff if text else None,
                findings,
                normalized,
                handoff_id if isinstance(handoff_id, str) and handoff_id else self._id(context),
                route,
                contract.version,
                context,
                skipped_rules(handoff, context),
                started_s,
            )
        except Exception as error:  # noqa: BLE001 - our own fault fails closed; recording counts it by its code
            failed = finding("check_failed", "$", f"a check raised {type(error).__name__}, so nothing was proven")
            return self._decide(None, [failed], None, self._id(context), route, "", context, (), started_s)

    def _read(self, raw: object, context: HandoffContext, findings: list[Finding]) -> tuple[dict[str, Any], bytes]:
        """Return the handoff as a plain object with its id filled in, and its JSON text; empty when it has none."""
        value = raw
        if type(raw) is not dict and isinstance(raw, str | bytes | bytearray):
            try:
                value = decode(bytes(raw) if isinstance(raw, bytearray) else raw)
            except ValueError:
                findings.append(finding("unparsable_text", "$", "the handoff must be one complete JSON object"))
                return {}, b""
        text = self._encode(value, findings)
        handoff = value if type(value) is dict else decode(text) if text else {}
        if not isinstance(handoff, dict):
            sentence = f"the handoff must be an object, and is {kind_of(handoff)}"
            findings.append(finding("type_mismatch", "$", sentence))
            return {}, b""
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

    @staticmethod
    def _encode(value: object, findings: list[Finding]) -> bytes:
        """Return the JSON text of a value; empty, with a finding, when there is none or it is too large."""
        try:
            text = encode(value)
        except (TypeError, ValueError, RecursionError):
            text = b""
        if not text or may_hide_numbers(text):
            faults = find_faults(value)
            findings += findings_of_faults(faults)
            if faults:
                return b""
            if not text:
                findings.append(finding("not_serialisable", "$", "the handoff must be plain data"))
        if len(text) > PAYLOAD_BYTES_MAX:
            findings.append(finding("too_large", "$", f"the handoff must be at most {PAYLOAD_BYTES_MAX} bytes"))
            return b""
        return text

    def _id(self, context: HandoffContext) -> str:
        return context.handoff_id or self._new_id()

    def _contract(self, handoff: Mapping[str, Any], route: Route | None, findings: list[Finding]) -> CompiledContract:
        """Return the contract to judge by: the route's for this version, else the bare envelope and a finding."""
        if route is None:
            return self._envelope
        version = handoff.get("schema_version")
        contract = route.contracts.get(version) if isinstance(version, str) else None
        if contract is not None:
            return contract
        if isinstance(version, str) and version:
            sentence = f"schema_version must be one of {', '.join(sorted(route.contracts))}"
            findings.append(finding("unknown_schema_version", "schema_version", sentence))
            return self._envelope
        return next(iter(route.contracts.values())) if len(route.contracts) == 1 else self._envelope

    @staticmethod
    def _validate(
        handoff: Mapping[str, Any],
        text: bytes,
        contract: CompiledContract,
        context: HandoffContext,
        findings: list[Finding],
    ) -> dict[str, Any] | None:
        """Return the normalised handoff with the context filled in, or None; a gap that a rule names counts once."""
        complete: list[Finding] = []
        judge_completeness(complete, handoff, contract)
        normalized: dict[str, Any] | None = None
        if text:
            try:
                model = contract.validator.validate_json(text, strict=True, extra="forbid")
            except ValidationError as error:
                named = {item.path for item in complete}
                findings += [item for item in findings_of_error(error, handoff) if item.path not in named]
            else:
                normalized = contract.serializer.to_python(model, mode="json")
                if normalized["run_id"] is None:
                    normalized["run_id"] = context.run_id
                if normalized["context_version"] is None:
                    normalized["context_version"] = context.context_version
                if normalized["attempt"] is None:
                    normalized["attempt"] = context.attempt
        findings += complete
        return normalized

    def _decide(
        self,
        received: dict[str, Any] | None,
        findings: list[Finding],
        normalized: dict[str, Any] | None,
        handoff_id: str,
        route: Route | None,
        version: str,
        context: HandoffContext,
        skipped: tuple[str, ...],
        started_s: float,
    ) -> Decision:
        mode = route.mode if route is not None else Mode.ENFORCE
        name = route.name if route is not None else OTHER
        verdict = verdict_of(findings)
        shadow = mode is Mode.SHADOW
        allowed = shadow or verdict in _PASSING
        return Decision(
            allowed,
            list(dict.fromkeys([item.code for item in findings])) if findings else [],
            worst_severity(findings),
            is_retryable(findings),
            handoff_id,
            received if shadow else normalized if allowed else None,
            verdict,
            tuple(findings),
            name,
            version or OTHER,
            context.attempt,
            mode,
            skipped,
            (),
            self._clock.monotonic_s() - started_s,
        )
