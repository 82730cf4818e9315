"""A kind of operation, as a team declares it: which arguments are its intent, and how its effect is read back."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from handoffwatch.errors import RegistrationError
from handoffwatch.outcomes.policy import SettlementPolicy
from handoffwatch.values.names import is_name
from handoffwatch.vocabulary import OTHER, Criticality

if TYPE_CHECKING:
    from pydantic import BaseModel

    from handoffwatch.outcomes.verification import Verifier


@dataclass(frozen=True, slots=True)
class OperationKind:
    """One kind of intended effect.

    Attributes:
        name: The value of the label `operation`.
        key: The argument that is the business key, and the field of that name in the stored record.
        compare: Arguments that the stored record must repeat, such as the amount.
        criticality: critical (money and access rights) or routine; its text is accepted.
        receipt: Pydantic model of what the tool returns on success; None when there is no receipt.
        receipt_id: The receipt's field that names the stored record.
        verifier: Reads the stored effect; without one the effect stays unknown.
        read_back_window_s: Overrides the setting of that name.
        polls_s: Overrides the setting of that name.
        deadline_s: Overrides the setting of that name.
        sample: Share of runs that are read back, 0.0 to 1.0; routine operations only.

    Raises:
        RegistrationError: A field breaks its rule.
    """

    name: str
    key: str
    compare: Sequence[str] = ()
    criticality: Criticality = Criticality.CRITICAL
    receipt: type[BaseModel] | None = None
    receipt_id: str | None = None
    verifier: Verifier | None = None
    read_back_window_s: float | None = None
    polls_s: tuple[float, ...] | None = None
    deadline_s: float | None = None
    sample: float | None = None

    def __post_init__(self) -> None:
        if not is_name(self.name):
            raise RegistrationError(
                "operation: the name must be a text of 1 to 100 printable characters without spaces around, and not "
                f"'{OTHER}'",
                hint='watch.operation("refund", …)',
            )
        self._freeze()
        self._check_fields()
        self._check_receipt()
        self._check_verifier()
        self._check_timing()

    def policy(self, default: SettlementPolicy) -> SettlementPolicy:
        """Return `default` with this kind's own values in place."""
        own = {
            "read_back_window_s": self.read_back_window_s,
            "polls_s": self.polls_s,
            "deadline_s": self.deadline_s,
            "routine_sample": self.sample,
        }
        return replace(default, **{name: value for name, value in own.items() if value is not None})  # type: ignore[arg-type]

    def check_parameters(self, parameters: Collection[str], *, tool: str) -> None:
        """Check that a tool's parameters hold the whole intent.

        Raises:
            RegistrationError: The key or a compared field is no parameter of the tool.
        """
        for field in (self.key, *self.compare):
            if field not in parameters:
                raise RegistrationError(
                    f"tool {tool}: parameter {field}: must exist because operation {self.name} needs it",
                    hint=f"add a parameter `{field}` to the tool, or name another field in watch.operation",
                )

    def _freeze(self) -> None:
        if isinstance(self.compare, str):
            raise self._refused("compare", "must be a tuple of field names, got text", f'write ("{self.compare}",)')
        if self.criticality not in tuple(Criticality):
            raise self._refused("criticality", "must be critical or routine", 'write criticality="critical"')
        object.__setattr__(self, "compare", tuple(self.compare))
        object.__setattr__(self, "criticality", Criticality(self.criticality))
        if self.polls_s is not None:
            object.__setattr__(self, "polls_s", tuple(self.polls_s))

    def _check_fields(self) -> None:
        for field in (self.key, *self.compare):
            if not isinstance(field, str) or not field.isidentifier():
                raise self._refused("key and compare", "must be names of arguments", 'write key="order_id"')
        if len({self.key, *self.compare}) != 1 + len(self.compare):
            raise self._refused("compare", "must name each field once, and not the key", "remove the repeated name")

    def _check_receipt(self) -> None:
        if self.receipt is None:
            if self.receipt_id is not None:
                raise self._refused("receipt_id", "needs a receipt model", "pass receipt=<a pydantic model>")
            return
        from pydantic import BaseModel

        if not (isinstance(self.receipt, type) and issubclass(self.receipt, BaseModel)):
            raise self._refused("receipt", "must be a pydantic model class", "pass receipt=<a pydantic model>")
        if self.receipt_id is not None and self.receipt_id not in self.receipt.model_fields:
            raise self._refused(
                "receipt_id",
                f"must be a field of {self.receipt.__name__}",
                f"use one of: {', '.join(self.receipt.model_fields)}",
            )

    def _check_verifier(self) -> None:
        if self.verifier is not None and not callable(getattr(self.verifier, "verify", None)):
            raise self._refused(
                "verifier",
                f"must have a method verify, got {type(self.verifier).__name__}",
                "pass verifier=RecordVerifier(by_key=...)",
            )

    def _check_timing(self) -> None:
        for field, value in (("read_back_window_s", self.read_back_window_s), ("deadline_s", self.deadline_s)):
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise self._refused(field, f"must be at least 0, got {value}", "remove it to use the setting")
        polls = self.polls_s
        if polls is not None and not (
            polls and all(math.isfinite(poll) and poll >= 0 for poll in polls) and list(polls) == sorted(polls)
        ):
            raise self._refused("polls_s", "must be ascending seconds from 0", "remove it to use the setting")
        if self.sample is None:
            return
        if self.criticality is Criticality.CRITICAL:
            raise self._refused("sample", "must be left out of a critical operation", "remove sample")
        if not 0 <= self.sample <= 1:
            raise self._refused("sample", f"must be 0 to 1, got {self.sample}", "remove it to use the setting")

    def _refused(self, field: str, rule: str, hint: str) -> RegistrationError:
        return RegistrationError(f"operation {self.name}: {field}: {rule}", hint=hint)
