"""Reading a handoff as it comes, into one plain object and the JSON text that its contract judges."""

from __future__ import annotations

from typing import Any, Final

from handoffwatch.decision import Finding
from handoffwatch.handoffs.structure import finding, findings_of_faults, kind_in_words
from handoffwatch.handoffs.truncation import is_cut_off, judge_truncation
from handoffwatch.values.json_text import (
    Shape,
    TooDeep,
    decode,
    encode,
    find_faults,
    members_of,
    survey,
)

PAYLOAD_BYTES_MAX: Final = 1024 * 1024
"""The largest handoff that is judged, as JSON text, unless settings say otherwise. Source: DESIGN section 11."""

_BYTES_MIN: Final = 2
"""The fewest bytes of one value and what parts it from the next."""


def read_handoff(raw: object, findings: list[Finding], *, bytes_max: int) -> tuple[dict[str, Any], bytes]:
    """Return a handoff as a plain object and as JSON text; the text is empty when `findings` say why there is none.

    Args:
        raw: A dict, a model, JSON text as str or bytes; anything else is a finding.
        findings: Gets what is wrong with it.
        bytes_max: The largest JSON text that is judged.
    """
    value, text = raw, b""
    if type(raw) is not dict and isinstance(raw, str | bytes | bytearray):
        value = _parsed(raw, findings, bytes_max)
    if not findings:
        value, text = _encoded(value, findings, bytes_max)
    if isinstance(value, dict):
        return value, text
    if not findings:
        findings.append(finding("type_mismatch", "$", f"the handoff must be an object, and is {kind_in_words(value)}"))
    return {}, b""


def _parsed(raw: str | bytes | bytearray, findings: list[Finding], bytes_max: int) -> object:
    if len(raw) > bytes_max:
        findings.append(_too_large(bytes_max))
        return None
    try:
        return decode(bytes(raw) if isinstance(raw, bytearray) else raw)
    except TooDeep:
        findings.append(finding("too_deep", "$", "the handoff must be nested less deeply"))
    except ValueError:
        if is_cut_off(raw if isinstance(raw, str) else bytes(raw)):
            judge_truncation(findings, {}, raw_text_ended=False)
        else:
            findings.append(finding("unparsable_text", "$", "the handoff must be one complete JSON object"))
    return None


def _encoded(value: object, findings: list[Finding], bytes_max: int) -> tuple[object, bytes]:
    """Return what is judged, and its JSON text: the value itself when it is plain, else what the text says."""
    shape = survey(value, values_max=bytes_max // _BYTES_MIN)
    text = b""
    if shape is Shape.TOO_LARGE:
        findings.append(_too_large(bytes_max))
    elif shape is Shape.TOO_DEEP:
        findings += findings_of_faults(find_faults(value))
    else:
        try:
            text = encode(value)
        except (TypeError, ValueError, RecursionError):
            findings += findings_of_faults(find_faults(value))
            if not findings:
                findings.append(finding("not_serialisable", "$", "the handoff must be plain data"))
    if len(text) > bytes_max:
        findings.append(_too_large(bytes_max))
    elif text and shape is Shape.BENT:
        findings += findings_of_faults(find_faults(value))
    if findings:
        return _envelope_of(value), b""
    return value if shape is Shape.PLAIN else decode(text), text


def _envelope_of(value: object) -> object:
    """Return what can be judged of an object that cannot be encoded: its texts and numbers, without its payload."""
    members = members_of(value)
    if members is None:
        return value
    return {key: item for key, item in members.items() if type(key) is str and type(item) in (str, int)}


def _too_large(bytes_max: int) -> Finding:
    return finding("too_large", "$", f"the handoff must be at most {bytes_max} bytes")
