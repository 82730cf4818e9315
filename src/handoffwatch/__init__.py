"""handoffwatch makes the silent failures of multi-agent systems visible, countable and pageable."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from handoffwatch.clock import Clock
    from handoffwatch.decision import Decision, Finding
    from handoffwatch.errors import (
        ClaimRefused,
        ConfigError,
        HandoffBlocked,
        HandoffDivergence,
        HandoffHeld,
        HandoffwatchError,
        LedgerUnavailable,
        NeedsHuman,
        RegistrationError,
        SnapshotEdited,
        SnapshotUnavailable,
        Stopped,
        ToolConfirmed,
        ToolDown,
        ToolFailed,
        ToolRejected,
    )
    from handoffwatch.handoffs.context import HandoffContext, TaskFacts
    from handoffwatch.handoffs.contract import Contract
    from handoffwatch.handoffs.critique import Critic, CriticAnswer, CriticPolicy, CriticRequest
    from handoffwatch.handoffs.loose import contract_from_function, contract_from_json_schema
    from handoffwatch.handoffs.own_rules import rule
    from handoffwatch.handoffs.risks import RiskLimits
    from handoffwatch.handoffs.watchdog import Watchdog
    from handoffwatch.runtime.call import Call
    from handoffwatch.runtime.run import Run
    from handoffwatch.runtime.settings import Settings
    from handoffwatch.runtime.step import Step
    from handoffwatch.runtime.watch import Watch
    from handoffwatch.settlement.verifiers.record import RecordVerifier
    from handoffwatch.vocabulary import Action, FailureClass

_MODULES = {
    "Action": "vocabulary",
    "Call": "runtime.call",
    "ClaimRefused": "errors",
    "Clock": "clock",
    "ConfigError": "errors",
    "Contract": "handoffs.contract",
    "Critic": "handoffs.critique",
    "CriticAnswer": "handoffs.critique",
    "CriticPolicy": "handoffs.critique",
    "CriticRequest": "handoffs.critique",
    "Decision": "decision",
    "FailureClass": "vocabulary",
    "Finding": "decision",
    "HandoffBlocked": "errors",
    "HandoffContext": "handoffs.context",
    "HandoffDivergence": "errors",
    "HandoffHeld": "errors",
    "HandoffwatchError": "errors",
    "LedgerUnavailable": "errors",
    "NeedsHuman": "errors",
    "RecordVerifier": "settlement.verifiers.record",
    "RegistrationError": "errors",
    "RiskLimits": "handoffs.risks",
    "Run": "runtime.run",
    "Settings": "runtime.settings",
    "SnapshotEdited": "errors",
    "SnapshotUnavailable": "errors",
    "Step": "runtime.step",
    "Stopped": "errors",
    "TaskFacts": "handoffs.context",
    "ToolConfirmed": "errors",
    "ToolDown": "errors",
    "ToolFailed": "errors",
    "ToolRejected": "errors",
    "Watch": "runtime.watch",
    "Watchdog": "handoffs.watchdog",
    "contract_from_function": "handoffs.loose",
    "contract_from_json_schema": "handoffs.loose",
    "rule": "handoffs.own_rules",
}

__all__ = [
    "Action",
    "Call",
    "ClaimRefused",
    "Clock",
    "ConfigError",
    "Contract",
    "Critic",
    "CriticAnswer",
    "CriticPolicy",
    "CriticRequest",
    "Decision",
    "FailureClass",
    "Finding",
    "HandoffBlocked",
    "HandoffContext",
    "HandoffDivergence",
    "HandoffHeld",
    "HandoffwatchError",
    "LedgerUnavailable",
    "NeedsHuman",
    "RecordVerifier",
    "RegistrationError",
    "RiskLimits",
    "Run",
    "Settings",
    "SnapshotEdited",
    "SnapshotUnavailable",
    "Step",
    "Stopped",
    "TaskFacts",
    "ToolConfirmed",
    "ToolDown",
    "ToolFailed",
    "ToolRejected",
    "Watch",
    "Watchdog",
    "contract_from_function",
    "contract_from_json_schema",
    "rule",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'handoffwatch' has no attribute {name!r}")
    value = getattr(import_module(f"handoffwatch.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
