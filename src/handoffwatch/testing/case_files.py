"""Case files: one contract case each, as JSON or YAML, in a folder and its sub-folders.

    note: the reviewer cannot work without a result     # why there is this case; optional
    handoff: {handoff_id: h-1, status: completed, …}    # the handoff as data, or
    text: '{"handoff_id": "h-1", …'                     # the text as the model wrote it
    source: executor                                    # the sender that the orchestrator knows; optional
    target: reviewer                                    # the receiver that it is about to start; optional
    context: {task_id: t-1, context_version: 3}         # fields of HandoffContext; optional
    now: 2027-01-31T12:00:00Z                           # judge as if it were this time; optional
    expect:
      verdict: blocked                                  # allowed, warned, held or blocked
      codes:                                            # every code that is found, in any order; none unless said
        - missing_result at payload.result              # at this path, or
        - missing_field                                 # wherever, and however often

Unknown keys are errors. A YAML number must look as when written back (`0.1`, not `0.10`), else it is a text; JSON has
no such rule. `update_case` writes `expect` again and leaves the rest of a YAML file as it is, comments included; a JSON
file is written with two spaces.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import Field

from handoffwatch.errors import ConfigError
from handoffwatch.testing.cases import AT, Case, Expectation
from handoffwatch.testing.documents import ContextFields, Document, parse_document, printable, read_document
from handoffwatch.values.json_text import is_encodable
from handoffwatch.values.settings_model import SettingsModel
from handoffwatch.values.settings_problems import joined
from handoffwatch.vocabulary import Verdict

SUFFIXES: Final = (".json", ".yaml", ".yml")

_HINT: Final = "a case has handoff or text, and expect: {verdict: blocked, codes: [missing_result at payload.result]}"
_CODE: Final = re.compile(rf"[a-z][a-z0-9_]*(?:{AT}.+)?")
_PLAIN: Final = re.compile(r"[a-z](?:[A-Za-z0-9_.*$ -]*[A-Za-z0-9_.*$-])?")
_EXPECT: Final = re.compile(r"""(?:expect|"expect"|'expect')\s*:""")


class _Expect(SettingsModel):
    verdict: Literal["allowed", "warned", "held", "blocked"] | None = None
    codes: list[str] = Field(default_factory=list)


class _CaseFile(SettingsModel):
    note: str = ""
    handoff: Any = None
    text: str = ""
    source: str | None = Field(None, min_length=1)
    target: str | None = Field(None, min_length=1)
    context: ContextFields = ContextFields()
    now: str | None = None
    expect: _Expect = _Expect()


def read_cases(folder: str | Path) -> list[Case]:
    """Return the cases of a folder and its sub-folders, ordered by name.

    Files of other kinds are left alone, and so is what begins with a dot.

    Args:
        folder: The folder, or one case file.

    Raises:
        ConfigError: There is no such folder or no case in it, or files cannot be read; then the message has a line
            `file:line: key: rule` for each thing that is wrong.
    """
    top = Path(folder)
    shown = printable(str(top))
    if top.is_file():
        return [_read_case(top, top.name)]
    if not top.is_dir():
        raise ConfigError(f"{shown}: folder: does not exist", hint="name the folder that holds the case files")
    files = sorted(path for path in top.rglob("*") if _is_case(path.relative_to(top)) and path.is_file())
    if not files:
        raise ConfigError(f"{shown}: folder: must hold a case file (*.json, *.yaml), got none", hint=_HINT)
    cases: list[Case] = []
    errors: list[ConfigError] = []
    for file in files:
        try:
            cases.append(_read_case(file, file.relative_to(top).as_posix()))
        except ConfigError as error:
            errors.append(error)
    if errors:
        raise joined(errors)
    return cases


def update_case(case: Case, expected: Expectation) -> None:
    """Write an expectation into the file of a case; everything else in it stays as it is.

    Raises:
        ConfigError: The file cannot be read any more, or cannot be written, or more than `expect` would change.
    """
    document = read_document(case.file)
    if document.is_json:
        data = dict(document.data) if isinstance(document.data, dict) else {}
        data |= {"expect": expected.to_json()}
        text = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
        if not is_encodable(text):
            text = json.dumps(data, indent=2) + "\n"
    else:
        text = _with_expect(document.text.decode("utf-8-sig"), _block(expected))
    new = text.encode()
    _refuse_other_changes(document, new, expected)
    try:
        case.file.write_bytes(new)
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise ConfigError(f"{document.name}: file: cannot be written: {reason}", hint="make it writable") from None


def _is_case(path: Path) -> bool:
    return path.suffix in SUFFIXES and not any(part.startswith(".") for part in path.parts)


def _read_case(file: Path, name: str) -> Case:
    document = read_document(file)
    fields = document.validated(_CaseFile, hint=_HINT)
    given = fields.model_fields_set
    if len(given & {"handoff", "text"}) != 1:
        raise document.refused((), "must have handoff or text, and not both", hint=_HINT)
    return Case(
        name=printable(name),
        file=file,
        raw=fields.handoff if "handoff" in given else fields.text,
        source=fields.source,
        target=fields.target,
        context=fields.context.to_context() if "context" in given else None,
        now_unix_s=_unix_s(document, fields.now),
        note=printable(fields.note.strip()),
        expected=_expectation(document, fields.expect) if "expect" in given else None,
    )


def _expectation(document: Document, expect: _Expect) -> Expectation:
    if expect.verdict is None:
        raise document.refused(("expect", "verdict"), "is required", hint=_HINT)
    for index, code in enumerate(expect.codes):
        if not _CODE.fullmatch(code):
            raise document.refused(("expect", "codes", index), "must be `code` or `code at path`", hint=_HINT)
    return Expectation(Verdict(expect.verdict), tuple(expect.codes))


def _unix_s(document: Document, text: str | None) -> float | None:
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        rule = "must be a time with its offset, such as 2027-01-31T12:00:00Z"
        raise document.refused(("now",), rule, hint="remove the key to judge by the clock")
    return time.timestamp()


def _block(expected: Expectation) -> list[str]:
    codes = [
        f"    - {code if _PLAIN.fullmatch(code) else json.dumps(code, ensure_ascii=False)}" for code in expected.codes
    ]
    return ["expect:", f"  verdict: {expected.verdict}", *(["  codes:", *codes] if codes else ["  codes: []"])]


def _with_expect(text: str, block: Iterable[str]) -> str:
    """Return a YAML text with the block in place of its top-level key `expect`, or at its end when it has none."""
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = text.splitlines()
    begin = next((index for index, line in enumerate(lines) if _EXPECT.match(line)), len(lines))
    end = begin + 1
    while end < len(lines) and (not lines[end] or lines[end][0] in " \t#"):
        end += 1
    while end > begin + 1 and (not lines[end - 1].strip() or lines[end - 1].startswith("#")):
        end -= 1
    return newline.join([*lines[:begin], *block, *lines[end:]]) + newline


def _refuse_other_changes(old: Document, new: bytes, expected: Expectation) -> None:
    """Refuse to write a text in which anything but the expectation would differ."""
    before = dict(old.data) if isinstance(old.data, dict) else {}
    wanted = before | {"expect": expected.to_json()}
    try:
        written = parse_document(new, name=old.name, is_json=old.is_json).data
    except ConfigError:
        written = None
    if json.dumps(written, sort_keys=True) != json.dumps(wanted, sort_keys=True):
        raise ConfigError(
            f"{old.name}: expect: must begin a line of its own and hold no anchor",
            hint="write the file in YAML's block style, or as JSON",
        )
