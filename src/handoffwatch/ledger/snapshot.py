"""The numbers of the ledger, read in one transaction. The cost follows what is open, not what was settled."""

from __future__ import annotations

import sqlalchemy as sa

from handoffwatch import catalogue
from handoffwatch.ledger.facts import IdentityViolation, OpenGroup, Snapshot
from handoffwatch.ledger.registered import read_registered
from handoffwatch.ledger.schema import CASES, COUNTERS, META, OPERATIONS, RUNS, TIMESTAMPS
from handoffwatch.ledger.tally import read_labels
from handoffwatch.vocabulary import Claimed

_O = OPERATIONS.c
_META = sa.select(META.c.ledger_id)
_COUNTERS = sa.select(COUNTERS.c.metric, COUNTERS.c.labels, sa.func.sum(COUNTERS.c.value).label("value")).group_by(
    COUNTERS.c.metric, COUNTERS.c.labels
)
_TIMESTAMPS = sa.select(TIMESTAMPS)
_CLAIMS = (
    sa.select(RUNS.c.workflow, RUNS.c.open_claimed, sa.func.count().label("n"))
    .where(RUNS.c.open_claimed.is_not(None))
    .group_by(RUNS.c.workflow, RUNS.c.open_claimed)
)
_EFFECTS = (
    sa.select(
        _O.kind,
        _O.effect,
        sa.func.count().label("n"),
        sa.func.min(_O.opened_unix_s).label("oldest"),
        sa.func.sum(sa.case((_O.deadline_unix_s < sa.bindparam("now"), 1), else_=0)).label("overdue"),
    )
    .where(_O.closed_unix_s.is_(None))
    .group_by(_O.kind, _O.effect)
)
_CASES = (
    sa.select(
        CASES.c.kind,
        CASES.c.criticality,
        sa.func.count().label("n"),
        sa.func.min(CASES.c.opened_unix_s).label("oldest"),
    )
    .where(CASES.c.resolved_unix_s.is_(None))
    .group_by(CASES.c.kind, CASES.c.criticality)
)
_NEW_ID = (
    sa.update(META).where(META.c.ledger_id == sa.bindparam("old")).values(ledger_id=sa.bindparam("new"))
)  # fmt: skip


def read_snapshot(connection: sa.Connection, *, now_unix_s: float) -> Snapshot:
    """Return the ledger's numbers as they are at the transaction's beginning."""
    registered = read_registered(connection)
    return Snapshot(
        ledger_id=connection.execute(_META).scalar_one(),
        registrations=tuple(sorted(registered.operations, key=lambda row: (row.workflow, row.operation))),
        routes=tuple(sorted(registered.routes, key=lambda row: (row.route, row.schema_version, row.mode))),
        workflows=tuple(sorted(registered.workflows)),
        counters={(row.metric, read_labels(row.labels)): int(row.value) for row in connection.execute(_COUNTERS)},
        timestamps={(row.metric, read_labels(row.labels)): row.unix_s for row in connection.execute(_TIMESTAMPS)},
        claims={(row.workflow, row.open_claimed): row.n for row in connection.execute(_CLAIMS)},
        effects={
            (row.kind, row.effect): OpenGroup(row.n, row.oldest, int(row.overdue))
            for row in connection.execute(_EFFECTS, {"now": now_unix_s})
        },
        cases={(row.kind, row.criticality): OpenGroup(row.n, row.oldest) for row in connection.execute(_CASES)},
    )


def renew_id(connection: sa.Connection, *, old: str, new: str) -> None:
    """Replace the ledger's id, unless another process has done so."""
    connection.execute(_NEW_ID, {"old": old, "new": new})


def identity_violations(snapshot: Snapshot) -> list[IdentityViolation]:
    """Return where the claims of done and partial are not the sum of the settled and the open ones.

    Source: DESIGN section 6, the identity.
    """
    violations = []
    for workflow in sorted({registration.workflow for registration in snapshot.registrations}):
        for claimed in (Claimed.DONE, Claimed.PARTIAL):
            own = (workflow, claimed)
            claims = snapshot.counters.get((catalogue.LEDGER_CLAIMS.name, own), 0)
            settled = sum(
                value
                for (metric, labels), value in snapshot.counters.items()
                if metric == catalogue.LEDGER_CLAIMS_SETTLED.name and labels[:2] == own
            )
            still_open = snapshot.claims.get(own, 0)
            if claims != settled + still_open:
                violations.append(IdentityViolation(workflow, claimed, claims, settled, still_open))
    return violations
