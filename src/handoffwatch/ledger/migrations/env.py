"""What Alembic runs: the revisions, inside the transaction that `handoffwatch.ledger.migrate` has begun."""

from alembic import context

from handoffwatch.ledger.schema import METADATA, VERSION_TABLE

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    version_table=VERSION_TABLE,
    transaction_per_migration=False,
)
with context.begin_transaction():
    context.run_migrations()
