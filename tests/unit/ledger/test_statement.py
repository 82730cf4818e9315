"""Statements that are compiled once: what they return, for each shape of argument."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.sql.compiler import SQLCompiler

from handoffwatch.ledger.statement import Statement, _Compiled

TABLE = sa.Table(
    "thing",
    sa.MetaData(),
    sa.Column("name", sa.String(10), primary_key=True),
    sa.Column("count", sa.Integer, nullable=False, default=7),
    sa.Column("note", sa.Text),
)
INSERT = Statement(sa.insert(TABLE))
FIND = Statement(sa.select(TABLE).where(TABLE.c.name == sa.bindparam("wanted")))
RAISE = Statement(sa.update(TABLE).where(TABLE.c.name == sa.bindparam("wanted")).values(count=TABLE.c.count + 3))


@pytest.fixture
def connection() -> Iterator[sa.Connection]:
    """A connection to an empty database in memory."""
    engine = sa.create_engine("sqlite://")
    TABLE.metadata.create_all(engine)
    with engine.begin() as opened:
        yield opened
    engine.dispose()


def test_statement_returns_named_rows_when_it_selects(connection: sa.Connection) -> None:
    """A row is read by the names of its columns."""
    assert INSERT.change(connection, {"name": "a", "count": 1}) == 1
    row = FIND.row(connection, {"wanted": "a"})
    assert row is not None
    assert (row.name, row.note) == ("a", None)
    assert FIND.rows(connection, {"wanted": "b"}) == []
    assert FIND.row(connection, {"wanted": "b"}) is None


def test_statement_says_how_many_rows_it_wrote_when_it_changes(connection: sa.Connection) -> None:
    """A constant of the statement needs no value."""
    INSERT.change(connection, {"name": "a", "count": 1})
    assert RAISE.change(connection, {"wanted": "a"}) == 1
    assert RAISE.change(connection, {"wanted": "b"}) == 0
    assert connection.execute(sa.select(TABLE.c.count)).scalars().all() == [4]


def test_statement_is_part_of_the_transaction_when_that_is_rolled_back() -> None:
    """What the driver ran is undone with the rest."""
    engine = sa.create_engine("sqlite://")
    TABLE.metadata.create_all(engine)
    with engine.connect() as connection:
        with connection.begin() as transaction:
            INSERT.change(connection, {"name": "a", "count": 1})
            transaction.rollback()
        assert connection.execute(sa.select(TABLE)).all() == []
    engine.dispose()


def test_statement_fails_when_a_value_is_missing(connection: sa.Connection) -> None:
    """Nothing is written as NULL by mistake."""
    with pytest.raises(KeyError):
        FIND.rows(connection, {})


def test_statement_gives_its_arguments_by_name_when_the_driver_wants_that() -> None:
    """PostgreSQL's driver takes a mapping, with the statement's constants in it."""
    compiled = RAISE.clause.compile(dialect=postgresql.psycopg.dialect())
    assert isinstance(compiled, SQLCompiler)
    assert _Compiled(compiled).arguments({"wanted": "a"}) == {"count_1": 3, "wanted": "a"}
