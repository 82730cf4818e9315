"""The page of all metrics, written from the catalogue."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from handoffwatch.catalogue import CATALOGUE, Label, Metric, Registered
from handoffwatch.ledger.collector import FED as FED_BY_LEDGER
from handoffwatch.recording.samples import FED as FED_BY_PROCESS

_HEAD: Final = """\
# Metrics

Rendered by `handoffwatch mixin render --docs` from the catalogue. Every metric of handoffwatch, its labels and when its
series first exist. A label in *italics* takes the names that were registered; a name nobody registered becomes `other`
and is counted in `handoffwatch_label_overflow_total`.

Born: **product**: every combination of the labels is there at 0 from the registration on. **declared**: those that the
registration can yield are. **first_use**: with the first event; no alert uses such a series.

Ledger series carry `ledger`, survive restarts, and are equal on every replica: take `max by (ledger, ...)` first, then
`rate` or `increase` over at least an hour, then `sum`.
"""
_TABLE: Final = "| metric | kind | labels | born | meaning |\n|---|---|---|---|---|\n"
_NOT_YET: Final = (
    "\n## Named, and not exposed yet\n"
    "Nothing feeds these so far, so they are not exposed: a zero would say that all is quiet.\n\n"
)


def metrics_page() -> str:
    """Return the page as Markdown."""
    fed = {metric.name for metric in (*FED_BY_PROCESS, *FED_BY_LEDGER)}
    process = [metric for metric in CATALOGUE if metric.name in fed and not metric.from_ledger]
    ledger = [metric for metric in CATALOGUE if metric.name in fed and metric.from_ledger]
    unfed = [metric for metric in CATALOGUE if metric.name not in fed]
    return (
        f"{_HEAD}\n## Series of a process\n{_rows(process)}\n## Series of the ledger\n{_rows(ledger)}"
        f"{_NOT_YET}{', '.join(f'`{metric.full_name}`' for metric in unfed)}\n"
    )


def _rows(metrics: Iterable[Metric]) -> str:
    rows = (
        f"| `{metric.full_name}` | {metric.kind} | {', '.join(map(_label, metric.labels))} | {metric.born} "
        f"| {metric.help.split(' Read from the ledger:')[0]} |\n"
        for metric in metrics
    )
    return _TABLE + "".join(rows)


def _label(label: Label) -> str:
    if isinstance(label.values, Registered):
        return f"*{label.name}*"
    shown = [value or '""' for value in label.values]
    return f"{label.name} ({', '.join(shown)})" if len(shown) <= 6 else f"{label.name} ({len(shown)} values)"
