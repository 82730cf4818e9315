"""Which exposition format an Accept header gets."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, Counter

from handoffwatch.exporter.negotiation import choose

_TEXT = "text/plain; version=0.0.4; charset=utf-8"
_TEXT_1 = "text/plain; version=1.0.0; charset=utf-8; escaping=underscores"
_OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores"
_PROMETHEUS_2 = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
_PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("", _TEXT),
        ("*/*", _TEXT),
        ("text/html,application/xhtml+xml,*/*;q=0.8", _TEXT),
        ("image/png", _TEXT),
        ("text/plain;version=1.0.0", _TEXT_1),
        (_PROMETHEUS_2, _OPENMETRICS),
        (_PROMETHEUS_3, _OPENMETRICS.replace("underscores", "allow-utf-8")),
        ("application/openmetrics-text;version=9.9.9", _TEXT),
        ("application/openmetrics-text;version=1.0.0;q=0.2,text/plain;version=0.0.4;q=0.9", _TEXT),
        ("application/openmetrics-text;version=1.0.0;q=0", _TEXT),
        ("application/openmetrics-text;version=1.0.0;q=high", _TEXT),
        (";;,=,q=,", _TEXT),
    ],
)
def test_choose_gives_the_best_known_format_when_asked(accept: str, content_type: str) -> None:
    """Quality decides, and a version that nobody knows is never promised."""
    assert choose(accept)[1] == content_type


def test_choose_gives_an_encoder_of_the_format_when_openmetrics_is_wanted() -> None:
    """The bytes are of the format that the content type names."""
    registry = CollectorRegistry()
    Counter("seen", "Things seen.", registry=registry).inc()

    encode, _ = choose(_PROMETHEUS_2)

    assert encode(registry).endswith(b"# EOF\n")
    assert b"\nseen_total 1.0\n" in choose("")[0](registry)
