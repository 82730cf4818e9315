"""The rows of what is registered, from which an exporter without the program knows the series that stand at 0."""

from __future__ import annotations

import sqlalchemy as sa

from handoffwatch.ledger.facts import RegisteredRows, Registration, RouteRegistration
from handoffwatch.ledger.schema import REGISTRATIONS, ROUTES, WORKFLOWS
from handoffwatch.ledger.statement import Statement, insert_new
from handoffwatch.vocabulary import Criticality, Mode

_OPERATIONS = sa.select(REGISTRATIONS)
_ROUTES = sa.select(ROUTES)
_WORKFLOWS = sa.select(WORKFLOWS.c.workflow)
_WRITE_OPERATION = Statement(
    sa.text(
        "INSERT INTO ledger_registrations (workflow, operation, criticality)"
        " VALUES (:workflow, :operation, :criticality)"
        " ON CONFLICT (workflow, operation) DO UPDATE SET criticality = excluded.criticality"
    )
)
_WRITE_ROUTE = Statement(
    sa.text(
        "INSERT INTO ledger_routes (route, schema_version, mode, criticality)"
        " VALUES (:route, :schema_version, :mode, :criticality)"
        " ON CONFLICT (route, schema_version, mode) DO UPDATE SET criticality = excluded.criticality"
    )
)
_WRITE_WORKFLOW = Statement(insert_new(WORKFLOWS))


def read_registered(connection: sa.Connection) -> RegisteredRows:
    """Return what the ledger holds."""
    operations = connection.execute(_OPERATIONS)
    routes = connection.execute(_ROUTES)
    return RegisteredRows(
        operations=frozenset(Registration(r.workflow, r.operation, Criticality(r.criticality)) for r in operations),
        routes=frozenset(
            RouteRegistration(r.route, r.schema_version, Mode(r.mode), Criticality(r.criticality)) for r in routes
        ),
        workflows=frozenset(connection.execute(_WORKFLOWS).scalars()),
    )


def write_registered(connection: sa.Connection, rows: RegisteredRows) -> None:
    """Write rows; what is there under another criticality gets this one. The order is that of every other writer."""
    for workflow in sorted(rows.workflows):
        _WRITE_WORKFLOW.change(connection, {"workflow": workflow})
    for operation in sorted(rows.operations, key=lambda row: (row.workflow, row.operation)):
        row = {"workflow": operation.workflow, "operation": operation.operation}
        _WRITE_OPERATION.change(connection, {**row, "criticality": operation.criticality})
    for route in sorted(rows.routes, key=lambda row: (row.route, row.schema_version, row.mode)):
        row = {"route": route.route, "schema_version": route.schema_version, "mode": route.mode}
        _WRITE_ROUTE.change(connection, {**row, "criticality": route.criticality})
