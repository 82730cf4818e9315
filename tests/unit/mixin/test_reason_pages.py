"""The pages about the reason codes: every code has one, and what they show is what the watchdog says."""

from __future__ import annotations

import json
from pathlib import PurePosixPath

import pytest

from handoffwatch.mixin.reason_examples import EXAMPLES, RAISED_BY_FLOWS
from handoffwatch.mixin.reason_pages import FOLDER, judge, reason_pages
from handoffwatch.reasons import REASONS

PAGES = reason_pages()
by_example = pytest.mark.parametrize("code", EXAMPLES)


def test_reason_pages_are_an_index_and_one_for_each_code_when_rendered() -> None:
    """No code is without its page, and no page without its code."""
    assert set(PAGES) == {FOLDER / "README.md", *(FOLDER / f"{code}.md" for code in REASONS)}


def test_examples_are_there_for_each_code_when_a_check_gives_it() -> None:
    """A code has an example, or the page says what raises it; never both."""
    assert sorted([*EXAMPLES, *RAISED_BY_FLOWS]) == sorted(REASONS)


@by_example
def test_example_gives_exactly_its_code_when_judged(code: str) -> None:
    """The watchdog finds what the page is about, and nothing else; a text that is no JSON has no readable id."""
    raw = EXAMPLES[code].handoff()
    decision = judge(EXAMPLES[code], raw)
    found, reason = decision.findings[0], REASONS[code]
    assert decision.reasons == ([code] if isinstance(raw, dict) else [code, "missing_handoff_id"])
    assert (found.reaction, found.severity, found.retryable) == (reason.reaction, reason.severity, reason.retryable)


@pytest.mark.parametrize("code", [code for code, example in EXAMPLES.items() if example.make is None])
def test_example_gives_the_same_code_when_judged_as_text(code: str) -> None:
    """The JSON on the page, given to the watchdog as it stands there, gives the code of the page."""
    page = PAGES[FOLDER / f"{code}.md"]
    shown = page.split("```json\n")[1].split("```")[0]
    assert json.loads(shown) == EXAMPLES[code].handoff()
    assert judge(EXAMPLES[code], shown).reasons == [code]


@by_example
def test_example_has_its_configuration_in_words_when_read(code: str) -> None:
    """Each page says how a contract or route configures the rule."""
    assert EXAMPLES[code].configured.endswith(".")


@pytest.mark.parametrize("path", PAGES, ids=str)
def test_reason_page_has_short_lines_when_rendered(path: PurePosixPath) -> None:
    """Prose is wrapped; only tables and blocks of code or data are as long as they are."""
    outside = "".join(PAGES[path].split("```")[::2])
    assert [line for line in outside.splitlines() if len(line) > 120 and not line.startswith(("|", "    "))] == []
