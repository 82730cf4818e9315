"""`handoffwatch compare`: whether a state survived its crossing, by the policy of a boundary."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Final

import typer

from handoffwatch.cli.boundary_files import read_bytes, read_policy_file
from handoffwatch.cli.report import CHECK_SAID_NO
from handoffwatch.cli.stored import JsonOption
from handoffwatch.cli.terminal import NOTHING, fields, print_blocks, print_json, printable, say, section, table
from handoffwatch.errors import ConfigError
from handoffwatch.vocabulary import Reaction

if TYPE_CHECKING:
    from handoffwatch.boundary.comparison import Capture
    from handoffwatch.boundary.policy import BoundaryPolicy
    from handoffwatch.boundary.transforms import Transforms
    from handoffwatch.decision import Finding

VALUE_CHARACTERS_MAX: Final = 200

_COLUMNS: Final = ("REACTION", "CODE", "PATH", "WHAT WOULD BE RIGHT")
_TRANSFORMS_HINT: Final = "name a Transforms, as in shop.policies:transforms"


def compare_states(
    before: Annotated[str, typer.Argument(metavar="BEFORE", help="The state that left, as JSON.", show_default=False)],
    after: Annotated[str, typer.Argument(metavar="AFTER", help="The state that arrived, as JSON.", show_default=False)],
    policy: Annotated[
        str, typer.Option(metavar="FILE", help="The policy of the boundary, as YAML.", show_default=False)
    ],
    route: Annotated[str | None, typer.Option(metavar="A->B", help="The route whose overrides hold.")] = None,
    transforms: Annotated[
        str | None, typer.Option(metavar="MODULE:ATTR", help="The Transforms that the policy names.")
    ] = None,
    as_json: JsonOption = False,
    show_values: Annotated[bool, typer.Option("--show-values", help="Print the values too, redacted.")] = False,
) -> None:
    """Print where two states differ: files of your own, or two snapshots.

    What a snapshot redacts or omits cannot be compared. Exit codes: 0 when the second state is what the policy asks
    for, 3 when it is not, 2 for wrong usage.
    """
    from handoffwatch.boundary.comparison import capture, compare

    rules = read_policy_file(policy).policy_of(route or "", transforms=_transforms(transforms))
    sides = capture(_state(before, rules), rules), capture(_state(after, rules), rules)
    compared = compare(*sides, rules)
    pairs = zip(compared.findings, compared.patterns, strict=True)
    found = [finding for finding, pattern in pairs if not _is_omitted(pattern, sides, rules)]
    values = list(_values(found, sides, rules)) if show_values else [{}] * len(found)
    blocking = sum(finding.reaction is Reaction.BLOCK for finding in found)
    if as_json:
        print_json({"equal": not blocking, "findings": _as_json(found, values)})
    else:
        print_blocks([table(_COLUMNS, map(_row, found)), *(_blocks(found, values) if show_values else ())])
        warnings = f", {_counted(len(found) - blocking, 'warning')}" if len(found) > blocking else ""
        say(f"{_counted(blocking, 'divergence') if blocking else 'equal'}{warnings}")
    if blocking:
        raise typer.Exit(CHECK_SAID_NO)


def _state(file: str, policy: BoundaryPolicy) -> object:
    from handoffwatch.values.json_text import TooDeep, decode

    text = read_bytes(file, bytes_max=policy.bytes_max)
    try:
        return decode(text)
    except TooDeep:
        rule = "is nested too deeply"
    except ValueError:
        rule = "must be JSON"
    raise ConfigError(f"{printable(file)}: file: {rule}", hint="write the state as one JSON value in UTF-8")


def _transforms(spec: str | None) -> Transforms:
    from handoffwatch.boundary.transforms import Transforms

    if spec is None:
        return Transforms()
    from handoffwatch.cli.registry import load_object

    found = load_object(spec, where="--transforms", hint=_TRANSFORMS_HINT)
    if not isinstance(found, Transforms):
        what = f"--transforms: {printable(spec)}: must be a Transforms, got a {type(found).__name__}"
        raise ConfigError(what, hint=_TRANSFORMS_HINT)
    return found


def _is_omitted(pattern: str, sides: tuple[Capture, ...], policy: BoundaryPolicy) -> bool:
    """Return whether a path is on neither side because snapshots leave it out."""
    from handoffwatch.values.difference import trace
    from handoffwatch.values.paths import leads_to

    parts = pattern.split(".")
    above = [parts[:length] for length in range(1, len(parts) + 1)]
    is_named = any(leads_to(path, place) for path in policy.omit for place in above)
    return is_named and not any(trace(side.form.tree, pattern).found for side in sides)


def _values(findings: list[Finding], sides: tuple[Capture, ...], policy: BoundaryPolicy) -> Iterator[dict[str, object]]:
    """Yield for each finding what stands at its path before and after, without what is secret; nothing is left out."""
    before, after = (policy.redaction.redacted(side.form.value) for side in sides)
    for finding in findings:
        found = {"before": _at(before, finding.path), "after": _at(after, finding.path)}
        yield {name: values[0] for name, values in found.items() if values}


def _at(state: object, path: str) -> list[object]:
    """Return the one value at a path, or the mark in the place of what it stands in; none when it is not there."""
    from handoffwatch.values.paths import places
    from handoffwatch.values.secret_shapes import REDACTED

    for part in path.split(".") if path != "$" else ():
        if state == REDACTED:
            break
        found = list(places(state, part))
        if not found:
            return []
        state = found[0][1]
    return [state]


def _as_json(findings: list[Finding], values: list[dict[str, object]]) -> list[dict[str, object]]:
    return [finding._asdict() | value for finding, value in zip(findings, values, strict=True)]


def _blocks(findings: list[Finding], values: list[dict[str, object]]) -> Iterator[list[str]]:
    for finding, value in zip(findings, values, strict=True):
        yield section(printable(finding.path), fields({name: _text(value, name) for name in ("before", "after")}))


def _text(value: dict[str, object], name: str) -> str:
    text = json.dumps(value[name], ensure_ascii=False) if name in value else NOTHING
    return text if len(text) <= VALUE_CHARACTERS_MAX else f"{text[:VALUE_CHARACTERS_MAX]}…"


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _row(finding: Finding) -> tuple[str, ...]:
    return tuple(map(printable, (finding.reaction, finding.code, finding.path, finding.sentence)))
