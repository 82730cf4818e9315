"""A team's own rules: methods of a contract that say whether its payload makes sense, each with its reason."""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

from handoffwatch.decision import Finding
from handoffwatch.errors import RegistrationError
from handoffwatch.handoffs.context import HandoffContext
from handoffwatch.handoffs.structure import finding
from handoffwatch.reasons import REASONS, Reason
from handoffwatch.values.json_text import decode, encode, kind_of
from handoffwatch.values.paths import dotted
from handoffwatch.vocabulary import Reaction, Severity

F = TypeVar("F", bound=Callable[..., Any])

_CODE: Final = re.compile(r"[a-z][a-z0-9_]{0,49}")
_MARK: Final = "__handoffwatch_rule__"
_EXTRAS: Final = frozenset({"handoff", "context"})
FINDINGS_MAX: Final = 20


class Rule(Protocol):
    """What judges a payload whose shape is right."""

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """The reasons of its own that its findings may have."""
        ...

    def judge(self, found: list[Finding], payload: Any, *, handoff: Mapping[str, Any], context: HandoffContext) -> None:
        """Add to `found` where the payload breaks the rule."""
        ...


@dataclass(frozen=True, slots=True)
class OwnRule:
    """A named invariant of one contract.

    Attributes:
        reason: The code with its reaction, severity and retryability; the meaning is the rule's one-line reason.
        path: Where a rule that only says no found it.
        check: Called with the payload and the extras it asks for; True holds, False or paths do not.
        extras: Which of `handoff` and `context` it asks for.
    """

    reason: Reason
    path: str
    check: Callable[..., object]
    extras: frozenset[str]

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """The reasons that its findings have."""
        return (self.reason,)

    def judge(
        self, found: list[Finding], payload: object, *, handoff: Mapping[str, Any], context: HandoffContext
    ) -> None:
        """Add to `found` where the payload breaks this rule; a rule that raises is the finding `check_failed`."""
        try:
            given: dict[str, Any] = {"context": context} if "context" in self.extras else {}
            if "handoff" in self.extras:
                given["handoff"] = decode(encode(handoff))
            answer = self.check(payload, **given)
            if answer is True:
                return
            paths = [self.path] if answer is False else list(itertools.islice(_paths(answer), FINDINGS_MAX))
        except Exception as error:  # noqa: BLE001 - a rule that raises proves nothing: it fails closed and is counted
            sentence = f"the rule {self.reason.code} raised {kind_of(error)}, so nothing was proven"
            found.append(finding("check_failed", self.path, sentence))
            return
        reason = self.reason
        found += [
            Finding(reason.code, path, f"{path}: {reason.meaning}", reason.reaction, reason.severity, reason.retryable)
            for path in dict.fromkeys(dotted([path]) for path in paths)
        ]


def rule(
    code: str,
    reason: str,
    *,
    path: str = "payload",
    reaction: str = "block",
    severity: str | None = None,
    retryable: bool | None = None,
) -> Callable[[F], F]:
    """Make a method of a contract one of its rules.

    The method says True when the rule holds, and False or the paths that break it when it does not. It may take
    `handoff` (the whole envelope as a dict) and `context` (a `HandoffContext`).

    Args:
        code: The reason code, snake_case: one of the product's or the team's own.
        reason: One line that says what the receiver needs; it stands in the finding, so it names no value.
        path: Where the rule looks, for a method that only says no.
        reaction: block, hold, flag or warn.
        severity: info, warning, error or critical; by default error for a block and warning otherwise.
        retryable: Whether the sender can repair it; by default what the product's code says, else True.

    Raises:
        RegistrationError: The code is no snake_case word, the reason is blank or longer than a line, or a value is
            outside its set.
    """
    made = own_reason(code, reason, reaction=reaction, severity=severity, retryable=retryable)

    def mark(function: F) -> F:
        setattr(function, _MARK, (made, path))
        return function

    return mark


def own_reason(
    code: str, reason: str, *, reaction: str = "block", severity: str | None = None, retryable: bool | None = None
) -> Reason:
    """Return the reason of a team's own rule; the arguments and errors are those of `rule`."""
    if not isinstance(code, str) or not _CODE.fullmatch(code):
        raise RegistrationError(
            "rule: code: must be a snake_case word of at most 50 characters",
            hint='@rule("amount_too_high", "the reviewer may approve up to 500.00 only")',
        )
    if not isinstance(reason, str) or not reason.strip() or len(reason) > 200 or not reason.isprintable():
        raise RegistrationError(
            f"rule {code}: reason: must be one line of 1 to 200 characters that says what the receiver needs",
            hint=f'@rule("{code}", "the reviewer needs …")',
        )
    known = REASONS.get(code)
    chosen = _member(code, "reaction", reaction, Reaction)
    mild = Severity.ERROR if chosen is Reaction.BLOCK else Severity.WARNING
    return Reason(
        code=code,
        group=known.group if known else "contract",
        meaning=reason.strip(),
        advice=known.advice if known else "send what the rule asks for",
        example=known.example if known else "",
        reaction=chosen,
        severity=_member(code, "severity", severity, Severity) if severity is not None else mild,
        retryable=retryable if retryable is not None else known.retryable if known else True,
    )


def rules_of(contract: type) -> tuple[OwnRule, ...]:
    """Return the rules of a contract class and its bases, in the order of their names' first definition.

    Raises:
        RegistrationError: A rule asks for something that no rule is given.
    """
    names = dict.fromkeys(name for base in reversed(contract.__mro__) for name in vars(base))
    rules = []
    for name in names:
        function = inspect.getattr_static(contract, name, None)
        inner = getattr(function, "__func__", None) or getattr(function, "fget", None)
        if inner is not None and hasattr(inner, _MARK):
            raise RegistrationError(
                f"contract {contract.__name__}: rule {name}: must be a plain method, got {type(function).__name__}",
                hint=f"def {name}(self) -> bool: …",
            )
        marked = getattr(function, _MARK, None)
        if marked is not None:
            reason, path = marked
            rules.append(OwnRule(reason, path, function, _extras(contract.__name__, name, function)))
    return tuple(rules)


def rule_of_function(function: Callable[..., object], reason: Reason, path: str) -> OwnRule:
    """Return the rule that a plain function makes; it is called with the payload."""
    return OwnRule(reason, path, function, _extras("function", getattr(function, "__name__", "rule"), function))


def _extras(owner: str, name: str, function: Any) -> frozenset[str]:
    if not callable(function) or isinstance(function, type) or inspect.iscoroutinefunction(function):
        raise RegistrationError(
            f"contract {owner}: rule {name}: must be a plain function, got {type(function).__name__}",
            hint=f"def {name}(self) -> bool: …",
        )
    try:
        parameters = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        parameters = []
    extras = frozenset(parameters[1:])
    if not parameters or not extras <= _EXTRAS:
        raise RegistrationError(
            f"contract {owner}: rule {name}: may take the payload, and `handoff` and `context` beside it",
            hint=f"def {name}(self, handoff, context) -> bool: …",
        )
    return extras


def _paths(answer: object) -> Iterable[str]:
    if isinstance(answer, str) or not isinstance(answer, Iterable):
        raise TypeError("a rule says True, False or paths")
    for path in answer:
        if not isinstance(path, str):
            raise TypeError("a path is a text")
        yield path


def _member(code: str, name: str, value: object, members: Any) -> Any:
    for each in members:
        if value == each:
            return each
    raise RegistrationError(
        f"rule {code}: {name}: must be one of {', '.join(members)}, got {type(value).__name__}",
        hint=f'{name}="{next(iter(members))}"',
    )
