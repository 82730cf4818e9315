"""Texts for regular expressions: short ones that match, and a refusal of what is not read."""

from __future__ import annotations

import re

import pytest

from handoffwatch.values.pattern_text import TEXT_CHARACTERS_MAX, text_matching

TEXTS = {
    r"^ORD-\d+$": "ORD-0",
    r"^[A-Z]{3}-\d{4}$": "AAA-0000",
    r"re_[a-z0-9]{2,}": "re_aa",
    r"^(?:yes|no)$": "yes",
    r"^(?P<year>\d{4})-(\d\d)$": "0000-00",
    r"^[^a-z]\.\w\s?$": "A.a ",
    r"^[\d.-]+?$": "0",
    r"^[]x]$": "x",
    r"^[^\w\s]$": "!",
    r"^\\\$\{\}\Z": "\\${}",
    r".\D\W\S\t": "xx-x\t",
    r"^[é-ü]$": "é",
    r"": "",
}


@pytest.mark.parametrize(("pattern", "text"), TEXTS.items(), ids=TEXTS)
def test_text_matches_when_the_pattern_is_of_a_common_kind(pattern: str, text: str) -> None:
    """Literals, classes, groups, alternatives and repetitions are read as Python's own engine reads them."""
    assert text_matching(pattern, repeats=1) == text
    assert re.search(pattern, text)


@pytest.mark.parametrize("pattern", [r"^[a-z]{2,5}$", r"^(ab|c)+d?$", r"^x*(\d{1,3}y)*$"])
@pytest.mark.parametrize("repeats", [0, 1, 2, 7])
def test_text_is_within_the_bounds_when_it_is_repeated(pattern: str, repeats: int) -> None:
    """A part is repeated as often as asked, never beyond its own bounds."""
    assert re.search(pattern, text_matching(pattern, repeats=repeats))


REFUSED = {
    r"^(?=x)": "only plain and named groups are read",
    r"(?<!x)y": "look-behind is not read",
    r"(a)\1": "the pattern has an escape that is not read",
    r"\p{L}": "the pattern has an escape that is not read",
    r"(a": "the pattern leaves a group open",
    r"a)": "the pattern closes a group that is not open",
    r"[a": "the pattern ends early",
    r"*a": "the pattern repeats nothing",
    r"a{x}": "the pattern has braces that are no repetition",
    r"a{2": "the pattern ends early",
    r"[^ -~]": "the class leaves no plain character",
    r"(a{9999}){9999}": "the text would be too long",
    r"a{9999}b{9999}": "the text would be too long",
}


@pytest.mark.parametrize(("pattern", "message"), REFUSED.items(), ids=REFUSED)
def test_text_is_refused_when_the_pattern_is_not_read(pattern: str, message: str) -> None:
    """What cannot be read has no text, rather than a wrong one."""
    with pytest.raises(ValueError, match=f"^{message}$"):
        text_matching(pattern, repeats=1)


def test_text_is_bounded_when_a_pattern_repeats_much() -> None:
    """A text as long as allowed is made."""
    assert len(text_matching(f"a{{{TEXT_CHARACTERS_MAX}}}", repeats=1)) == TEXT_CHARACTERS_MAX
