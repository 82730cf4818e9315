"""`handoffwatch review`: blocks that were drawn for a person's verdict, and how often the checks are wrong."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Final

import typer

from handoffwatch.cli.case_lines import case_fields
from handoffwatch.cli.evidence import all_findings, blocked_attempt, findings_table, named_blocks, record_blocks
from handoffwatch.cli.stored import ConfigOption, JsonOption, case_text, completing, note_text, open_ledger
from handoffwatch.cli.terminal import (
    NOTHING,
    fields,
    listed,
    print_blocks,
    print_json,
    printable,
    say,
    say_next,
    section,
    table,
    time_text,
    to_type,
)
from handoffwatch.errors import ConfigError
from handoffwatch.vocabulary import ReviewVerdict

if TYPE_CHECKING:
    from handoffwatch.ledger import FalseBlockShare, Ledger, Review

LISTED_MAX: Final = 1_000

_COLUMNS: Final = (
    "CASE", "SELECTION", "DRAWN", "VERDICT", "WORKFLOW", "ROUTE", "VERSION", "MODE", "REASONS", "PATHS"
)  # fmt: skip
_SHARE_COLUMNS: Final = ("ROUTE", "VERSION", "MODE", "REVIEWED", "FALSE", "SHARE", "95 % INTERVAL")

app = typer.Typer(help="List, show and label blocks that were drawn for review.", no_args_is_help=True)

_Id = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="The case, as `review list` names it.",
        show_default=False,
        autocompletion=completing(
            lambda ledger: [
                (review.case.case_id, case_text(review.case)) for review in ledger.reviews(limit=LISTED_MAX)
            ]
        ),
    ),
]


@app.command("list")
def list_reviews(
    show_all: Annotated[bool, typer.Option("--all", help="Those that have a verdict too.")] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the blocks that wait for a verdict, the first drawn first."""
    with open_ledger(config) as ledger:
        label = ledger.snapshot().label
        found = ledger.reviews(open_only=not show_all, limit=LISTED_MAX)
    if as_json:
        print_json({"ledger": label, "reviews": [asdict(review) for review in found]})
        return
    print_blocks([table(_COLUMNS, map(_row, found))])
    still_open = sum(review.verdict is None for review in found)
    reviewed = f", {len(found) - still_open} reviewed" if show_all else ""
    cut = f"; the first {LISTED_MAX} are shown" if len(found) == LISTED_MAX else ""
    say(f"ledger {label}: {still_open} to review{reviewed}{cut}")
    if found:
        say_next(to_type("review show ID", config=config))


@app.command("show")
def show_review(case_id: _Id, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Show what was blocked: the named fields and what stood in them first, then all the rest."""
    with open_ledger(config) as ledger:
        review = _existing(ledger, case_id, config)
    if as_json:
        print_json(asdict(review))
        return
    earlier = [found for found in all_findings(review.case) if found.attempt not in (NOTHING, _judged(review))]
    print_blocks(
        [
            *named_blocks(review.case),
            fields(_review_fields(review) | case_fields(review.case)),
            section("found in other attempts", findings_table(earlier)) if earlier else [],
            *record_blocks(review.case),
        ]
    )
    if review.verdict is None:
        say_next(*(to_type(f"review label {case_id} {verdict}", config=config) for verdict in ReviewVerdict))


@app.command("label")
def label_review(
    case_id: _Id,
    verdict: Annotated[
        ReviewVerdict,
        typer.Argument(
            metavar="VERDICT",
            help="right_block: the receiver could not have used it; false_block: it was good enough.",
        ),
    ],
    note: Annotated[str | None, typer.Option(parser=note_text, metavar="TEXT", help="Why.", show_default=False)] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give a verdict on a block: was the check right? It is final."""
    with open_ledger(config) as ledger:
        _existing(ledger, case_id, config)
        is_new = ledger.label_review(case_id, verdict, note or "")
        review = _existing(ledger, case_id, config)
    if not is_new:
        raise ConfigError(
            f"review {case_id}: verdict: is final, got a review that was labelled {review.verdict} "
            f"at {time_text(review.reviewed_unix_s)}",
            hint=to_type(f"review show {case_id}", config=config),
        )
    if as_json:
        print_json(asdict(review))
        return
    typer.echo(f"review {case_id}: {verdict}")
    say_next(to_type("review list", config=config))


@app.command("share")
def print_shares(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Print how often the blocks of each contract are wrong, by the verdicts on those that chance drew."""
    with open_ledger(config) as ledger:
        label = ledger.snapshot().label
        shares = ledger.false_block_shares()
    if as_json:
        said = {"ledger": label, "selection": "random", "interval": "wilson_95"}
        print_json(said | {"shares": [asdict(share) for share in shares]})
        return
    print_blocks([table(_SHARE_COLUMNS, map(_share_row, shares))])
    say(f"ledger {label}: false blocks among those drawn at random; forced reviews are left out")
    say("The true share lies in the interval (Wilson, 95 %); few reviews leave it wide.")
    say_next(to_type("review list", config=config))


def _existing(ledger: Ledger, case_id: str, config: str | None) -> Review:
    review = ledger.review(case_id) if case_id.isascii() else None
    if review is None:
        raise ConfigError(
            f"review {printable(case_id)}: id: must name a case of ledger {ledger.snapshot().label} that was drawn",
            hint=to_type("review list --all", config=config),
        )
    return review


def _judged(review: Review) -> str:
    """Return the number of the attempt whose findings stand first."""
    return str(blocked_attempt(review.case).get("attempt", NOTHING))


def _review_fields(review: Review) -> dict[str, object]:
    return {
        "selection": review.selection,
        "drawn": time_text(review.drawn_unix_s),
        "verdict": review.verdict or NOTHING,
        "reviewed": time_text(review.reviewed_unix_s),
        "review note": review.note or NOTHING,
    }


def _row(review: Review) -> tuple[str, ...]:
    case = review.case
    return (
        case.case_id,
        review.selection,
        time_text(review.drawn_unix_s),
        review.verdict or NOTHING,
        printable(case.workflow or NOTHING),
        printable(case.facts.get("route") or case.route or NOTHING),
        printable(case.schema_version or NOTHING),
        case.mode or NOTHING,
        listed(case.facts.get("reasons", NOTHING)),
        listed(case.facts.get("paths", NOTHING)),
    )


def _share_row(share: FalseBlockShare) -> tuple[str, ...]:
    return (
        printable(share.route),
        printable(share.schema_version),
        share.mode,
        str(share.reviewed),
        str(share.false_blocks),
        *(
            (NOTHING, NOTHING)
            if share.share is None
            else (f"{share.share:.1%}", f"{share.low:.1%} to {share.high:.1%}")
        ),
    )
