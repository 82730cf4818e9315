"""Evidence: what is kept of a handoff or an answer that went badly, redacted and bounded."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from handoffwatch.clock import Clock
from handoffwatch.decision import Decision
from handoffwatch.runtime.crossings import Crossing
from handoffwatch.values.json_text import canonical, decode
from handoffwatch.values.redaction import Redaction
from handoffwatch.values.secret_names import is_secret_name
from handoffwatch.values.secret_shapes import REDACTED, without_secrets
from handoffwatch.vocabulary import (
    CaseKind,
    Criticality,
    HandoffOutcome,
    Keep,
    Mode,
    ReviewSelection,
    Verdict,
    ViolationKind,
)

if TYPE_CHECKING:
    from handoffwatch.ledger.facts import Evidence
    from handoffwatch.runtime.call import Call
    from handoffwatch.runtime.run import Run

LEFT_OUT: Final = "[left out: the evidence would be too large]"
NO_JSON: Final = "[left out: it is no JSON, so that no path of handoffs.redact leads into it]"
KEY_LEFT_OUT: Final = "[left out: the secret among the arguments could be tried by it]"
PATHS_MAX: Final = 20
WORD_CHARACTERS_MAX: Final = 1_000
"""The longest id, name or path that is stored."""

_VALUE_BYTES_MIN: Final = 2
"""The fewest bytes of JSON text that one value and what parts it from the next take."""

_OF_ONE_ATTEMPT: Final = frozenset({"handoff_id", "run_id", "attempt", "produced_at"})
"""Fields of a handoff that differ when the same is sent again; its id counts only when it came with one."""

_WITHOUT_CASE: Final = frozenset({"route_stopped", "duplicate_handoff"})
"""A block for these alone says nothing new: the handoff before it has the case."""


class _Redactions(NamedTuple):
    """What is left out of the handoffs of one route.

    Attributes:
        kept: For what is kept of them, which is bounded.
        whole: For what is digested of them.
        has_paths: Whether a path leads into them, not a name alone.
    """

    kept: Redaction
    whole: Redaction
    has_paths: bool


class EvidenceKeeper:
    """Makes evidence for one Watch. Thread-safe.

    Args:
        redact: Paths and names that are left out, beside the known ones.
        redact_of: Gives those that are left out on a route beside these; an empty name is every route not registered.
        bytes_max: The largest record, as JSON text.
        payload_bytes_max: The largest handoff that is judged, as JSON text.
        keep_sample: The share of good handoffs that a sampling route keeps.
        review_sample: The share of blocks that is drawn for review.
        clock: Gives chance, and times what was kept.
    """

    def __init__(
        self,
        redact: Collection[str],
        *,
        redact_of: Callable[[str], Collection[str]],
        bytes_max: int,
        payload_bytes_max: int,
        keep_sample: float,
        review_sample: float,
        clock: Clock,
    ) -> None:
        self._redact = tuple(redact)
        self._redact_of = redact_of
        self._by_route: dict[str, _Redactions] = {}
        self._bytes_max = bytes_max
        self._payload_bytes_max = payload_bytes_max
        self._keep_sample = keep_sample
        self._review_sample = review_sample
        self._clock = clock

    def note_attempt(self, crossing: Crossing, decision: Decision, sent: object, extra: Mapping[str, object]) -> None:
        """Keep one attempt of a handoff, when it was not allowed or its route keeps the good ones too."""
        is_good = decision.verdict is Verdict.ALLOWED or decision.verdict is Verdict.WARNED
        if is_good and not crossing.tried and not extra and not crossing.subject and not self._keeps(crossing):
            return
        if not is_good and crossing.attempts == 1 and set(decision.reasons) <= _WITHOUT_CASE:
            return
        if not crossing.tried:
            crossing.kept_since_s = self._clock.monotonic_s()
        kept = {
            "attempt": decision.attempt,
            "sent": self._copy_sent(sent, crossing),
            "decision": _written(decision),
        }
        crossing.tried = (*crossing.tried, {**kept, **self.copy(extra, crossing)})

    def subject(self, crossing: Crossing, handed: object) -> str:
        """Return what a handoff is known by when a person is asked about it, in every process.

        An approval is for all that the receiver would get, and for its id on this route of its task. Secrets are left
        out, because the digest of a small secret is the secret; whoever approves has not seen them either.

        Args:
            crossing: The handoff.
            handed: What its receiver would get.
        """
        said = self.content(handed, crossing)
        if isinstance(said, dict):
            said = {name: value for name, value in said.items() if name not in _OF_ONE_ATTEMPT}
        parts = [crossing.task, crossing.route, crossing.sent_id, said]
        return hashlib.blake2b(canonical(parts), digest_size=16).hexdigest()

    def content(self, handed: object, crossing: Crossing) -> Any:
        """Return what may be digested of a handoff: all but its secrets."""
        return _copied(self._redactions(crossing).whole, handed)

    def of_handoff(
        self,
        crossing: Crossing,
        run: Run,
        outcome: HandoffOutcome | None,
        *,
        delivered: object = None,
        subject: str = "",
        expires_unix_s: float | None = None,
    ) -> Evidence | None:
        """Return the evidence of a handoff that has ended or is held; None when nothing was kept of it.

        Args:
            crossing: The handoff.
            run: Its run.
            outcome: How it ended; None when it is held.
            delivered: What the receiver got.
            subject: What a person is asked about; empty takes what they were asked about, if they were.
            expires_unix_s: When a held handoff stops waiting.
        """
        from handoffwatch.ledger.facts import Evidence

        if not crossing.tried:
            return None
        last: Mapping[str, Any] = crossing.tried[-1]["decision"]
        verdicts = {kept["decision"]["verdict"] for kept in crossing.tried}
        is_blocked = Verdict.BLOCKED in verdicts
        was_held = outcome is None or ((crossing.subject != "" or Verdict.HELD in verdicts) and not is_blocked)
        kind = CaseKind.HELD if was_held else CaseKind.BLOCKED if is_blocked else CaseKind.ALLOWED
        if crossing.is_quarantined and is_blocked:
            kind = CaseKind.QUARANTINED
        violation = ViolationKind.BLOCKED if kind is CaseKind.BLOCKED else None
        if crossing.diverged:
            violation = ViolationKind.DIVERGENCE
        route = crossing.registered
        criticality = Criticality.CRITICAL if route is None else route.criticality
        worst = next(
            (kept["decision"] for kept in reversed(crossing.tried) if kept["decision"]["verdict"] == "blocked"), last
        )
        facts = {
            "handoff_id": shown(crossing.handoff_id),
            "task_id": shown(crossing.task),
            "source": shown(crossing.key[0]),
            "target": shown(crossing.key[1]),
            "route": shown(crossing.route),
            "reasons": worst["reasons"],
            "paths": worst["paths"][:PATHS_MAX],
            "stage": worst["findings"][0]["stage"] if worst["findings"] else "",
            "attempts": crossing.attempts,
            "elapsed_s": max(0.0, self._clock.monotonic_s() - crossing.kept_since_s),
            "outcome": str(outcome or "held"),
            "trace_id": run.trace_id(),
        }
        if was_held:
            facts["approval"] = "approval_required" in last["reasons"]
        stopped = outcome in (HandoffOutcome.STOPPED, HandoffOutcome.DIVERTED)
        record = {"attempts": list(crossing.tried), "delivered": self.copy(delivered, crossing)}
        return Evidence(
            kind=kind,
            subject=(was_held and (subject or crossing.subject)) or uuid.uuid4().hex,
            run_id=run.run_id,
            workflow=run.workflow.name,
            criticality=criticality,
            route=last["route"],
            schema_version=last["schema_version"],
            mode=Mode(last["mode"]),
            facts=facts,
            record=self._fitting(record),
            is_open=outcome is None
            or crossing.is_quarantined
            or (is_blocked and stopped and criticality is Criticality.CRITICAL),
            selection=self._drawn(criticality) if kind is CaseKind.BLOCKED else None,
            violation=violation,
            expires_unix_s=expires_unix_s,
        )

    def of_call(self, call: Call, run: Run) -> Evidence:
        """Return the evidence of a call of which nobody knows whether it happened: what a person needs to find out."""
        from handoffwatch.ledger.facts import Evidence

        kind = run.watch.registrations.operations.get(call.tool.operation or "")
        named = call.arguments.named if call.arguments is not None else None
        arguments = self.copy(named) if call.kept is None else call.kept
        has_secret = REDACTED in json.dumps(arguments)
        return Evidence(
            kind=CaseKind.AMBIGUOUS,
            subject=call.case_subject,
            run_id=run.run_id,
            workflow=run.workflow.name,
            criticality=Criticality.ROUTINE if kind is None else kind.criticality,
            route="",
            schema_version="",
            mode=None,
            facts={
                **call.facts(),
                "idempotency_key": KEY_LEFT_OUT if has_secret else call.idempotency_key,
                "status": "" if call.unknown is None else call.unknown.status,
                "late": call.late or "",
                "task_id": shown(run.task_id or ""),
                "trace_id": run.trace_id(),
            },
            record=self._fitting({"arguments": arguments}),
            is_open=True,
            selection=None,
            violation=ViolationKind.TOOL,
        )

    def of_refusal(self, run: Run, reason: str, text: str) -> Evidence:
        """Return the evidence of an answer that the guard refused."""
        from handoffwatch.ledger.facts import Evidence

        return Evidence(
            kind=CaseKind.BLOCKED,
            subject=uuid.uuid4().hex,
            run_id=run.run_id,
            workflow=run.workflow.name,
            criticality=Criticality.ROUTINE,
            route="",
            schema_version="",
            mode=run.workflow.guard,
            facts={"check": "guard", "reasons": [reason], "paths": ["answer"], "trace_id": run.trace_id()},
            record=self._fitting({"answer": self._redactions(None).kept.redacted_text(text)}),
            is_open=False,
            selection=self._drawn(Criticality.ROUTINE),
            violation=ViolationKind.GUARD,
        )

    def _keeps(self, crossing: Crossing) -> bool:
        keep = Keep.BLOCKED if crossing.registered is None else crossing.registered.conduct.keep
        if crossing.is_drawn is None:
            crossing.is_drawn = keep is Keep.ALL or (keep is Keep.SAMPLED and self._clock.random() < self._keep_sample)
        return crossing.is_drawn

    def _drawn(self, criticality: Criticality) -> ReviewSelection | None:
        """Draw a block for review: all alike at random, so that these can tell the share of the false ones."""
        if self._clock.random() < self._review_sample:
            return ReviewSelection.RANDOM
        return ReviewSelection.FORCED if criticality is Criticality.CRITICAL else None

    def copy(self, value: object, crossing: Crossing | None = None) -> Any:
        """Return what may be kept of a value, as the route of a handoff has it."""
        return _copied(self._redactions(crossing).kept, value)

    def _redactions(self, crossing: Crossing | None) -> _Redactions:
        route = "" if crossing is None or crossing.registered is None else crossing.registered.name
        known = self._by_route.get(route)
        if known is None:
            paths = (*self._redact, *self._redact_of(route))
            known = self._by_route[route] = _Redactions(
                _bounded(paths, self._bytes_max),
                _bounded(paths, self._payload_bytes_max),
                any("." in path for path in paths),
            )
        return known

    def _copy_sent(self, sent: object, crossing: Crossing) -> Any:
        """Return the copy of a handoff as it came; a mark for a text into which paths may lead and cannot."""
        has_paths = self._redactions(crossing).has_paths
        if has_paths and isinstance(sent, str | bytes | bytearray) and not self._is_json(sent):
            return NO_JSON
        return self.copy(sent, crossing)

    def _is_json(self, text: str | bytes | bytearray) -> bool:
        """Return whether redaction reads a text as JSON."""
        try:
            decode(text if isinstance(text, str) else bytes(text))
        except ValueError:
            return False
        return len(text) <= self._bytes_max

    def _fitting(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return a record that is small enough, in which what is left out is named as left out.

        What was sent goes first, then what was delivered or answered, then what was said of the attempts, then whole
        attempts but the last: of each kind the oldest first.
        """
        attempts = [dict(kept) for kept in record.get("attempts", ())]
        fitting = {**record, "attempts": attempts} if attempts else dict(record)
        over = _size(fitting) - self._bytes_max
        places = [(kept, "sent") for kept in attempts]
        places += [(fitting, name) for name in ("delivered", "answer", "arguments")]
        places += [(kept, "critic") for kept in attempts] + [(kept, "decision") for kept in attempts]
        for holder, name in places:
            if over <= 0:
                break
            saved = _size(holder.get(name)) - _size(LEFT_OUT)
            if saved > 0:
                holder[name] = LEFT_OUT
                over -= saved
        while over > 0 and len(attempts) > 1:
            over -= _size(attempts.pop(0))
        return fitting


def _bounded(paths: Iterable[str], bytes_max: int) -> Redaction:
    return Redaction(paths, text_characters_max=bytes_max, values_max=bytes_max // _VALUE_BYTES_MIN)


def _copied(redaction: Redaction, value: object) -> Any:
    if isinstance(value, bytes | bytearray):
        value = bytes(value[: redaction.text_characters_max]).decode("utf-8", "replace")
    return redaction.redacted_text(value) if isinstance(value, str) else redaction.redacted(value)


def _size(value: object) -> int:
    """Return how many bytes the ledger stores for a value."""
    return len(json.dumps(value))


def _written(decision: Decision) -> dict[str, Any]:
    """Return a decision as it is stored: without the handoff, which is stored redacted beside it."""
    fields = decision._asdict()
    del fields["normalized_payload"]
    words = {path: shown(path) for path in (*decision.paths, *decision.coerced)}
    findings = [
        item._asdict() | {"path": words[item.path], "sentence": item.sentence.replace(item.path, words[item.path])}
        for item in decision.findings
    ]
    return fields | {
        "handoff_id": shown(decision.handoff_id),
        "findings": findings,
        "paths": [words[path] for path in decision.paths],
        "coerced": [words[path] for path in decision.coerced],
    }


def shown(word: str) -> str:
    """Return an id, a name or a path as it may be stored: a sender chose it, so that it may be long or a secret."""
    return without_secrets(word[:WORD_CHARACTERS_MAX], is_secret=is_secret_name)
