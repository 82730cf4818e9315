"""The pages about the reason codes: one for each, written from `reasons`, and an index by group."""

from __future__ import annotations

import inspect
import json
import re
import textwrap
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Final

from handoffwatch import Decision, HandoffContext, Settings, TaskFacts, Watch
from handoffwatch.mixin.reason_examples import (
    CLOCK,
    EXAMPLES,
    RAISED_BY_FLOWS,
    ROUTE,
    ROUTES,
    Example,
    Findings,
)
from handoffwatch.reasons import REASONS, Reason
from handoffwatch.vocabulary import Reaction, Severity

FOLDER: Final = PurePosixPath("docs/reasons")

_WIDTH: Final = 120
_GROUPS: Final = {
    "structure": "Is it whole, and does it have the form that the contract names?",
    "completeness": "Is everything there that its status promises and the next step needs?",
    "plausibility": "Do its values agree with each other?",
    "identity": "Is it from and for whom it says, about this task, and new?",
    "boundary": "Did the state survive the crossing?",
    "flow": "What the program around the checks found.",
}
_EFFECTS: Final = {
    Reaction.BLOCK: "block: the receiver does not start",
    Reaction.HOLD: "hold: the receiver waits for a person",
    Reaction.FLAG: "flag: the receiver starts, a person looks later",
    Reaction.WARN: "warn: the receiver starts",
}
_SHOWN: Final = ("allowed", "reasons", "severity", "retryable", "verdict")
_INDEX_HEAD: Final = """\
# Reason codes

Rendered by `handoffwatch mixin render --docs` from `handoffwatch.reasons`. A decision names in `reasons` every code
that was found. Reaction, severity and whether the sender can repair it hold unless a contract or route says otherwise.
A contract's own rules add codes of their own: [contracts](../contracts.md).
"""
_TABLE: Final = "| code | reaction | severity | repairable | meaning |\n|---|---|---|---|---|\n"


def reason_pages() -> dict[PurePosixPath, str]:
    """Return the index and the page of each code as Markdown, by their paths."""
    pages = {FOLDER / f"{reason.code}.md": _page(reason) for reason in REASONS.values()}
    return {FOLDER / "README.md": _index(), **pages}


def judge(example: Example, raw: object, *, reactions: Mapping[str, str] | None = None) -> Decision:
    """Return what the watchdog says about an example.

    Args:
        example: Says by what the handoff is judged.
        raw: The example's handoff, as an object or as text.
        reactions: Those of the route, by reason code.
    """
    watch = Watch(settings=Settings(), clock=CLOCK)
    watch.route(ROUTE, contract=list(example.contracts), reactions=reactions)
    for name in ROUTES[1:]:
        watch.route(name, contract=Findings)
    return watch.watchdog.inspect(raw, expected_target=example.expected_target, context=example.context)


def _index() -> str:
    parts = [_INDEX_HEAD]
    for group, question in _GROUPS.items():
        rows = "".join(_row(reason) for reason in REASONS.values() if reason.group == group)
        parts.append(f"## {group}\n{question}\n\n{_TABLE}{rows}")
    return "\n".join(parts)


def _row(reason: Reason) -> str:
    link = f"[{reason.code}]({reason.code}.md)"
    meaning = _sentence(reason.meaning)
    return f"| {link} | {reason.reaction} | {reason.severity} | {_repairable(reason)} | {meaning} |\n"


def _repairable(reason: Reason) -> str:
    if reason.reaction is not Reaction.BLOCK:
        return "nothing to repair"
    return "yes" if reason.retryable and reason.severity is not Severity.CRITICAL else "no"


def _page(reason: Reason) -> str:
    example = EXAMPLES.get(reason.code)
    parts = [
        f"# {reason.code}",
        f"Rendered by `handoffwatch mixin render --docs`. Group: [{reason.group}](README.md#{reason.group}).",
        _sentence(reason.meaning),
        _defaults(reason),
        "## Example",
        *([_sentence(reason.example)] if example is None else _example(reason, example)),
        "## What the sender should do",
        _sentence(reason.advice),
        *(_what_raises(reason) if example is None else _configuration(reason, example)),
        "## Where it shows",
        *_places(reason),
    ]
    return "\n\n".join(parts) + "\n"


def _defaults(reason: Reason) -> str:
    return (
        "| reaction unless said otherwise | severity | can the sender repair it? |\n|---|---|---|\n"
        f"| {_EFFECTS[reason.reaction]} | {reason.severity} | {_repairable(reason)} |"
    )


def _example(reason: Reason, example: Example) -> list[str]:
    raw = example.handoff()
    shown = _block("json", _json(raw)) if example.make is None else _block("python", inspect.getsource(example.make))
    judged = f", judged with `{_call(example)}`," if _call(example) else ""
    around = " (`HANDOFF` is the envelope of the other examples)" if "HANDOFF" in shown else ""
    classes = [inspect.getsource(shown_class) for shown_class in (*example.models, *example.contracts)]
    return [
        _wrapped(f"{_sentence(reason.example)} {example.given}"),
        f"With this contract on `{ROUTE}`" if len(example.contracts) == 1 else f"With these contracts on `{ROUTE}`",
        _block("python", "\n\n".join(classes)),
        f"this handoff{around}{judged}",
        shown,
        "gives this decision (its main parts):",
        _block("json", _main_parts(judge(example, raw))),
    ]


def _call(example: Example) -> str:
    arguments = []
    if example.expected_target is not None:
        arguments.append(f'expected_target="{example.expected_target}"')
    if example.context is not None:
        arguments.append(f"context={_context(example.context)}")
    return ", ".join(arguments)


def _context(context: HandoffContext) -> str:
    """Return the expression that makes a context, without the fields that say nothing."""
    return _made(context).replace("'", '"')


def _made(facts: HandoffContext | TaskFacts) -> str:
    said = {name: value for name, value in facts._asdict().items() if value != facts._field_defaults[name]}
    shown = {name: _made(value) if isinstance(value, TaskFacts) else repr(value) for name, value in said.items()}
    return f"{type(facts).__name__}({', '.join(f'{name}={value}' for name, value in shown.items())})"


def _main_parts(decision: Decision) -> str:
    said: dict[str, object] = {name: getattr(decision, name) for name in _SHOWN}
    found = [{"code": item.code, "path": item.path, "sentence": item.sentence} for item in decision.findings]
    lines = [f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in said.items()]
    rows = ",\n".join(f"    {json.dumps(item)}" for item in found)
    return "{\n" + ",\n".join([*lines, f'  "findings": [\n{rows}\n  ]']) + "\n}"


def _what_raises(reason: Reason) -> list[str]:
    return ["## What raises it", _wrapped(RAISED_BY_FLOWS[reason.code])]


def _configuration(reason: Reason, example: Example) -> list[str]:
    """Return how a contract asks for the rule, and how a route reacts otherwise where it can."""
    other = Reaction.WARN if reason.reaction is Reaction.BLOCK else Reaction.BLOCK
    parts = ["## How to configure it", _wrapped(example.configured)]
    if reason.code == "check_failed":
        return parts
    decision = judge(example, example.handoff(), reactions={reason.code: other})
    if other not in {item.reaction for item in decision.findings if item.code == reason.code}:
        return [*parts, "No route is found here, so there is none that could react in another way."]
    bare = decision.allowed and decision.normalized_payload is None
    as_it_came = " A milder reaction delivers the handoff as it came, not validated." if bare else ""
    return [
        *parts,
        _wrapped(f"A route may react in another way, in code or in `handoffwatch.yaml`.{as_it_came}"),
        _block("python", f'watch.route("{ROUTE}", contract=…, reactions={{"{reason.code}": "{other}"}})'),
        _block("yaml", f'handoffs: {{routes: {{"{ROUTE}": {{reactions: {{{reason.code}: {other}}}}}}}}}'),
    ]


def _places(reason: Reason) -> list[str]:
    blocks = (
        "A blocked attempt also counts in `handoffwatch_handoff_blocks_total`, which the panels *Block rate by route* "
        "and *Block rate over time* of the Overview dashboard show, and writes the log line `handoff blocked`. "
    )
    own = (
        'It also counts in `handoffwatch_internal_errors_total{component="watchdog"}`, since it is no fault of the '
        "sender. "
    )
    return [
        "`handoffwatch_handoff_findings_total` counts the attempts in which it was found:",
        f'    sum by (route, schema_version, mode, reaction) (\n      increase(handoffwatch_handoff_findings_total'
        f'{{reason="{reason.code}"}}[1d])) > 0',
        _wrapped(
            f"{blocks if reason.reaction is Reaction.BLOCK else ''}{own if reason.code == 'check_failed' else ''}"
            "The span `handoff {target}` names the code in `handoffwatch.handoff.reasons` and the places in "
            "`handoffwatch.handoff.paths`. No alert is made for one code: how often it is normal, a team knows."
        ),
    ]  # fmt: skip


def _json(handoff: Any) -> str:
    """Return a handoff as JSON with one line for each field of its envelope."""
    assert isinstance(handoff, Mapping)
    return "{\n" + ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in handoff.items()) + "\n}"


def _block(language: str, text: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```"


def _sentence(text: str) -> str:
    """Return a text as a sentence; a name in backticks keeps its first letter."""
    return f"{text[:1].upper()}{text[1:]}."


def _wrapped(text: str) -> str:
    """Return a paragraph in lines of at most 120 characters; what stands in backticks is not split."""
    held = re.sub(r"`[^`]*`", lambda found: found.group().replace(" ", "\0"), text.strip())
    lines = textwrap.fill(held, _WIDTH, break_long_words=False, break_on_hyphens=False)
    return lines.replace("\0", " ")
