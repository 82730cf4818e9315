"""What one tool means by its statuses and exceptions, where it means something else than the table says."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

from handoffwatch.errors import RegistrationError
from handoffwatch.tools.failure import Failure
from handoffwatch.vocabulary import FailureClass, ToolCode


@dataclass(frozen=True, slots=True)
class Overrides:
    """A tool's own classes; their texts are accepted.

    Attributes:
        statuses: By HTTP status, 300 to 599, or what a service gives beyond.
        errors: By class of exception; the nearest class of an exception counts.

    Raises:
        RegistrationError: A status is no whole number, an error no class of exceptions, or a class of failures unknown.
    """

    statuses: Mapping[int, FailureClass | str]
    errors: Mapping[type[Exception], FailureClass | str]

    def __post_init__(self) -> None:
        for status in self.statuses:
            if type(status) is not int:
                raise RegistrationError(
                    f"tool: statuses: must be whole numbers, got {type(status).__name__}",
                    hint='statuses={409: "retryable"}',
                )
        for kind in self.errors:
            if not (isinstance(kind, type) and issubclass(kind, Exception)):
                raise RegistrationError(
                    "tool: errors: must be classes of exceptions, got something else",
                    hint='errors={OutOfStock: "rejected"}',
                )
        object.__setattr__(self, "statuses", {status: _class(given) for status, given in self.statuses.items()})
        object.__setattr__(self, "errors", {kind: _class(given) for kind, given in self.errors.items()})

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


def _class(given: object) -> FailureClass:
    try:
        return FailureClass(str(given))
    except ValueError:
        raise RegistrationError(
            f"tool: class: must be one of {', '.join(FailureClass)}, got {type(given).__name__}",
            hint='statuses={409: "retryable"}',
        ) from None


NO_OVERRIDES: Final = Overrides({}, {})
