"""What one tool means by its statuses and exceptions, where it means something else than the table says."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

from handoffwatch.errors import RegistrationError
from handoffwatch.tools.failure import Failure
from handoffwatch.vocabulary import FailureClass, ToolCode

_FAILING_MIN: Final = 300
"""The lowest HTTP status that says a call did not work."""

_STATUSES: Final = 'statuses={409: "retryable"}'
_ERRORS: Final = 'errors={OutOfStock: "rejected"}'


@dataclass(frozen=True, slots=True)
class Overrides:
    """A tool's own classes; their texts are accepted.

    Attributes:
        statuses: By HTTP status, 300 to 599, or what a service gives beyond.
        errors: By class of exception; the nearest class of an exception counts.
        where: What an error says of whose they are.

    Raises:
        RegistrationError: A status is no whole number or says that a call worked, an error is no class of exceptions,
            or a class of failures is unknown.
    """

    statuses: Mapping[int, FailureClass | str]
    errors: Mapping[type[Exception], FailureClass | str]
    where: str = "tool"

    def __post_init__(self) -> None:
        for status in self.statuses:
            if type(status) is not int:
                raise RegistrationError(
                    f"{self.where}: statuses: must be whole numbers, got {type(status).__name__}", hint=_STATUSES
                )
            if status < _FAILING_MIN:
                raise RegistrationError(
                    f"{self.where}: statuses: must be {_FAILING_MIN} or more, got {status}",
                    hint="write a rule for answers that say they are good and are not: success=lambda value: …",
                )
        for kind in self.errors:
            if not (isinstance(kind, type) and issubclass(kind, Exception)):
                raise RegistrationError(
                    f"{self.where}: errors: must be classes of exceptions, got {type(kind).__name__}", hint=_ERRORS
                )
        statuses = {status: _class(self.where, given, _STATUSES) for status, given in self.statuses.items()}
        errors = {kind: _class(self.where, given, _ERRORS) for kind, given in self.errors.items()}
        object.__setattr__(self, "statuses", statuses)
        object.__setattr__(self, "errors", errors)

    def sorted(self, failure: Failure, told: object) -> Failure:
        """Return a failure with the class that the tool gives it.

        Args:
            failure: As the table has it.
            told: What was returned or raised.
        """
        given: FailureClass | str | None = None
        if self.errors and isinstance(told, Exception):
            given = next((self.errors[kind] for kind in type(told).__mro__ if kind in self.errors), None)
        if given is None and self.statuses and failure.status.isdigit():
            given = self.statuses.get(int(failure.status))
        return failure if given is None else replace(failure, failure_class=FailureClass(given))

    def codes(self, declared: Collection[tuple[ToolCode, FailureClass]]) -> set[tuple[ToolCode, FailureClass]]:
        """Return the pairs of code and class that these may add to the declared ones."""
        classes = {FailureClass(given) for given in (*self.statuses.values(), *self.errors.values())}
        return {(code, failure_class) for code, _ in declared for failure_class in classes}


def _class(where: str, given: object, hint: str) -> FailureClass:
    try:
        return FailureClass(str(given))
    except ValueError:
        raise RegistrationError(
            f"{where}: class: must be one of {', '.join(FailureClass)}, got {type(given).__name__}", hint=hint
        ) from None


NO_OVERRIDES: Final = Overrides({}, {})
