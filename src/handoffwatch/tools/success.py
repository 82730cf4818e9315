"""Whether a returned value is a success: the tool's own rule, else the default one; never a truth test."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Final

from handoffwatch.tools.classification import classify_status, retry_after_of, status_of
from handoffwatch.tools.failure import Failure
from handoffwatch.values.result_flags import says_it_failed
from handoffwatch.vocabulary import FailureClass, Safety, ToolCode

TEXT_CHARACTERS_MAX: Final = 65_536
"""The longest text of a result that is read as JSON; a longer one is an answer."""
_BLOCKS_MAX: Final = 20

SuccessRule = Callable[[object], "bool | FailureClass"]
"""A tool's own rule: True succeeds, False fails with the default class, a failure class fails with that class."""


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
    return _refused(safety) if says_it_failed(value) or any(map(_says_failed, _texts(value))) else None


def _texts(value: object) -> Iterator[str]:
    """Give the text that was returned, or those of a tool protocol's content blocks."""
    if isinstance(value, str):
        yield value
        return
    content = value.get("content") if isinstance(value, Mapping) else getattr(value, "content", None)
    for block in islice(content, _BLOCKS_MAX) if isinstance(content, list | tuple) else ():
        text = block.get("text") if isinstance(block, Mapping) else getattr(block, "text", None)
        if isinstance(text, str):
            yield text


def _says_failed(text: str) -> bool:
    """Return whether a text is a JSON object that says that it failed; other words decide nothing."""
    if len(text) > TEXT_CHARACTERS_MAX or not text.lstrip().startswith("{"):
        return False
    try:
        return says_it_failed(json.loads(text))
    except (ValueError, RecursionError):  # it is no JSON, so it is words
        return False


def _refused(safety: Safety) -> Failure:
    """An error without a code is ambiguous on an unsafe tool unless its own rule says otherwise."""
    failure_class = FailureClass.AMBIGUOUS if safety is Safety.UNSAFE else FailureClass.REJECTED
    return Failure(failure_class, ToolCode.RESULT, _status_of_class(failure_class))


def _status_of_class(failure_class: FailureClass) -> str:
    return "a refusal" if failure_class is FailureClass.REJECTED else "an error"
