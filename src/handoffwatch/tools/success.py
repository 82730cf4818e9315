"""Whether a returned value is a success: the tool's own rule, else the default one; never a truth test."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from handoffwatch.tools.classification import classify_status, retry_after_of, status_of
from handoffwatch.tools.failure import Failure
from handoffwatch.vocabulary import FailureClass, Safety, ToolCode

SuccessRule = Callable[[object], "bool | FailureClass"]
"""A tool's own rule: True succeeds, False fails with the default class, a failure class fails with that class."""

_ERROR_FLAGS: Final = ("isError", "is_error")
_OK_FLAGS: Final = ("ok", "success")


def judge_result(value: object, safety: Safety, rule: SuccessRule | None, *, now_s: float = 0.0) -> Failure | None:
    """Return how a returned value failed, or None when it is a success.

    Without a rule of the tool's own: a response with a failing status fails by the status table, and a result that
    says so itself fails (isError or is_error true; ok or success false; status error; nothing but an error; an
    errors list). Everything else succeeds: an empty list, 0, False and an empty text are answers.

    Source: DESIGN section 3 rule 2.
    """
    if rule is not None:
        verdict = rule(value)
        if isinstance(verdict, FailureClass):
            return Failure(verdict, ToolCode.RESULT, _status_of_class(verdict))
        return None if verdict else _refused(safety)
    status = status_of(value) if hasattr(value, "headers") else None
    if status is not None:
        return classify_status(status, safety, retry_after=retry_after_of(value), now_s=now_s)
    return _refused(safety) if says_it_failed(value) else None


def says_it_failed(value: object) -> bool:
    """Return whether a result says of itself that it failed, by a flag; text decides nothing."""
    if any(getattr(value, flag, None) is True for flag in _ERROR_FLAGS):
        return True
    if not isinstance(value, Mapping):
        return False
    return (
        any(value.get(flag) is True for flag in _ERROR_FLAGS)
        or any(value.get(flag) is False for flag in _OK_FLAGS)
        or value.get("status") == "error"
        or set(value) == {"error"}
        or (isinstance(value.get("errors"), list) and bool(value["errors"]))
    )


def _refused(safety: Safety) -> Failure:
    """An error without a code is ambiguous on an unsafe tool unless its own rule says otherwise."""
    failure_class = FailureClass.AMBIGUOUS if safety is Safety.UNSAFE else FailureClass.REJECTED
    return Failure(failure_class, ToolCode.RESULT, _status_of_class(failure_class))


def _status_of_class(failure_class: FailureClass) -> str:
    return "a refusal" if failure_class is FailureClass.REJECTED else "an error"
