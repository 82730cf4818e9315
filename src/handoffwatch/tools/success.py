"""Whether a returned value is a success: the tool's own rule, else the default one; never a truth test."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from itertools import islice
from typing import Final

from handoffwatch.tools.failure import Failure
from handoffwatch.tools.foreign import retry_after_of, status_of
from handoffwatch.tools.statuses import classify_status
from handoffwatch.values.result_flags import says_it_failed
from handoffwatch.vocabulary import FailureClass, Safety, ToolCode

TEXT_CHARACTERS_MAX: Final = 65_536
"""The longest text of a result that is read as JSON; a longer one is an answer."""
_CLASSES: Final = frozenset(map(str, FailureClass))
_BLOCKS_MAX: Final = 20
_STATUS_NAMES: Final = ("status", "status_code", "statusCode", "code")
_STATUS_LINE: Final = re.compile(r"([45][0-9]{2}) ([A-Za-z][A-Za-z '-]{1,40})")
_PHRASES: Final = {status.value: status.phrase.lower() for status in HTTPStatus}

SuccessRule = Callable[[object], "bool | FailureClass | str"]
"""A tool's own rule: True succeeds, False fails with the default class, a failure class fails with that class."""


def judge_result(value: object, safety: Safety, rule: SuccessRule | None, *, now_s: float = 0.0) -> Failure | None:
    """Return how a returned value failed, or None when it is a success.

    Without a rule of the tool's own: a response with a failing status fails by the status table, and a result that
    says so itself fails (isError or is_error true; ok or success false; status error; nothing but an error; an
    errors list). Everything else succeeds: an empty list, 0, False and an empty text are answers.

    Raises:
        TypeError: The rule answered with neither True, False nor a failure class: nothing is guessed of it.

    Source: DESIGN section 3 rule 2.
    """
    if rule is not None:
        return _of_rule(rule(value), safety)
    status = status_of(value) if type(value) is not dict and hasattr(value, "headers") else None
    if status is not None:
        return classify_status(status, safety, retry_after=retry_after_of(value), now_s=now_s)
    for said in (value, *filter(None, map(_object_in, _texts(value)))):
        if says_it_failed(said):
            status = _status_in(said)
            return _refused(safety) if status is None else classify_status(status, safety, now_s=now_s)
    return None


def _of_rule(verdict: object, safety: Safety) -> Failure | None:
    if isinstance(verdict, bool):
        return None if verdict else _refused(safety)
    if isinstance(verdict, str) and verdict in _CLASSES:
        failure_class = FailureClass(verdict)
        return Failure(failure_class, ToolCode.RESULT, _status_of_class(failure_class))
    raise TypeError(f"a success rule must say True, False or a failure class, got {type(verdict).__name__}")


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


def _object_in(text: str) -> object:
    """Return the JSON object that a text is, else None: other words decide nothing."""
    if len(text) > TEXT_CHARACTERS_MAX or not text.lstrip().startswith("{"):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # it is no JSON, so it is words
        return None


def _status_in(said: object) -> int | None:
    """Return the HTTP status of an error that a failed result carries: a number of 400 to 599 under a name for one, or
    the number and the words of a status line as its error, such as `401 Unauthorized`."""
    if not isinstance(said, Mapping):
        return None
    error = said.get("error")
    for holder in (said, error):
        numbers = [holder.get(name) for name in _STATUS_NAMES] if isinstance(holder, Mapping) else []
        for number in numbers:
            if type(number) is int and 400 <= number <= 599:
                return number
    found = _STATUS_LINE.match(error) if isinstance(error, str) else None
    if found is None:
        return None
    status = int(found[1])
    is_known = status in _PHRASES and found[2].lower().startswith(_PHRASES[status])
    return status if is_known else None


def _refused(safety: Safety) -> Failure:
    """An error without a code is ambiguous on an unsafe tool unless its own rule says otherwise."""
    failure_class = FailureClass.AMBIGUOUS if safety is Safety.UNSAFE else FailureClass.REJECTED
    return Failure(failure_class, ToolCode.RESULT, _status_of_class(failure_class))


def _status_of_class(failure_class: FailureClass) -> str:
    return "a refusal" if failure_class is FailureClass.REJECTED else "an error"
