"""The request that goes back to the sender of a blocked handoff."""

from __future__ import annotations

from typing import Final

from handoffwatch.decision import Decision, Finding
from handoffwatch.vocabulary import Reaction

FINDINGS_SHOWN_MAX: Final = 10


def repair_text(decision: Decision, *, repairs_max: int, is_last: bool) -> str:
    """Return the request to the sender: each field, its rule and what would be right, and how many tries are left.

    Built anew for each attempt and bounded; it never quotes a value.
    """
    blocking = [finding for finding in decision.findings if finding.reaction is Reaction.BLOCK]
    lines = [f"The handoff {decision.route} was not accepted (attempt {decision.attempt} of {repairs_max + 1})."]
    lines += [_line(finding) for finding in blocking[:FINDINGS_SHOWN_MAX]]
    if len(blocking) > FINDINGS_SHOWN_MAX:
        lines.append(f"- and {len(blocking) - FINDINGS_SHOWN_MAX} more of the kind")
    lines.append("Send the whole handoff again with these fields mended. Do not repeat any tool call.")
    if is_last:
        lines.append("This is the last try.")
    return "\n".join(lines)


def _line(finding: Finding) -> str:
    return f"- {finding.code}: {finding.sentence}"
