"""One contract case: a handoff, what surrounds it, and what it should be judged as."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from handoffwatch.decision import Decision, Finding
from handoffwatch.handoffs.context import HandoffContext
from handoffwatch.testing.registry import watchdog_at, watchdog_of
from handoffwatch.vocabulary import Verdict

if TYPE_CHECKING:
    from handoffwatch.testing.registry import Registry

AT: Final = " at "


class Expectation(NamedTuple):
    """What a handoff should be judged as.

    Attributes:
        verdict: The verdict.
        codes: Every reason code, in any order: `missing_result`, wherever it was found and how often, or
            `missing_result at payload.result`.
    """

    verdict: Verdict
    codes: tuple[str, ...] = ()

    @classmethod
    def of(cls, decision: Decision) -> Expectation:
        """Return the expectation that a decision meets, with the paths of its codes."""
        return cls(decision.verdict, tuple(dict.fromkeys(map(code_at, decision.findings))))

    def to_json(self) -> dict[str, Any]:
        """Return it as a case file holds it."""
        return {"verdict": str(self.verdict), "codes": list(self.codes)}


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A handoff with what it should be judged as.

    Attributes:
        name: The file's path below the folder.
        file: The file.
        raw: The handoff: plain data, or text as the model wrote it.
        source: The agent that the orchestrator knows to be sending, if said.
        target: The agent that it is about to start, if said.
        context: What else it knows, if said.
        now_unix_s: The time at which the handoff is judged; None is now.
        note: Why there is this case.
        expected: What it should be judged as; None when nobody has said so yet.
    """

    name: str
    file: Path
    raw: object
    source: str | None = None
    target: str | None = None
    context: HandoffContext | None = None
    now_unix_s: float | None = None
    note: str = ""
    expected: Expectation | None = None

    def judge(self, registry: Registry) -> Decision:
        """Return the decision of a registry's watchdog about this handoff.

        Raises:
            TypeError: The registry is neither a Watch nor a Watchdog.
        """
        now = self.now_unix_s
        watchdog = watchdog_of(registry) if now is None else watchdog_at(registry, now)
        return watchdog.inspect(
            self.raw, expected_source=self.source, expected_target=self.target, context=self.context
        )

    def result(self, registry: Registry) -> CaseResult:
        """Return the decision beside the expectation.

        Raises:
            TypeError: The registry is neither a Watch nor a Watchdog.
        """
        return CaseResult(self, self.judge(registry))

    def check(self, registry: Registry) -> None:
        """Do nothing when the handoff is judged as expected.

        Raises:
            AssertionError: It is not; the text says what changed.
            TypeError: The registry is neither a Watch nor a Watchdog.
        """
        __tracebackhide__ = True
        result = self.result(registry)
        if not result.is_as_expected:
            raise AssertionError("\n".join(result.lines()))


@dataclass(frozen=True, slots=True)
class CaseResult:
    """A decision beside what was expected of it."""

    case: Case
    decision: Decision

    @property
    def missing(self) -> list[str]:
        """The codes that were expected and not found."""
        expected = self.case.expected
        if expected is None:
            return []
        found = {code_at(item) for item in self.decision.findings} | set(self.decision.reasons)
        return [code for code in expected.codes if code not in found]

    @property
    def unexpected(self) -> list[Finding]:
        """The findings that were not expected."""
        expected = self.case.expected.codes if self.case.expected is not None else ()
        return [item for item in self.decision.findings if item.code not in expected and code_at(item) not in expected]

    @property
    def is_as_expected(self) -> bool:
        """Whether verdict and codes are as expected; never without an expectation."""
        expected = self.case.expected
        if expected is None or expected.verdict is not self.decision.verdict:
            return False
        return not self.missing and not self.unexpected

    def lines(self) -> list[str]:
        """Return what changed, for a person: the case, the verdict, `-` expected and gone, `+` found and unexpected."""
        expected, verdict = self.case.expected, self.decision.verdict
        title = f"{self.case.name}: {self.case.note}" if self.case.note else self.case.name
        if expected is None:
            said = f"  verdict: {verdict}, and nothing is expected yet"
        elif expected.verdict is verdict:
            said = f"  verdict: {verdict}, as expected"
        else:
            said = f"  verdict: expected {expected.verdict}, got {verdict}"
        gone = [f"  - {code}" for code in self.missing]
        found = [f"  + {code_at(item)}: {item.sentence}" for item in self.unexpected]
        return [title, said, *gone, *dict.fromkeys(found)]

    def to_json(self) -> dict[str, Any]:
        """Return what was expected and what was found, as plain data."""
        expected = self.case.expected
        return {
            "case": self.case.name,
            "expected": expected.to_json() if expected is not None else None,
            "actual": Expectation.of(self.decision).to_json(),
            "missing": self.missing,
            "unexpected": list(dict.fromkeys(map(code_at, self.unexpected))),
        }


def code_at(finding: Finding) -> str:
    """Return a finding as expectations and reports write it: `code at path`."""
    return f"{finding.code}{AT}{finding.path}"
