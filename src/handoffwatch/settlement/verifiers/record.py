"""The ready-made record verifier: reads one stored record, by its id or by the business key."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from handoffwatch.errors import RegistrationError
from handoffwatch.outcomes import Look, ReadBack, Verification, judge_record

_LOG = logging.getLogger("handoffwatch.settlement")

Record = Mapping[str, Any]
Fetch = Callable[[Any], Record | Awaitable[Record | None] | None]
"""Reads one record: a mapping, None when there is none, an exception when that is not known. Sync or async."""


class RecordVerifier:
    """Reads the record that an operation should have left, and judges it by DESIGN section 9.

    A receipt's id is looked up when there is one; the business key otherwise. An id that is not found is not replaced
    by the key: another record of the same key is another operation's.

    Args:
        by_receipt: Reads a record by the receipt's id.
        by_key: Reads a record by the business key, as the intent states it.
        status: The record's field that holds its status.
        succeeded: Its values for an effect that happened.
        pending: Its values for an effect that may still happen; any other value is a failure.

    Raises:
        RegistrationError: Neither function is given, or the values are one text.
    """

    def __init__(
        self,
        by_receipt: Fetch | None = None,
        *,
        by_key: Fetch | None = None,
        status: str = "status",
        succeeded: Iterable[str] = ("succeeded",),
        pending: Iterable[str] = ("pending", "requires_action"),
    ) -> None:
        if by_receipt is None and by_key is None:
            raise RegistrationError(
                "record verifier: by_receipt or by_key: must be given",
                hint="pass by_key=<function of the business key>",
            )
        for name, values in (("succeeded", succeeded), ("pending", pending)):
            if isinstance(values, str):
                raise RegistrationError(
                    f"record verifier: {name}: must be a tuple of texts, got text", hint=f'write {name}=("{values}",)'
                )
        self._by_receipt = by_receipt
        self._by_key = by_key
        self._status = status
        self._succeeded = tuple(succeeded)
        self._pending = tuple(pending)

    def verify(self, question: ReadBack, /) -> Verification | Awaitable[Verification]:
        """Return what the stored record says; an awaitable when the function that reads it is async.

        Raises:
            TypeError: The function returned something else than a mapping or None.
        """
        fetch, wanted = self._look_up(question)
        if fetch is None:
            return judge_record(question, Look.IMPOSSIBLE)
        try:
            found = fetch(wanted)
        except Exception as error:  # noqa: BLE001  whatever the service raised, the answer is unknown, which is counted
            return self._failed(question, error)
        return self._wait(question, found) if inspect.isawaitable(found) else self._judge(question, found)

    def _look_up(self, question: ReadBack) -> tuple[Fetch | None, object]:
        receipt_id = question.receipt.receipt_id if question.receipt is not None else None
        if receipt_id is not None and self._by_receipt is not None:
            return self._by_receipt, receipt_id
        intent = question.intent
        return self._by_key, intent.values.get(question.kind.key, intent.key)

    async def _wait(self, question: ReadBack, found: Awaitable[Record | None]) -> Verification:
        try:
            record = await found
        except Exception as error:  # noqa: BLE001  as above, for an async function
            return self._failed(question, error)
        return self._judge(question, record)

    def _failed(self, question: ReadBack, error: Exception) -> Verification:
        _LOG.warning("operation %s: the record could not be read: %s", question.kind.name, type(error).__name__)
        return judge_record(question, Look.FAILED)

    def _judge(self, question: ReadBack, record: Record | None) -> Verification:
        if record is not None and not isinstance(record, Mapping):
            raise TypeError(f"record verifier: the record must be a mapping or None, got {type(record).__name__}")
        return judge_record(
            question,
            Look.NOT_FOUND if record is None else Look.FOUND,
            record,
            status=self._status,
            succeeded=self._succeeded,
            pending=self._pending,
        )
