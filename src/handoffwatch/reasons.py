"""The reason codes: what each means, how the watchdog reacts to it, and what the sender should do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from handoffwatch.vocabulary import Reaction, Severity


@dataclass(frozen=True, slots=True)
class Reason:
    """One documented reason code.

    Attributes:
        code: The code, snake_case; a label value and a member of `Decision.reasons`.
        group: structure, completeness, plausibility, identity, boundary, flow, or contract for a team's own codes.
        meaning: What is wrong, as a sentence without its subject.
        advice: What the sender should do.
        example: A small case, in words.
        reaction: What the watchdog does unless a contract says otherwise.
        severity: The severity of its findings.
        retryable: Whether the sender can repair it.
    """

    code: str
    group: str
    meaning: str
    advice: str
    example: str
    reaction: Reaction = Reaction.BLOCK
    severity: Severity = Severity.ERROR
    retryable: bool = True


def _warn(code: str, group: str, meaning: str, advice: str, example: str) -> Reason:
    return Reason(code, group, meaning, advice, example, Reaction.WARN, Severity.WARNING)


def _flag(code: str, group: str, meaning: str, advice: str, example: str) -> Reason:
    return Reason(code, group, meaning, advice, example, Reaction.FLAG, Severity.WARNING)


def _final(
    code: str, group: str, meaning: str, advice: str, example: str, severity: Severity = Severity.ERROR
) -> Reason:
    return Reason(code, group, meaning, advice, example, Reaction.BLOCK, severity, retryable=False)


def _critical(code: str, group: str, meaning: str, advice: str, example: str) -> Reason:
    return Reason(code, group, meaning, advice, example, Reaction.BLOCK, Severity.CRITICAL)


_STRUCTURE: Final = (
    Reason(
        "missing_field",
        "structure",
        "a required field is not there",
        "send the field",
        "`payload.order_id` was left out",
    ),
    Reason(
        "null_field",
        "structure",
        "a field that needs a value is null",
        "send a value, or leave an optional field out",
        "`payload.order_id` is null",
    ),
    Reason(
        "empty_field",
        "structure",
        "a field that must say something is empty",
        "fill the field",
        "`payload.order_id` is an empty text",
    ),
    Reason(
        "type_mismatch",
        "structure",
        "a field has another type than the contract names",
        "send the named type; text is not turned into numbers",
        "`payload.count` is the text 3 instead of the number",
    ),
    Reason(
        "unknown_field",
        "structure",
        "a field stands there that the contract does not know",
        "remove the field or correct its name",
        "`payload.amout_cents` instead of `amount_cents`",
    ),
    Reason(
        "bad_format",
        "structure",
        "a value has the right type and breaks the contract's format",
        "send the value in the form that the contract names",
        "`payload.order_id` does not match its pattern",
    ),
    Reason(
        "unknown_status",
        "structure",
        "the status is none of ready, completed, failed",
        "send one of the three",
        "`status` is done",
    ),
    Reason(
        "unknown_schema_version",
        "structure",
        "no contract of this route has this schema version",
        "send a version that the receiver registered",
        "`schema_version` is 7 where 1 and 2 exist",
    ),
    _warn(
        "deprecated_schema_version",
        "structure",
        "the schema version will be dropped",
        "move to the newest version",
        "version 1 ends next month",
    ),
    Reason(
        "non_finite_number",
        "structure",
        "a number is NaN or infinite",
        "send a finite number or leave the field out",
        "`payload.confidence` is NaN",
    ),
    Reason(
        "unsafe_integer",
        "structure",
        "an integer is beyond 2^53-1 and changes in many readers",
        "send the id as text",
        "a 19-digit order id as a number",
    ),
    Reason(
        "invalid_text",
        "structure",
        "a text holds half a character that no encoder accepts",
        "send valid Unicode",
        "half of an emoji in `payload.note`",
    ),
    Reason("too_deep", "structure", "the payload is nested too deeply", "flatten it", "lists in lists, 1,000 deep"),
    Reason("too_large", "structure", "the payload is larger than the limit", "send less, or a reference", "2 MiB"),
    Reason(
        "cyclic_value",
        "structure",
        "a value contains itself",
        "send a tree",
        "`payload.found.child` is `payload.found`",
    ),
    Reason(
        "not_serialisable",
        "structure",
        "a value has no JSON form",
        "send plain data",
        "an open file in the payload",
    ),
    Reason(
        "unparsable_text",
        "structure",
        "the text is not JSON",
        "send one complete JSON object and nothing around it",
        "a sentence stands before the JSON",
    ),
    Reason(
        "truncated_payload",
        "structure",
        "the sender was cut off",
        "send the whole handoff again",
        "the finish reason is length, or the last brace is missing",
    ),
    _warn(
        "missing_handoff_id",
        "structure",
        "the handoff has no id of its own; one was made for it",
        "send a `handoff_id`",
        "`handoff_id` was left out",
    ),
)

_COMPLETENESS: Final = (
    Reason(
        "missing_result",
        "completeness",
        "the work is called completed and has no result",
        "send the result, or another status",
        "`status` is completed and `payload.result` is blank",
    ),
    Reason(
        "missing_error",
        "completeness",
        "the work is called failed and names no cause",
        "say in `payload.error` what failed",
        "`status` is failed and `payload.error` is blank",
    ),
    Reason(
        "empty_results",
        "completeness",
        "the list of results is empty where the receiver needs at least one",
        "search again, or send the status failed with its cause",
        "`payload.results` is []",
    ),
    Reason(
        "not_ready",
        "completeness",
        "the handoff lacks what makes it ready for the next step",
        "finish the step first",
        "a plan without steps",
    ),
    _final(
        "missing_operation_id",
        "completeness",
        "an irreversible action would start without an operation id",
        "open the operation first",
        "a refund without its operation",
        Severity.CRITICAL,
    ),
    Reason(
        "status_not_accepted",
        "completeness",
        "this receiver does not accept this status",
        "send failed handoffs to the failure path",
        "failed work handed to the next worker",
    ),
    _final(
        "missing_context",
        "completeness",
        "the contract needs the orchestrator's context and got none",
        "pass the context to the check",
        "a payment route inspected without its run",
    ),
)

_PLAUSIBILITY: Final = (
    Reason("negative_count", "plausibility", "a count is below zero", "correct the count", "`items_count` is -1"),
    Reason(
        "selected_not_in_candidates",
        "plausibility",
        "the selected id is none of the candidates",
        "select one of the candidates",
        "order 9 chosen from orders 1 to 3",
    ),
    Reason(
        "status_contradicts_result",
        "plausibility",
        "status and result say opposite things",
        "make them agree",
        "completed, and the result tells of a failure",
    ),
    Reason(
        "operation_unconfirmed",
        "plausibility",
        "an external operation is reported without its confirmation",
        "confirm the operation first",
        "a refund whose operation never finished",
    ),
    Reason(
        "foreign_reference",
        "plausibility",
        "a nested reference belongs to another task",
        "send only this task's items",
        "an item of task t-2 in task t-1",
    ),
    _flag(
        "merge_conflict",
        "plausibility",
        "merged parts contradict each other",
        "resolve the named conflict",
        "two amounts for one order",
    ),
    _flag(
        "low_confidence",
        "plausibility",
        "the sender's confidence is below the threshold",
        "look again, or ask a person",
        "confidence 0.2 with threshold 0.5",
    ),
)

_IDENTITY: Final = (
    _critical(
        "route_mismatch",
        "identity",
        "the envelope names another sender or receiver than the orchestrator",
        "address the handoff to the expected agent",
        "a handoff for billing given to reviewer",
    ),
    Reason(
        "unknown_agent",
        "identity",
        "nobody registered an agent of this name",
        "use a registered name, exactly",
        "`ExecutorAgent` instead of `executor`",
    ),
    _final(
        "unknown_route",
        "identity",
        "both agents are known and no route leads from one to the other",
        "register the route, or use one that exists",
        "executor to synthesizer without a review",
    ),
    _critical(
        "foreign_task",
        "identity",
        "the task id is not that of the active task",
        "send the handoff of the active task",
        "`task_id` is that of another customer",
    ),
    _critical(
        "foreign_run",
        "identity",
        "the run id is not that of the active run",
        "send the handoff of the active run",
        "a handoff kept from yesterday's run",
    ),
    Reason(
        "stale_context",
        "identity",
        "the handoff rests on an older context than the active one",
        "read the context again and redo the step",
        "`context_version` 3 where 5 is active",
    ),
    Reason(
        "stale_state",
        "identity",
        "the state is too old, or its base was replaced",
        "read the state again",
        "produced two hours ago where one hour is the limit",
    ),
    Reason(
        "orphaned_tool_call",
        "identity",
        "a tool call in the history has no result",
        "attach the call's real result",
        "call c1 without its answer",
    ),
    Reason(
        "orphaned_item",
        "identity",
        "an item in the history has lost its partner",
        "send both or neither",
        "a reasoning item without its message",
    ),
    _final(
        "consumed_handoff",
        "identity",
        "this handoff was already accepted",
        "make a new handoff",
        "the same id after its delivery",
    ),
    Reason(
        "duplicate_handoff",
        "identity",
        "the same handoff is being processed",
        "wait for the first one",
        "one id sent twice at once",
    ),
    _final(
        "loop_limit",
        "identity",
        "the task went round too often",
        "stop and ask a person",
        "26 hops in one task",
        Severity.CRITICAL,
    ),
)

_BOUNDARY_ADVICE: Final = {
    "artifact_changed": "send the artefact again, or say the revision that the receiver is to open",
    "seal_missing": "send the seal of `run.seal` beside the state",
    "seal_invalid": "seal the handoff again, with a key that the receiver knows",
    "migration_failed": "mend the migrations of the route, or send the version that its policy wants",
    "capture_failed": "keep what has no JSON form out of the state, and look after the folder of the snapshots",
}
"""What to do about codes for which the state itself is not to blame."""

_BOUNDARY: Final = tuple(
    _final(code, "boundary", meaning, _BOUNDARY_ADVICE.get(code, "mend the export or import function"), example)
    for code, meaning, example in (
        ("value_missing", "a required path was lost on the way", "`task.constraints` did not arrive"),
        ("value_added", "a path arrived that was never sent", "a default filled in by the importer"),
        ("value_changed", "a value differs on the far side", "an id rounded by one"),
        ("type_changed", "a value changed its type", "a number that became text"),
        ("order_changed", "a list arrived in another order", "steps sorted by name"),
        ("rest_changed", "something outside the required paths differs", "a lost note"),
        ("artifact_changed", "an artefact differs on the far side", "an older revision"),
        ("seal_missing", "the seal that this route requires is not there", "a message without its manifest"),
        ("seal_invalid", "the seal is forged, expired or already used", "a replayed message"),
        ("migration_failed", "the state could not be moved to the wanted version", "a future version"),
        ("capture_failed", "the state could not be captured", "a full disk"),
    )
)

_FLOW: Final = (
    _final(
        "repair_exhausted",
        "flow",
        "the last allowed repair was still not fit",
        "stop and ask a person",
        "a third answer with the same gap",
    ),
    _final(
        "route_stopped",
        "flow",
        "a handoff was stopped on this route for this task, and nothing may follow it there",
        "stop and ask a person",
        "a new plan after the last one could not be repaired",
    ),
    Reason(
        "approval_required",
        "flow",
        "a person must approve this handoff",
        "wait for the decision",
        "a refund above the limit",
        Reaction.HOLD,
        Severity.INFO,
    ),
    _flag(
        "critic_concern",
        "flow",
        "the critic asks for a second look",
        "a person looks later",
        "two agents disagree",
    ),
    _final(
        "check_failed",
        "flow",
        "a check of the watchdog or of the contract itself raised an error, so nothing was proven",
        "report it to the owner of the contract",
        "a rule that divides by zero",
        Severity.CRITICAL,
    ),
)

REASONS: Final[dict[str, Reason]] = {
    reason.code: reason for reason in (*_STRUCTURE, *_COMPLETENESS, *_PLAUSIBILITY, *_IDENTITY, *_BOUNDARY, *_FLOW)
}
"""Every built-in reason by its code. Source: DESIGN section 2; ADR 0001 (`check_failed`), 0006 (`route_stopped`)."""
