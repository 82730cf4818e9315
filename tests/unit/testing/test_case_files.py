"""Reading case files, and writing expectations into them."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from handoffwatch import ConfigError, HandoffContext
from handoffwatch.testing import Expectation, read_cases
from handoffwatch.testing.case_files import update_case
from handoffwatch.testing.documents import FILE_BYTES_MAX, ContextFields, read_context
from handoffwatch.vocabulary import Verdict
from support.contract_cases import handoff, write_case

HINT = "a case has handoff or text, and expect: {verdict: blocked, codes: [missing_result at payload.result]}"
JSON_HINT = "put text that is no JSON object under the key text"
CASE_KEYS = "known keys: context, expect, handoff, note, now, source, target, text"
CONTEXT_KEYS = "known keys: attempt, consumed, context_version, finished_operations, handoff_id, run_id, task, task_id"
NO_TIME = "now: must be a time with its offset, such as 2027-01-31T12:00:00Z"
YAML = "text: '{}'\nexpect: {verdict: blocked, codes: [missing_field]}\n"
BLOCKED = Expectation(
    Verdict.BLOCKED, ("null_field at payload.order_id", "unknown_field at payload.a: b #c", "unknown_field at  ä ")
)


def _refused(path: Path) -> tuple[str, str]:
    with pytest.raises(ConfigError) as caught:
        read_cases(path)
    return caught.value.message.replace(f"{path}", path.name), caught.value.hint


def test_read_cases_returns_all_of_a_folder_in_order_when_they_are_of_both_kinds(tmp_path: Path) -> None:
    """Sub-folders count, other files and hidden ones do not."""
    write_case(tmp_path, "b/two.json", note="  the second ", source="executor", target="reviewer")
    for name in ("a.yaml", "c.yml"):
        (tmp_path / name).write_text(YAML, encoding="utf-8")
    write_case(tmp_path, ".hidden/case.json")
    (tmp_path / "README.md").write_text("about the cases", encoding="utf-8")
    first, second, third = read_cases(tmp_path)
    assert [first.name, second.name, third.name] == ["a.yaml", "b/two.json", "c.yml"]
    assert (first.raw, first.expected) == ("{}", Expectation(Verdict.BLOCKED, ("missing_field",)))
    assert (second.raw, second.note, second.source, second.target) == (handoff(), "the second", "executor", "reviewer")
    assert (second.expected, second.context, second.now_unix_s) == (None, None, None)


def test_read_cases_keeps_what_only_python_can_hold_when_the_file_is_json(tmp_path: Path) -> None:
    """NaN, huge numbers and halves of characters can be cases."""
    (tmp_path / "case.json").write_text('{"handoff": [NaN, 1e999, 123456789012345678901234567890, "\\ud800", null]}')
    (case,) = read_cases(tmp_path)
    assert isinstance(case.raw, list)
    assert math.isnan(case.raw[0])
    assert case.raw[1:] == [math.inf, 123456789012345678901234567890, "\ud800", None]


@pytest.mark.parametrize(
    ("name", "text", "message", "hint"),
    [
        (
            "a.yaml",
            "handoff: {}\nexpect:\n  verdict: allowd\n",
            "a.yaml:3: expect.verdict: must be 'allowed', 'warned', 'held' or 'blocked', got a text",
            HINT,
        ),
        ("a.yaml", "handoff: {}\nexpect:\n  codes: []\n", "a.yaml:2: expect.verdict: is required", HINT),
        (
            "a.yaml",
            "handoff: {}\nexpect:\n  verdict: blocked\n  codes:\n    - Missing field\n",
            "a.yaml:5: expect.codes.0: must be `code` or `code at path`",
            HINT,
        ),
        ("a.yaml", "expect: {verdict: blocked}\n", "a.yaml:1: document: must have handoff or text, and not both", HINT),
        ("a.yaml", "handoff: {}\ntext: '{}'\n", "a.yaml:1: document: must have handoff or text, and not both", HINT),
        (
            "a.yaml",
            "handoff: {}\ntarjet: reviewer\n",
            "a.yaml:2: tarjet: unknown key",
            f"did you mean target? {CASE_KEYS}",
        ),
        (
            "a.json",
            '{"handoff": {},\n "context": {\n  "tasc_id": "t-1"}}',
            "a.json:3: context.tasc_id: unknown key",
            f"did you mean task_id? {CONTEXT_KEYS}",
        ),
        (
            "a.yaml",
            "handoff: {}\ncontext:\n  context_version: '3'\n",
            "a.yaml:3: context.context_version: must be a whole number, got a text",
            HINT,
        ),
        ("a.yaml", "handoff: {}\nnow: 2027-01-31\n", f"a.yaml:2: {NO_TIME}", "remove the key to judge by the clock"),
        ("a.yaml", "handoff: {}\nnow: soon\n", f"a.yaml:2: {NO_TIME}", "remove the key to judge by the clock"),
        ("a.json", '{"handoff": {}\n "text": ""}', "a.json:2: not valid JSON: expecting ',' delimiter", JSON_HINT),
        ("a.json", '{"handoff": {},\n "handoff": []}', "a.json:2: handoff: must be given once", JSON_HINT),
        ("a.json", '{"text": "\n\udcff"}', "a.json:2: must be UTF-8 text", JSON_HINT),
        ("a.json", "[" * 100_000, "a.json:1: is nested too deeply", JSON_HINT),
        ("a.json", "[]", "a.json:1: document: must be a mapping of keys", HINT),
        (
            "a.yaml",
            "handoff: {\n",
            "a.yaml:2: not valid YAML: expected the node content, but found '<stream end>'",
            "check indentation and quotes",
        ),
        (
            "a.yaml",
            "handoff: 1\nhandoff: 2\n",
            "a.yaml:2: handoff: must be given once, got it on line 1 too",
            "remove one of the two",
        ),
        (
            "a.json",
            " " * (FILE_BYTES_MAX + 1),
            f"a.json: file: must be at most {FILE_BYTES_MAX} bytes",
            "make the case smaller",
        ),
    ],
)
def test_read_cases_says_where_when_a_file_is_wrong(
    tmp_path: Path, name: str, text: str, message: str, hint: str
) -> None:
    """File, line and key; never a value."""
    path = tmp_path / name
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert _refused(path) == (message, hint)


def test_read_cases_says_everything_at_once_when_several_files_are_wrong(tmp_path: Path) -> None:
    """A line for each mistake; the good files do not hide them."""
    write_case(tmp_path, "a.json", expect={"verdict": "allowed"})
    write_case(tmp_path, "b.json", nothing=1, other=2)
    (tmp_path / "c.yaml").write_text("expect: {}", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        read_cases(tmp_path)
    assert [line.rsplit(f"{tmp_path}/", 1)[1].split(": ", 1)[1] for line in caught.value.message.splitlines()] == [
        "nothing: unknown key",
        "other: unknown key",
        "document: must have handoff or text, and not both",
    ]


def test_read_cases_refuses_a_folder_when_it_has_no_case(tmp_path: Path) -> None:
    """No case is not a passed test; the name cannot steer a terminal."""
    empty = tmp_path / "emp\x1bty"
    empty.mkdir()
    shown = str(empty).replace("\x1b", "?")
    with pytest.raises(ConfigError) as caught:
        read_cases(empty)
    assert caught.value.message == f"{shown}: folder: must hold a case file (*.json, *.yaml), got none"
    with pytest.raises(ConfigError) as caught:
        read_cases(tmp_path / "none")
    assert caught.value.message == f"{tmp_path / 'none'}: folder: does not exist"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "# why\ntext: '{}'  # cut\nexpect:\n  verdict: held\n  codes:\n    - not_ready\n\n# the end\nnote: x\n",
            "# why\ntext: '{}'  # cut\n{block}\n\n# the end\nnote: x\n",
        ),
        ("text: '{}'\nexpect: {verdict: allowed}\n", "text: '{}'\n{block}\n"),
        ("'expect' : {verdict: held}\ntext: |\n  expect: none\n", "{block}\ntext: |\n  expect: none\n"),
        ("text: '{}'\n", "text: '{}'\n{block}\n"),
        ("text: '{}'", "text: '{}'\n{block}\n"),
        ("text: '{}'\r\nnote: x\r\n", "text: '{}'\r\nnote: x\r\n{block}\r\n"),
    ],
)
def test_update_case_changes_only_the_expectation_when_the_file_is_yaml(
    tmp_path: Path, before: str, after: str
) -> None:
    """Comments, order, quotes and line ends stay; what was written is what is read."""
    path = tmp_path / "case.yaml"
    path.write_bytes(before.encode())
    (case,) = read_cases(path)
    update_case(case, BLOCKED)
    newline = "\r\n" if "\r\n" in before else "\n"
    block = [
        "expect:",
        "  verdict: blocked",
        "  codes:",
        "    - null_field at payload.order_id",
        '    - "unknown_field at payload.a: b #c"',
        '    - "unknown_field at  ä "',
    ]
    assert path.read_bytes().decode() == after.replace("{block}", newline.join(block))
    (again,) = read_cases(path)
    assert (again.expected, again.raw, again.note) == (BLOCKED, case.raw, case.note)


def test_update_case_writes_an_empty_list_when_nothing_was_found(tmp_path: Path) -> None:
    """An allowed handoff has no codes, said openly."""
    path = tmp_path / "case.yaml"
    path.write_text("text: '{}'\n", encoding="utf-8")
    (case,) = read_cases(path)
    update_case(case, Expectation(Verdict.ALLOWED))
    assert path.read_text(encoding="utf-8") == "text: '{}'\nexpect:\n  verdict: allowed\n  codes: []\n"


def test_update_case_keeps_every_other_key_when_the_file_is_json(tmp_path: Path) -> None:
    """Also those that JSON proper does not know."""
    path = tmp_path / "case.json"
    path.write_text('{"note": "ä", "handoff": {"a": NaN, "b": 12345678901234567890, "c": 1.0, "d": "\\ud800"}}')
    (case,) = read_cases(path)
    update_case(case, BLOCKED)
    (again,) = read_cases(path)
    assert (again.expected, again.note, repr(again.raw)) == (BLOCKED, "ä", repr(case.raw))
    assert json.loads(path.read_text(encoding="utf-8"))["expect"] == BLOCKED.to_json()


@pytest.mark.parametrize(
    "text",
    [
        "{text: '{}', expect: {verdict: allowed}}\n",
        "expect: {verdict: held, codes: &a []}\nother: *a\n",
        "text: '{}'\n...\n",
        "text: '{}'\nexpect: {\nverdict: held}\n",
        "- a list\n",
    ],
)
def test_update_case_writes_nothing_when_more_than_the_expectation_would_change(tmp_path: Path, text: str) -> None:
    """A file in another style is left as it is, and the error says what to do."""
    path = tmp_path / "case.yaml"
    path.write_text("text: '{}'\n", encoding="utf-8")
    (case,) = read_cases(path)
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        update_case(case, BLOCKED)
    assert caught.value.message == f"{path}: expect: must begin a line of its own and hold no anchor"
    assert caught.value.hint == "write the file in YAML's block style, or as JSON"
    assert path.read_text(encoding="utf-8") == text


def test_context_fields_are_those_of_the_context() -> None:
    """A fact that the watchdog learns to use can be said in a file too."""
    assert tuple(ContextFields.model_fields) == HandoffContext._fields
    assert ContextFields().to_context() == HandoffContext()


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            "c.yaml",
            "task_id: t-1\ncontext_version: 3\nconsumed: [h-1]\n",
            HandoffContext(task_id="t-1", context_version=3, consumed=frozenset({"h-1"})),
        ),
        (
            "c.json",
            '{"attempt": 2, "finished_operations": []}',
            HandoffContext(attempt=2, finished_operations=frozenset()),
        ),
        ("c.yaml", "{}", HandoffContext()),
    ],
)
def test_read_context_returns_the_fields_when_the_file_is_right(
    tmp_path: Path, name: str, text: str, expected: HandoffContext
) -> None:
    """What is left out is as unknown as in code."""
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert read_context(tmp_path / name) == expected


def test_read_context_refuses_a_field_when_it_is_of_the_wrong_kind(tmp_path: Path) -> None:
    """Strictly: a text is no number, also where it looks like one."""
    path = tmp_path / "c.yaml"
    path.write_text("task_id: t-1\nattempt: 0\n", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        read_context(path)
    hint = f"the fields of a context are: {', '.join(HandoffContext._fields)}"
    assert (caught.value.message, caught.value.hint) == (f"{path}:2: attempt: must be at least 1, got 0", hint)
