"""Named transforms and their post-conditions."""

from __future__ import annotations

from typing import Any

import pytest

from handoffwatch.boundary.transforms import PATHS_MAX, Transform, Transforms, facts_kept
from handoffwatch.errors import RegistrationError


@pytest.mark.parametrize(
    ("answer", "expected"),
    [(True, None), (False, [""]), ([], None), (["a", "b", "a"], ["a", "b"]), (iter(["a"]), ["a"])],
)
def test_transform_says_where_it_is_broken_when_its_post_condition_answers(
    answer: Any, expected: list[str] | None
) -> None:
    """True and no paths hold; False is the value itself."""
    assert Transform("summary", lambda before, after: answer).broken_at({}, {}) == expected


def test_transform_names_twenty_paths_when_there_are_more() -> None:
    """An endless answer does not keep anybody waiting."""
    endless = (str(number) for number in iter(int, 1))
    many = [str(number) for number in range(50)]

    assert Transform("t", lambda before, after: many).broken_at(0, 0) == many[:PATHS_MAX]
    assert Transform("t", lambda before, after: endless).broken_at(0, 0) == ["0"]


@pytest.mark.parametrize("answer", [None, 1, "a.b", b"a", [1], 0, [None]])
def test_transform_raises_when_its_post_condition_answers_something_else(answer: Any) -> None:
    """A forgotten return is no yes."""
    with pytest.raises(TypeError):
        Transform("summary", lambda before, after: answer).broken_at({}, {})


def test_transforms_know_each_other_by_name_when_they_are_registered() -> None:
    """Exactly one transform has a name."""
    transforms = Transforms()
    summary = transforms.add("summary", lambda before, after: True)

    assert transforms.named("summary") is summary
    for name, message in [
        ("summary", "transform summary: name: was registered before"),
        ("", "transform: name: must be 1 to 100 printable characters, got str"),
        (3, "transform: name: must be 1 to 100 printable characters, got int"),
    ]:
        with pytest.raises(RegistrationError) as refused:
            transforms.add(name, lambda before, after: True)  # type: ignore[arg-type]
        assert refused.value.message == message
    with pytest.raises(RegistrationError, match="transform other: name: is not registered"):
        transforms.named("other")


HISTORY = [
    {"role": "user", "content": "…", "facts": [{"order": "4417"}, {"limit_cents": 5000}]},
    {"role": "assistant", "content": "…"},
    {"role": "user", "content": "…", "facts": [{"order": "4417"}, {"express": True}]},
]


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ([{"order": "4417"}, {"limit_cents": 5000}, {"express": True}, {"more": 1}], True),
        ([{"order": "4417"}, {"limit_cents": 5000.0}, {"express": 1}], ["0.facts.1", "2.facts.1"]),
        ([{"limit_cents": 5000}, {"express": True}], ["0.facts.0", "2.facts.0"]),
        ([], ["0.facts.0", "0.facts.1", "2.facts.0", "2.facts.1"]),
    ],
)
def test_facts_kept_names_the_facts_that_a_summary_lost_when_it_lost_some(facts: object, expected: object) -> None:
    """Each declared fact of the history stands among those of the summary, of the same type."""
    holds = facts_kept("*.facts.*", "facts.*")

    assert holds(HISTORY, {"summary": "a refund", "facts": facts}) == expected


def test_facts_kept_is_refused_when_a_path_is_none() -> None:
    """The mistake is named where it is written."""
    with pytest.raises(RegistrationError, match="facts_kept: after: must be keys and indices with dots, got int"):
        facts_kept("facts.*", 3)  # type: ignore[arg-type]
