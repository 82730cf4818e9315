"""The declared risk signals: what about a handoff asks for a critic, although the watchdog lets it pass."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any, Final

from handoffwatch.decision import Decision
from handoffwatch.errors import RegistrationError
from handoffwatch.values.result_flags import is_blank
from handoffwatch.vocabulary import RiskSignal

PAYLOAD_BYTES_USUAL: Final = 65_536
"""The largest handoff, as JSON text, that is not unusually large, unless limits say otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskLimits:
    """Where a handoff begins to be risky.

    Attributes:
        confidence_min: The least `payload.confidence`, 0.0 to 1.0; None leaves it to the contract's own threshold.
        payload_bytes_max: The largest handoff, as JSON text, that is not unusually large; at least 1.
        sensitive_task_types: The task types that are sensitive, beside every handoff that names an operation.

    Raises:
        RegistrationError: A limit breaks its rule.
    """

    confidence_min: float | None = None
    payload_bytes_max: int = PAYLOAD_BYTES_USUAL
    sensitive_task_types: Set[str] = frozenset()

    def __post_init__(self) -> None:
        confidence, bytes_max, types = self.confidence_min, self.payload_bytes_max, self.sensitive_task_types
        if confidence is not None and (
            isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 <= confidence <= 1
        ):
            raise _refused("confidence_min", "a number from 0 to 1, or None", confidence, "0.5")
        if type(bytes_max) is not int or bytes_max < 1:
            raise _refused("payload_bytes_max", "an integer of at least 1", bytes_max, str(PAYLOAD_BYTES_USUAL))
        if not isinstance(types, Set) or not all(isinstance(each, str) and each for each in types):
            raise _refused("sensitive_task_types", "a set of texts", types, '{"refund"}')
        object.__setattr__(self, "sensitive_task_types", frozenset(types))


def risks_of(
    handoff: Mapping[str, Any], decision: Decision, *, payload_bytes: int, limits: RiskLimits, is_new_version: bool
) -> frozenset[RiskSignal]:
    """Return the risk signals of a handoff.

    Args:
        handoff: The handoff as it would be delivered.
        decision: What the watchdog said about it.
        payload_bytes: Its size as JSON text.
        limits: Where it begins to be risky.
        is_new_version: Whether this is the first handoff of its route with this schema version.
    """
    payload = handoff.get("payload")
    said: Mapping[str, Any] = payload if isinstance(payload, Mapping) else {}
    signals = {
        RiskSignal.NEW_SCHEMA_VERSION: is_new_version,
        RiskSignal.LOW_CONFIDENCE: "low_confidence" in decision.reasons or _is_unsure(said.get("confidence"), limits),
        RiskSignal.AGENTS_IN_CONFLICT: "merge_conflict" in decision.reasons,
        RiskSignal.SENSITIVE_OPERATION: not is_blank(said.get("operation_id")) or _is_sensitive(handoff, limits),
        RiskSignal.LARGE_PAYLOAD: payload_bytes > limits.payload_bytes_max,
    }
    return frozenset(signal for signal, is_raised in signals.items() if is_raised)


def _is_unsure(confidence: object, limits: RiskLimits) -> bool:
    least = limits.confidence_min
    if least is None or isinstance(confidence, bool) or not isinstance(confidence, int | float):
        return False
    return confidence < least


def _is_sensitive(handoff: Mapping[str, Any], limits: RiskLimits) -> bool:
    task_type = handoff.get("task_type")
    return isinstance(task_type, str) and task_type in limits.sensitive_task_types


def _refused(field: str, rule: str, value: object, example: str) -> RegistrationError:
    return RegistrationError(
        f"risk limits: {field}: must be {rule}, got {type(value).__name__}", hint=f"{field}={example}"
    )
