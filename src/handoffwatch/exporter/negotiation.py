"""Which exposition format a request gets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

Encoder = Callable[[Collector], bytes]

_OPENMETRICS: Final = "application/openmetrics-text"
_TEXT: Final = "text/plain"
_VERSIONS: Final = {_OPENMETRICS: ("", "1.0.0"), _TEXT: ("", "0.0.4", "1.0.0"), "text/*": ("",), "*/*": ("",)}


def choose(accept: str) -> tuple[Encoder, str]:
    """Return the encoder and the content type for an Accept header.

    The best by quality wins, the first among equals; what nobody can name gets the classic text format.
    prometheus_client alone ignores qualities and answers with a version that it was asked for and does not know.

    Source: RFC 9110 section 12.5.1; prometheus/prometheus, scrape protocols.
    """
    candidates = [candidate for entry in accept.split(",") if (candidate := _candidate(entry)) is not None]
    best = max(candidates, key=lambda candidate: candidate[0], default=(0.0, ""))
    return choose_encoder(best[1])


def _candidate(entry: str) -> tuple[float, str] | None:
    """Return quality and entry, or None for a format, version or quality that is not known or not wanted."""
    media, *parameters = (part.strip() for part in entry.split(";"))
    given = dict(parameter.split("=", 1) for parameter in parameters if "=" in parameter)
    if given.get("version", "") not in _VERSIONS.get(media.lower(), ()):
        return None
    try:
        quality = float(given.get("q", "1"))
    except ValueError:
        return None
    return (quality, entry) if 0 < quality <= 1 else None
