"""The revisions of the ledger's tables, run by `handoffwatch.ledger.migrate`."""
