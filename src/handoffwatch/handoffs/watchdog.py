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
from handoffwatch.handoffs.reading import PAYLOAD_BYTES_MAX, read_handoff
from handoffwatch.handoffs.routes import Route, Routes
from handoffwatch.handoffs.rules import judge_completeness, judge_identity, skipped_rules
from handoffwatch.handoffs.structure import finding, findings_of_error, kind_of
from handoffwatch.values.json_text import decode, encode, is_encodable
from handoffwatch.vocabulary import OTHER, Mode, Verdict

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
        known = context if isinstance(context, HandoffContext) else NO_CONTEXT
        handoff_id, route = "", None
        try:
            if context is not None and known is not context:
                raise TypeError("the context must be a HandoffContext")
            if type(raw) is dict:
                quick = self._quick(raw, expected_source, expected_target, known, started_s)
                if quick is not None:
                    return quick
            findings: list[Finding] = []
            received, received_text = read_handoff(raw, findings)
            handoff, text = self._identified(received, received_text, known, findings)
            handoff_id = self._id_of(handoff, known)
            route = self.routes.resolve(
                expected_source or handoff.get("source_agent"), expected_target or handoff.get("target_agent"), findings
            )
            contract = self._contract(handoff, route, findings)
            judge_identity(
                findings, handoff, expected_source=expected_source, expected_target=expected_target, context=known
            )
            normalized = self._validate(handoff, text, contract, known, findings)
            if route is not None and route.mode is Mode.SHADOW:
                normalized = decode(received_text) if received_text else None
            return self._decide(
                findings,
                normalized,
                handoff_id,
                route,
                contract.version,
                known.attempt,
                skipped_rules(handoff, known),
                started_s,
            )
        except Exception as error:  # noqa: BLE001 - our own fault fails closed; recording counts it by its code
            failed = finding("check_failed", "$", f"a check raised {kind_of(error)}, so nothing was proven")
            return self._decide([failed], None, handoff_id or self._id(known), route, "", known.attempt, (), started_s)

    def _quick(
        self, raw: dict[str, Any], source: str | None, target: str | None, context: HandoffContext, started_s: float
    ) -> Decision | None:
        """Return the decision about a handoff that has nothing wrong; None when it must be looked at with care."""
        sent_from, sent_to = raw.get("source_agent"), raw.get("target_agent")
        version, handoff_id = raw.get("schema_version"), raw.get("handoff_id")
        if not type(sent_from) is type(sent_to) is type(version) is type(handoff_id) is str:
            return None
        route = self.routes.find(sent_from, sent_to)
        if route is None or route.mode is Mode.SHADOW:
            return None
        contract = route.contracts.get(version)
        if contract is None or contract.closed is None:
            return None
        try:
            model = contract.closed.validate_python(raw, strict=True, extra="forbid")
            normalized = contract.serializer.to_python(model, mode="json")
            text = encode(normalized)
        except Exception:  # noqa: BLE001 - whatever it is, the careful way meets it again and names it
            return None
        if len(text) > PAYLOAD_BYTES_MAX:
            return None
        findings: list[Finding] = []
        judge_identity(findings, normalized, expected_source=source, expected_target=target, context=context)
        judge_completeness(findings, normalized, contract)
        if findings:
            return None
        skipped = skipped_rules(normalized, context)
        _fill(normalized, context)
        return self._decide(
            findings, normalized, handoff_id, route, contract.version, context.attempt, skipped, started_s
        )

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
                _fill(normalized, context)
        findings += complete
        return normalized

    def _decide(
        self,
        findings: list[Finding],
        normalized: dict[str, Any] | None,
        handoff_id: str,
        route: Route | None,
        version: str,
        attempt: int,
        skipped: tuple[str, ...],
        started_s: float,
    ) -> Decision:
        mode = route.mode if route is not None else Mode.ENFORCE
        name = route.name if route is not None else OTHER
        verdict = verdict_of(findings)
        allowed = verdict in _PASSING or mode is Mode.SHADOW
        return Decision(
            allowed,
            list(dict.fromkeys([item.code for item in findings])) if findings else [],
            worst_severity(findings),
            is_retryable(findings),
            handoff_id,
            normalized if allowed else None,
            verdict,
            tuple(findings),
            name,
            version or OTHER,
            attempt,
            mode,
            skipped,
            (),
            self._clock.monotonic_s() - started_s,
        )


def _fill(normalized: dict[str, Any], context: HandoffContext) -> None:
    """Fill the optional fields of the envelope that the sender left out."""
    if normalized["run_id"] is None:
        normalized["run_id"] = context.run_id
    if normalized["context_version"] is None:
        normalized["context_version"] = context.context_version
    if normalized["attempt"] is None:
        normalized["attempt"] = context.attempt
