"""`handoffwatch case`: the cases that wait for a person, deciding about held handoffs, and resolving the rest."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from handoffwatch.cli.case_lines import CASE_COLUMNS, case_fields, case_row
from handoffwatch.cli.evidence import all_findings, findings_table, record_blocks
from handoffwatch.cli.stored import ConfigOption, JsonOption, NoteOption, case_text, completing, open_ledger
from handoffwatch.cli.terminal import (
    fields,
    print_blocks,
    print_json,
    printable,
    say,
    say_next,
    table,
    time_text,
    to_type,
)
from handoffwatch.errors import ConfigError
from handoffwatch.vocabulary import CaseKind, HandoffOutcome, Ruling

if TYPE_CHECKING:
    from handoffwatch.ledger import Case, Ledger

_DECIDED: Final = frozenset({CaseKind.HELD})
_RESOLVED: Final = frozenset(CaseKind) - _DECIDED
_STARTED: Final = frozenset({HandoffOutcome.DELIVERED, HandoffOutcome.RECEIVER_FAILED})

app = typer.Typer(help="List, show, decide and resolve the cases that wait for a person.", no_args_is_help=True)


def _id_of(kinds: frozenset[CaseKind]) -> Any:
    """Return the argument that names a case; the shell completes it from the open ones of these kinds."""
    return typer.Argument(
        metavar="ID",
        help="The case, as `case list` names it.",
        show_default=False,
        autocompletion=completing(
            lambda ledger: [(case.case_id, case_text(case)) for case in ledger.cases() if case.kind in kinds]
        ),
    )


_AnyId = Annotated[str, _id_of(frozenset(CaseKind))]
_HeldId = Annotated[str, _id_of(_DECIDED)]
_OtherId = Annotated[str, _id_of(_RESOLVED)]


@app.command("list")
def list_cases(
    kind: Annotated[CaseKind | None, typer.Option(help="Only cases of this kind.")] = None,
    show_all: Annotated[bool, typer.Option("--all", help="Resolved cases too.")] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the open cases, the oldest first."""
    with open_ledger(config) as ledger:
        label = ledger.snapshot().label
        found = ledger.cases(kind=kind, open_only=not show_all)
    if as_json:
        print_json({"ledger": label, "cases": [asdict(case) for case in found]})
        return
    print_blocks([table(CASE_COLUMNS, map(case_row, found))])
    still_open = sum(case.resolved_unix_s is None for case in found)
    say(f"ledger {label}: {still_open} open" + (f", {len(found) - still_open} resolved" if show_all else ""))
    if found:
        say_next(to_type("case show ID", config=config))


@app.command("show")
def show_case(case_id: _AnyId, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Show everything that is stored about one case: its facts, then what was found, sent and delivered."""
    with open_ledger(config) as ledger:
        case = _existing(ledger, case_id, config)
    if as_json:
        print_json(asdict(case))
        return
    print_blocks([fields(case_fields(case)), findings_table(all_findings(case)), *record_blocks(case)])
    if case.resolved_unix_s is None:
        say_next(*_ways_out(case, config))


@app.command("approve")
def approve_case(case_id: _HeldId, note: NoteOption, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Let a held handoff go on."""
    _rule(case_id, Ruling.APPROVED, note, config=config, as_json=as_json)


@app.command("reject")
def reject_case(case_id: _HeldId, note: NoteOption, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Stop a held handoff."""
    _rule(case_id, Ruling.REJECTED, note, config=config, as_json=as_json)


@app.command("resolve")
def resolve_case(case_id: _OtherId, note: NoteOption, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Resolve a case once what it shows has been put right; the alert on open cases ends with the last one."""
    with open_ledger(config) as ledger:
        case = _existing(ledger, case_id, config)
        if case.kind in _DECIDED:
            raise ConfigError(
                f"case {case_id}: kind: must not be held: a person decides whether its handoff goes on",
                hint="\n".join(_ways_out(case, config)),
            )
        is_new = ledger.resolve_case(case_id, note=note)
        case = _existing(ledger, case_id, config)
    if as_json:
        print_json(asdict(case))
        return
    said = "resolved" if is_new else f"was resolved at {time_text(case.resolved_unix_s)}, and keeps its note"
    typer.echo(f"case {case.case_id}: {said}")


def _rule(case_id: str, ruling: Ruling, note: str, *, config: str | None, as_json: bool) -> None:
    with open_ledger(config) as ledger:
        kind = _existing(ledger, case_id, config).kind
        if kind not in _DECIDED:
            hint = to_type(f"case list --kind {CaseKind.HELD}", config=config)
            raise ConfigError(f"case {case_id}: kind: must be held, got {kind}", hint=hint)
        is_new = ledger.rule_case(case_id, ruling, note)
        case = _existing(ledger, case_id, config)
        now_unix_s = ledger.clock.wall_s()
    if not is_new:
        raise ConfigError(
            f"case {case_id}: ruling: is final, got a case that was {case.ruling or 'resolved without one'} "
            f"at {time_text(case.resolved_unix_s)}",
            hint=to_type(f"case show {case_id}", config=config),
        )
    if as_json:
        print_json(asdict(case))
        return
    typer.echo(f"case {case_id}: {ruling}; {_what_follows(case, ruling, now_unix_s=now_unix_s)}")


def _what_follows(case: Case, ruling: Ruling, *, now_unix_s: float) -> str:
    """Return what a ruling leads to: the run may wait, or its time is over."""
    outcome = case.facts.get("outcome")
    is_approved = ruling is Ruling.APPROVED
    if outcome in _STARTED:
        return "its receiver was started before, when the time for a decision was over"
    if outcome == CaseKind.HELD and case.expires_unix_s is not None and now_unix_s < case.expires_unix_s:
        return f"the run that waits for it {'goes on' if is_approved else 'stops there'}"
    return f"no run waits for it: the same handoff is {'delivered' if is_approved else 'stopped'} when it is sent again"


def _ways_out(case: Case, config: str | None) -> list[str]:
    """Return what to type for a case that is open."""
    verbs = ("approve", "reject") if case.kind in _DECIDED else ("resolve",)
    return [to_type(f"case {verb} {case.case_id} --note TEXT", config=config) for verb in verbs]


def _existing(ledger: Ledger, case_id: str, config: str | None) -> Case:
    case = ledger.case(case_id) if case_id.isascii() else None
    if case is None:
        raise ConfigError(
            f"case {printable(case_id)}: id: must name a case of ledger {ledger.snapshot().label}",
            hint=to_type("case list --all", config=config),
        )
    return case
