"""The contract test kit: cases in files, what they should be judged as, and what changed."""

from __future__ import annotations

from handoffwatch.testing.case_files import read_cases
from handoffwatch.testing.cases import Case, CaseResult, Expectation
from handoffwatch.testing.checking import check_cases
from handoffwatch.testing.registry import watchdog_at

__all__ = ["Case", "CaseResult", "Expectation", "check_cases", "read_cases", "watchdog_at"]
