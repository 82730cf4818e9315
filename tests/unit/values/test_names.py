"""Names that may stand in labels."""

from __future__ import annotations

import pytest

from handoffwatch.values.names import folded, is_name


@pytest.mark.parametrize("name", ["a", "Billing Agent", "billing.agent", "日本", "é", "x" * 100, "->"])
def test_is_name_accepts_when_a_text_can_be_a_label(name: str) -> None:
    """Printable text of 1 to 100 characters is a name."""
    assert is_name(name) is True


@pytest.mark.parametrize("name", ["", " ", " a", "a ", "a\n", "a\tb", "\ud83c", "x" * 101, "other", None, 7, b"a"])
def test_is_name_refuses_when_a_text_cannot_be_a_label(name: object) -> None:
    """White space around, control characters, half characters, `other` and things that are no text are no names."""
    assert is_name(name) is False


@pytest.mark.parametrize(
    ("name", "common"),
    [
        ("Billing Agent", "billingagent"),
        ("billing_agent", "billingagent"),
        ("Billing-Agent.", "billingagent"),
        ("STRASSE", "strasse"),
        ("Straße", "strasse"),
        ("日本", "日本"),
        ("...", "..."),
        ("a1", "a1"),
    ],
)
def test_folded_gives_what_names_have_in_common_when_they_only_look_different(name: str, common: str) -> None:
    """Case, space and punctuation go; a name of punctuation alone stays what it is."""
    assert folded(name) == common
