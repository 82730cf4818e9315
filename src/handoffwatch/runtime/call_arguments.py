"""The arguments of a call as digests: what tells one call from another, and the key that its service is given."""

from __future__ import annotations

import hashlib

from handoffwatch.values.canonical import canonical_form


def digest_of(args: object) -> str:
    """Return the digest of arguments, for this run alone; empty when they have no canonical form."""
    return canonical_form(args).digest


def key_of(run_id: str, operation: str, digest: str) -> str:
    """Return the idempotency key of a call: 32 hexadecimal digits, the same for every attempt of it.

    The run stands in it, so that nobody who sees the key can try what small arguments it was made of.

    Args:
        run_id: The run.
        operation: The kind of operation, else the tool: a key is for one end point.
        digest: That of the arguments.

    Source: DESIGN section 3 rule 1.
    """
    return hashlib.blake2b("\x00".join((run_id, operation, digest)).encode(), digest_size=16).hexdigest()
