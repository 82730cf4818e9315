"""Statements of the durable steps: built with SQLAlchemy, compiled once, run on the driver itself.

SQLAlchemy's way from a statement to the driver costs about ten times what SQLite needs for such a statement, and the
durable steps of one operation take more than a dozen of them while an agent waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.sql.compiler import SQLCompiler

Values = Mapping[str, object]


class Statement:
    """A statement that is run again and again; thread-safe.

    Every run gives values of the same names. They reach the driver as they are, so they must be of its own types.

    Attributes:
        clause: A select, insert, update or text whose bound parameters are named.
    """

    def __init__(self, clause: sa.ClauseElement) -> None:
        self.clause = clause
        self._compiled: dict[str, _Compiled] = {}

    def change(self, connection: sa.Connection, values: Values) -> int:
        """Run the statement in the connection's transaction and return how many rows it wrote."""
        cursor = self._run(connection, values)
        written: int = cursor.rowcount
        cursor.close()
        return written

    def rows(self, connection: sa.Connection, values: Values) -> list[Any]:
        """Run the statement in the connection's transaction and return its rows; a column is an attribute."""
        cursor = self._run(connection, values)
        names = [column[0] for column in cursor.description]
        found = [SimpleNamespace(**dict(zip(names, row, strict=True))) for row in cursor.fetchall()]
        cursor.close()
        return found

    def row(self, connection: sa.Connection, values: Values) -> Any | None:
        """Return the only row of the statement, or None when there is none."""
        found = self.rows(connection, values)
        return found[0] if found else None

    def _run(self, connection: sa.Connection, values: Values) -> Any:
        dialect = connection.dialect
        compiled = self._compiled.get(dialect.name)
        if compiled is None:
            clause = self.clause.compile(dialect=dialect, column_keys=list(values))
            assert isinstance(clause, SQLCompiler)
            compiled = self._compiled[dialect.name] = _Compiled(clause)
        cursor = connection.connection.cursor()
        cursor.execute(compiled.text, compiled.arguments(values))
        return cursor


def insert_new(table: sa.Table) -> sa.TextClause:
    """Return the insert of one row that writes nothing when its key is there; it takes a value for each column."""
    names = [column.name for column in table.columns]
    values = ", ".join(f":{name}" for name in names)
    return sa.text(f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({values}) ON CONFLICT DO NOTHING")


class _Compiled:
    """The text of a statement for one dialect, and the shape of its arguments."""

    def __init__(self, compiled: SQLCompiler) -> None:
        self.text = str(compiled)
        self._constants = {name: bound.value for bound, name in compiled.bind_names.items() if not bound.required}
        self._order = compiled.positiontup

    def arguments(self, values: Values) -> Any:
        """Return the arguments in the shape that the driver takes: in order, or by name."""
        if self._order is None:
            return {**self._constants, **values}
        return [values[name] if name in values else self._constants[name] for name in self._order]
