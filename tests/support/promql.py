"""Which series and labels a PromQL expression uses, and whether a set of metrics has them.

This reads tokens, not grammar: promtool has judged the grammar of the rules, and Prometheus that of the panels.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from handoffwatch.catalogue import Kind, Metric, Registered

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|\#[^\n]*)
    | (?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`[^`]*`)
    | (?P<range>\[[^\]]*\])
    | (?P<number>(?:[0-9][0-9a-zA-Z_.]*|\.[0-9]+))
    | (?P<word>[a-zA-Z_:][a-zA-Z0-9_:]*)
    | (?P<sign>=~|!~|!=|==|>=|<=|[-+*/%^=<>(){},@])
    """,
    re.VERBOSE,
)
_GROUPING = {"by", "without", "on", "ignoring", "group_left", "group_right"}
_WORDS = {"and", "or", "unless", "offset", "bool", "atan2", "inf", "nan"}
_GRAFANA = re.compile(r"\$__\w+|\$\{__\w+\}")
_HISTOGRAM = re.compile(r"_(?:bucket|sum|count)$")
_TARGET_LABELS = {"job", "instance"}

PROMETHEUS_SERIES: Mapping[str, frozenset[str]] = {
    "up": frozenset(),
    "ALERTS": frozenset({"alertname", "alertstate", "severity", "ledger", "workflow", "operation"}),
    "scrape_duration_seconds": frozenset(),
    "scrape_samples_scraped": frozenset(),
}
"""The series that Prometheus itself makes, with the labels that our alerts give them."""


@dataclass(slots=True)
class Selector:
    """One series selector: its metric and its matchers (label, operator, value)."""

    name: str
    matchers: list[tuple[str, str, str]] = field(default_factory=list)


@dataclass(slots=True)
class Usage:
    """What one expression uses.

    Attributes:
        where: The alert, record or panel, for messages.
        selectors: In the order of the text.
        groupings: Labels after by, without, on and their like.
        divides: Whether it divides.
    """

    where: str
    selectors: list[Selector] = field(default_factory=list)
    groupings: set[str] = field(default_factory=set)
    divides: bool = False

    @property
    def names(self) -> set[str]:
        """The names of all series."""
        return {selector.name for selector in self.selectors}


def tokens(expr: str) -> list[tuple[str, str]]:
    """Return kind and text of each token, without white space and comments.

    Raises:
        ValueError: A sign that PromQL does not have.
    """
    found, at = [], 0
    text = _GRAFANA.sub("5m", expr)
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"cannot read {text[at : at + 20]!r} in {expr}")
        if match.lastgroup != "space":
            found.append((str(match.lastgroup), match.group()))
        at = match.end()
    return found


def usage(where: str, expr: str) -> Usage:
    """Return what an expression uses."""
    used = Usage(where)
    stream = tokens(expr)
    at = 0
    while at < len(stream):
        kind, text = stream[at]
        following = stream[at + 1][1].lower() if at + 1 < len(stream) else ""
        if text == "/":
            used.divides = True
        elif kind == "word" and text.lower() in _GROUPING:
            if following == "(":
                end = stream.index(("sign", ")"), at)
                used.groupings |= {word for part, word in stream[at:end] if part == "word"} - {text}
                at = end
        elif text == "{":
            end = stream.index(("sign", "}"), at)
            used.selectors[-1].matchers += _matchers(stream[at + 1 : end])
            at = end
        elif kind == "word" and following not in {"(", *_GROUPING} and text.lower() not in _WORDS:
            used.selectors.append(Selector(text))
        at += 1
    return used


def recorded_labels(expr: str) -> frozenset[str]:
    """Return the labels of a recorded series: those that its aggregation keeps."""
    return frozenset(usage("", expr).groupings)


def problems(
    usages: Iterable[Usage], metrics: Sequence[Metric], recorded: Mapping[str, frozenset[str]]
) -> list[str]:  # fmt: skip
    """Return a sentence for each series, label or label value that nothing gives."""
    return sorted({sentence for used in usages for sentence in _problems(used, metrics, recorded)})


def metric_of(name: str, metrics: Sequence[Metric]) -> Metric | None:
    """Return the metric that a series belongs to; a histogram has three series."""
    by_name = {metric.full_name: metric for metric in metrics}
    base = by_name.get(_HISTOGRAM.sub("", name))
    if base is not None and base.kind is Kind.HISTOGRAM and name != base.full_name:
        return base
    found = by_name.get(name)
    return found if found is not None and found.kind is not Kind.HISTOGRAM else None


def _problems(used: Usage, metrics: Sequence[Metric], recorded: Mapping[str, frozenset[str]]) -> Iterator[str]:
    known: set[str] = set()
    for selector in used.selectors:
        metric = metric_of(selector.name, metrics)
        if metric is not None:
            labels = {*metric.label_names, *_TARGET_LABELS, *(("le",) if selector.name.endswith("_bucket") else ())}
        elif selector.name in recorded:
            labels = set(recorded[selector.name])
        elif selector.name in PROMETHEUS_SERIES:
            labels = {*PROMETHEUS_SERIES[selector.name], *_TARGET_LABELS}
        else:
            yield f"{used.where}: unknown series {selector.name}"
            continue
        known |= labels
        for label, operator, value in selector.matchers:
            if label not in labels:
                yield f"{used.where}: {selector.name} has no label {label}"
            elif metric is not None:
                yield from _value_problems(used.where, metric, label, operator, value)
    if len(known) and (missing := used.groupings - known):
        yield from (f"{used.where}: no series has the label {label}" for label in missing)


def _value_problems(where: str, metric: Metric, label: str, operator: str, value: str) -> Iterator[str]:
    closed = next((entry.values for entry in metric.labels if entry.name == label), Registered.TEXT)
    if isinstance(closed, Registered) or value.startswith("$"):
        return
    for wanted in value.split("|") if "~" in operator else [value]:
        if wanted not in closed:
            yield f"{where}: {metric.full_name} has no {label} {wanted}"


def _matchers(stream: Sequence[tuple[str, str]]) -> list[tuple[str, str, str]]:
    parts = [text for kind, text in stream if text != ","]
    return [(parts[at], parts[at + 1], parts[at + 2][1:-1]) for at in range(0, len(parts), 3)]
