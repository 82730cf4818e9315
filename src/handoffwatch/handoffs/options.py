"""What a contract asks for beside its fields: the class keywords of `Contract`, checked where the class is written."""

from __future__ import annotations

import datetime
import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from handoffwatch.errors import RegistrationError
from handoffwatch.values.names import is_name
from handoffwatch.values.paths import is_path
from handoffwatch.vocabulary import Status


@dataclass(frozen=True, slots=True)
class Options:
    """The class keywords of a contract; a subclass inherits those it does not name.

    Attributes:
        version: The schema version, text or integer.
        identity: The path of the envelope or payload whose value the attempts of one handoff share.
        accepts: The statuses that this receiver takes.
        lax: Whether values may be converted; the decision then lists the paths of those that were.
        needs_results: Whether `payload.results` must hold at least one item.
        ready_needs: Payload fields that a handoff of status ready must bring.
        requires_context: Whether the orchestrator must say its run or task.
        irreversible: Whether the receiver acts for good: `payload.operation_id` is needed, and completed work must
            name a finished operation.
        replaces_state: Whether an accepted handoff replaces the state it rests on: a second one with the same
            `context_version`, or an older one, is `stale_state`.
        deprecated_from: The day (UTC) from which this version is blocked; until then it warns.
        age_s_max: The most seconds since `produced_at`.
        confidence_min: The least `payload.confidence`, 0.0 to 1.0.
        choices: Payload fields that must be among the values at a payload path.
        same_task: Payload paths whose values must be the task id of the envelope.
        merged: The payload field that lists merged parts, which must not contradict each other.
        messages: The payload field that holds a message history.
        good_example: A payload that the contract accepts, for its self-test.
    """

    version: str = "1"
    identity: str = "task_id"
    accepts: tuple[str, ...] = (Status.READY, Status.COMPLETED)
    lax: bool = False
    needs_results: bool = False
    ready_needs: tuple[str, ...] = ()
    requires_context: bool = False
    irreversible: bool = False
    replaces_state: bool = False
    deprecated_from: datetime.date | None = None
    age_s_max: float | None = None
    confidence_min: float | None = None
    choices: Mapping[str, str] = field(default_factory=dict)
    same_task: tuple[str, ...] = ()
    merged: str | None = None
    messages: str | None = None
    good_example: Mapping[str, Any] | None = None

    def changed(self, keywords: Mapping[str, Any], *, contract: str) -> Options:
        """Return these options with the keywords of a class in place.

        Raises:
            RegistrationError: A keyword is unknown or its value breaks its rule.
        """
        known = [each.name for each in fields(self)]
        read: dict[str, Any] = {}
        for name, value in keywords.items():
            if name not in known:
                close = difflib.get_close_matches(name, known, n=1)
                hint = f"did you mean {close[0]}?" if close else f"the keywords are: {', '.join(known)}"
                raise RegistrationError(f"contract {contract}: {name}: is no keyword of a contract", hint=hint)
            read[name] = _READERS[name](_Keyword(contract, name, value))
        return replace(self, **read)

    def refuse_unknown_fields(self, fields: Collection[str], *, contract: str) -> None:
        """Refuse a keyword that asks for a field which the contract does not have: it would never speak.

        Raises:
            RegistrationError: A keyword names such a field.
        """
        asked = [("choices", path) for pair in self.choices.items() for path in pair]
        asked += [("same_task", path) for path in self.same_task]
        asked += [("ready_needs", path) for path in self.ready_needs]
        asked += [(name, path) for name, path in (("merged", self.merged), ("messages", self.messages)) if path]
        if self.confidence_min is not None:
            asked.append(("confidence_min", "confidence"))
        if self.irreversible:
            asked.append(("irreversible", "operation_id"))
        for keyword, path in asked:
            name = path.split(".")[0]
            if name not in fields and name != "*":
                close = difflib.get_close_matches(name, fields, n=1)
                raise RegistrationError(
                    f"contract {contract}: {keyword}: the payload has no field {name}",
                    hint=f"did you mean {close[0]}?" if close else f"give the contract a field `{name}`",
                )


@dataclass(frozen=True, slots=True)
class _Keyword:
    contract: str
    name: str
    value: Any

    def refused(self, rule: str, example: str) -> RegistrationError:
        return RegistrationError(
            f"contract {self.contract}: {self.name}: must be {rule}, got {type(self.value).__name__}",
            hint=f"write `class {self.contract}(Contract, {self.name}={example})`",
        )


def _version(keyword: _Keyword) -> str:
    value = keyword.value
    if isinstance(value, bool) or not isinstance(value, str | int) or not is_name(str(value)):
        raise keyword.refused("a text of 1 to 100 printable characters", '"1"')
    return str(value)


def _flag(keyword: _Keyword) -> bool:
    if not isinstance(keyword.value, bool):
        raise keyword.refused("True or False", "True")
    return keyword.value


def _path(keyword: _Keyword) -> str:
    if not is_path(keyword.value):
        raise keyword.refused("a path such as payload.order_id", '"task_id"')
    return str(keyword.value)


def _field(keyword: _Keyword) -> str | None:
    if keyword.value is not None and not is_path(keyword.value):
        raise keyword.refused("the name of a payload field", '"parts"')
    return keyword.value  # type: ignore[no-any-return]


def _paths(keyword: _Keyword) -> tuple[str, ...]:
    value = keyword.value
    if isinstance(value, str) or not isinstance(value, list | tuple) or not all(map(is_path, value)):
        raise keyword.refused("a tuple of payload paths", '("plan",)')
    return tuple(value)


def _accepts(keyword: _Keyword) -> tuple[str, ...]:
    value = keyword.value
    known = tuple(str(status) for status in Status)
    if not isinstance(value, list | tuple | set | frozenset) or not value or not all(each in known for each in value):
        raise keyword.refused(f"some of {', '.join(known)}", '("ready", "completed")')
    return tuple(status for status in known if status in value)


def _choices(keyword: _Keyword) -> Mapping[str, str]:
    value = keyword.value
    if not isinstance(value, Mapping) or not all(is_path(text) for pair in value.items() for text in pair):
        raise keyword.refused("a dict from payload field to payload path", '{"selected": "candidates.*.id"}')
    return dict(value)


def _day(keyword: _Keyword) -> datetime.date | None:
    value = keyword.value
    if isinstance(value, str):
        try:
            return datetime.date.fromisoformat(value)
        except ValueError:
            raise keyword.refused("a day such as 2027-01-31", '"2027-01-31"') from None
    if value is not None and (isinstance(value, datetime.datetime) or not isinstance(value, datetime.date)):
        raise keyword.refused("a day such as 2027-01-31", '"2027-01-31"')
    return value


def _seconds(keyword: _Keyword) -> float | None:
    return _number(keyword, lambda value: value > 0, "seconds above 0", "3600")


def _share(keyword: _Keyword) -> float | None:
    return _number(keyword, lambda value: 0 <= value <= 1, "a number from 0 to 1", "0.5")


def _number(keyword: _Keyword, fits: Any, rule: str, example: str) -> float | None:
    value = keyword.value
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not fits(value):
        raise keyword.refused(rule, example)
    return float(value)


def _example(keyword: _Keyword) -> Mapping[str, Any] | None:
    if keyword.value is not None and not isinstance(keyword.value, Mapping):
        raise keyword.refused("a payload as a dict", '{"order_id": "4417"}')
    return keyword.value


_READERS = {
    "version": _version,
    "identity": _path,
    "accepts": _accepts,
    "lax": _flag,
    "needs_results": _flag,
    "ready_needs": _paths,
    "requires_context": _flag,
    "irreversible": _flag,
    "replaces_state": _flag,
    "deprecated_from": _day,
    "age_s_max": _seconds,
    "confidence_min": _share,
    "choices": _choices,
    "same_task": _paths,
    "merged": _field,
    "messages": _field,
    "good_example": _example,
}
