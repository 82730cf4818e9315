"""The landing page: what this exporter is, what it settles, and what is registered."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

_STYLE: Final = resources.files(__package__).joinpath("landing.css").read_text(encoding="utf-8")

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    f"style-src 'sha256-{base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()}'"
)
"""Nothing is loaded or run, and only the page's own style is applied."""


@dataclass(frozen=True, slots=True)
class Table:
    """One list of registrations."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Landing:
    """What the page says.

    Attributes:
        version: The product's version.
        ledger: The ledger's id as it stands in the label, or an empty text when it cannot be read.
        ledger_problem: Why it cannot be read.
        settling: Whether this process settles or only serves, and why.
        tables: The registrations.
    """

    version: str
    ledger: str
    ledger_problem: str
    settling: str
    tables: Sequence[Table]


def render(page: Landing) -> str:
    """Return the page as HTML that needs nothing from elsewhere."""
    return _template().render(page=page, style=Markup(_STYLE))


@cache
def _template() -> Template:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    source = resources.files(__package__).joinpath("landing.html.j2").read_text(encoding="utf-8")
    return environment.from_string(source)
