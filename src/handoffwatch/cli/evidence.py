"""How the stored evidence of a case is read and printed: what was found, what was sent, what was delivered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from handoffwatch.cli.terminal import NOTHING, json_lines, printable, section, table
from handoffwatch.values.json_text import decode
from handoffwatch.values.paths import places
from handoffwatch.vocabulary import Check, GuardReason, Reaction, Verdict

if TYPE_CHECKING:
    from handoffwatch.ledger import Case

_VALUE_LINES_MAX: Final = 20
_VALUE_CHARACTERS_MAX: Final = 400
_OWN: Final = frozenset({"attempt", "sent", "decision"})
_GUARD_SENTENCES: Final[Mapping[str, str]] = {
    GuardReason.NO_TOOL_SUCCESS: "a tool call of the run must succeed before it may answer",
    GuardReason.AMBIGUOUS_OPEN: "no call of the run may be left of which nobody knows whether it happened",
    GuardReason.TOOL_DISCOVERY_FAILED: "the tools of the run must be known before it may answer",
}


class Found(NamedTuple):
    """One finding as it is shown; `attempt` is `-` for an answer, which is checked once."""

    attempt: str
    path: str
    code: str
    reaction: str
    sentence: str


def attempts_of(case: Case) -> list[Mapping[str, Any]]:
    """Return the attempts that a case keeps, in their order; none when it keeps no record of any."""
    return _mappings((case.record or {}).get("attempts"))


def blocked_attempt(case: Case) -> Mapping[str, Any]:
    """Return the last attempt that was blocked, else the last one; nothing when there is none."""
    attempts = attempts_of(case)
    blocked = [each for each in attempts if _decision(each).get("verdict") == Verdict.BLOCKED]
    return next(reversed(blocked or attempts), {})


def findings_of(attempt: Mapping[str, Any]) -> list[Found]:
    """Return what was found in an attempt."""
    number = str(attempt.get("attempt", NOTHING))
    found = _mappings(_decision(attempt).get("findings"))
    return [Found(number, *(str(each.get(name, NOTHING)) for name in Found._fields[1:])) for each in found]


def refusal_of(case: Case) -> list[Found]:
    """Return why the guard refused an answer, as findings; none for a case of anything else."""
    reasons = case.facts.get("reasons") if case.facts.get("check") == Check.GUARD else None
    codes = map(str, reasons) if isinstance(reasons, list) else ()
    return [Found(NOTHING, "answer", code, Reaction.BLOCK, _GUARD_SENTENCES.get(code, NOTHING)) for code in codes]


def all_findings(case: Case) -> list[Found]:
    """Return what was found in all attempts of a handoff, or in an answer."""
    return refusal_of(case) + [found for attempt in attempts_of(case) for found in findings_of(attempt)]


def findings_table(findings: Iterable[Found]) -> list[str]:
    """Return findings as a table."""
    rows = [tuple(map(printable, found)) for found in findings]
    return table(("ATTEMPT", "PATH", "CODE", "REACTION", "WHAT IS ASKED FOR"), rows)


def record_blocks(case: Case) -> list[list[str]]:
    """Return what is kept of a case: each attempt with what was sent and said, then what was delivered."""
    blocks = []
    for attempt in attempts_of(case):
        name = f"attempt {printable(attempt.get('attempt', NOTHING))}"
        verdict = printable(_decision(attempt).get("verdict", NOTHING))
        blocks.append(section(f"sent in {name}, {verdict}", _lines(_as_data(attempt.get("sent")))))
        blocks += [section(f"{printable(k)} of {name}", _lines(v)) for k, v in attempt.items() if k not in _OWN]
    rest = {name: value for name, value in (case.record or {}).items() if name != "attempts" and value is not None}
    return blocks + [section(printable(name), _lines(value)) for name, value in rest.items()]


def named_blocks(case: Case) -> list[list[str]]:
    """Return each finding of the last block with what stood at its path: what a person judges the check by."""
    attempt = blocked_attempt(case)
    blocks = [_named(found, _value_lines(attempt, found.path)) for found in findings_of(attempt)]
    answer = (case.record or {}).get("answer")
    return blocks + [_named(found, _bounded(_lines(answer))) for found in refusal_of(case)]


def _named(found: Found, value: Sequence[str]) -> list[str]:
    first, *more = value or [""]
    lines = [f"found  {first}", *(f"       {line}" for line in more)]
    code = f"code   {printable(found.code)}, {printable(found.reaction)}"
    return section(printable(found.path), [*lines, code, f"rule   {printable(found.sentence)}"])


def _value_lines(attempt: Mapping[str, Any], path: str) -> list[str]:
    """Return what an attempt holds at the path of a finding, bounded, or words that say why there is none.

    What redaction left out hides what stood below it; then its mark is returned, and where it stands.
    """
    sent = _as_data(attempt.get("sent"))
    if path == "$":
        return ["(the whole handoff)"]
    if not isinstance(sent, Mapping | list):
        return ["(what was sent cannot be read)"]
    parts = path.split(".")
    for end in range(len(parts), 0, -1):
        above = ".".join(parts[:end])
        found = [value for _, value in places(sent, above)][:1]
        if found and end == len(parts):
            return _bounded(json_lines(found[0]))
        if found and not isinstance(found[0], Mapping | list):
            return [*_bounded(json_lines(found[0])), f"(that is all there is at {printable(above)})"]
        if found:
            break
    return ["(nothing is there)"]


def _decision(attempt: Mapping[str, Any]) -> Mapping[str, Any]:
    decision = attempt.get("decision")
    return decision if isinstance(decision, Mapping) else {}


def _mappings(value: object) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def _as_data(sent: object) -> object:
    """Return what was sent as data: text of a model is read as the watchdog read it."""
    if not isinstance(sent, str):
        return sent
    try:
        return decode(sent)
    except ValueError:
        return sent


def _lines(value: object) -> list[str]:
    """Return a kept value for a person: text as its lines, all else as indented JSON."""
    return [printable(line) for line in value.splitlines()] if isinstance(value, str) else json_lines(value)


def _bounded(lines: list[str]) -> list[str]:
    shown = [
        line if len(line) <= _VALUE_CHARACTERS_MAX else f"{line[:_VALUE_CHARACTERS_MAX]} …"
        for line in lines[:_VALUE_LINES_MAX]
    ]
    return [*shown, "…"] if len(lines) > _VALUE_LINES_MAX else shown
