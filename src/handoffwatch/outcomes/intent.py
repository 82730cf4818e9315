"""What a run wants to happen, written down before the call that makes it happen."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeGuard
from uuid import UUID

from handoffwatch.errors import RegistrationError
from handoffwatch.outcomes.kind import OperationKind

Scalar = str | int | float | bool | None
"""What an intent's value may be: it is stored as JSON and compared with the stored record."""

_KEY_LENGTH_MAX = 200


@dataclass(frozen=True, slots=True)
class Intent:
    """One intended effect of one run.

    Attributes:
        run_id: The run that wants it.
        workflow: The run's workflow.
        kind: The operation's kind, by name.
        key: The business key as text; with run and kind it identifies the operation.
        values: The key and the compared fields; a field that nobody stated is left out.
        traceparent: The run's span as W3C Trace Context writes it, so that read-backs can be linked to it; empty when
            the run has none.
    """

    run_id: str
    workflow: str
    kind: str
    key: str
    values: Mapping[str, Scalar] = field(default_factory=dict)
    traceparent: str = ""


def plain(value: object) -> object:
    """Return what a value says, however a program holds it: an enumeration's value, an id's text, else the value.

    Arguments, claims and stored records all go through it, so that an id which one side holds as a UUID and the other
    as text is the same id.
    """
    while isinstance(value, Enum):
        value = value.value
    return str(value) if isinstance(value, UUID) else value


def is_scalar(value: object) -> TypeGuard[Scalar]:
    """Return whether a plain value can be stored in an intent and compared with a record."""
    return value is None or isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value))


def business_key(value: object) -> str:
    """Return a business key as text that every database stores: `4417` and `"4417"` are the same key.

    Other plain values than text take their JSON form. A key of more than 200 characters is replaced by its digest.
    """
    value = plain(value)
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    text = text.encode("utf-8", "backslashreplace").decode().replace("\x00", "\\x00")
    return text if len(text) <= _KEY_LENGTH_MAX else "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def intent_of_call(
    kind: OperationKind, arguments: Mapping[str, object], *, run_id: str, workflow: str, traceparent: str = ""
) -> Intent:
    """Return the intent that a tool's bound arguments state; other arguments are left out.

    Raises:
        RegistrationError: The key is no argument, or a value is of a type that cannot be stored and compared.
    """
    if kind.key not in arguments:
        raise RegistrationError(
            f"operation {kind.name}: {kind.key}: must be given because it is the business key",
            hint=f"pass {kind.key}=...",
        )
    fields = (name for name in (kind.key, *kind.compare) if name in arguments)
    values = {name: _scalar(kind, name, arguments[name]) for name in fields}
    return Intent(run_id, workflow, kind.name, business_key(values[kind.key]), values, traceparent)


def intent_of_expectation(
    kind: OperationKind, values: Mapping[str, object], *, run_id: str, workflow: str, traceparent: str = ""
) -> Intent:
    """Return the intent that the host expects; it may state the key and the compared fields only.

    Raises:
        RegistrationError: The key is missing, a name is unknown, or a value cannot be stored and compared.
    """
    known = (kind.key, *kind.compare)
    for name in values:
        if name not in known:
            raise RegistrationError(
                f"operation {kind.name}: {name}: must be the key or a compared field", hint=f"use: {', '.join(known)}"
            )
    return intent_of_call(kind, values, run_id=run_id, workflow=workflow, traceparent=traceparent)


def _scalar(kind: OperationKind, name: str, value: object) -> Scalar:
    value = plain(value)
    if is_scalar(value):
        return value
    raise RegistrationError(
        f"operation {kind.name}: {name}: must be text, a finite number, true, false or null, got "
        f"{type(value).__name__}",
        hint=f"give the tool a plain value for `{name}`, such as an amount in minor units",
    )
