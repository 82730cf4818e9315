"""The typed fields that a tool returned; a sentence is no receipt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from handoffwatch.outcomes.kind import OperationKind


@dataclass(frozen=True, slots=True)
class Receipt:
    """A receipt that its model accepted.

    Attributes:
        fields: The model's JSON-mode dump.
        receipt_id: The name of the stored record, when the kind says which field holds it.
    """

    fields: Mapping[str, Any]
    receipt_id: str | None = None


def receipt_of(kind: OperationKind, returned: object) -> Receipt | None:
    """Return what a tool returned as a receipt, or None when it is none.

    A mapping, a model or JSON text is a receipt when the kind's model accepts it.
    """
    if kind.receipt is None:
        return None
    from pydantic import BaseModel, ValidationError

    try:
        if isinstance(returned, str | bytes):
            model = kind.receipt.model_validate_json(returned)
        else:
            model = kind.receipt.model_validate(returned.model_dump() if isinstance(returned, BaseModel) else returned)
    except ValidationError:
        return None
    fields = model.model_dump(mode="json")
    identity = fields.get(kind.receipt_id) if kind.receipt_id else None
    return Receipt(fields, None if identity in (None, "") else str(identity))
