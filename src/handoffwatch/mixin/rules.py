"""Rendering the Prometheus rule files from their templates.

The templates hold the rules as they will be read, with the values in `<< >>` and statements in `<% %>`, because
Prometheus' own templates take the double braces.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from handoffwatch.mixin.values import Values, seconds

_TEMPLATES: Final = Path(__file__).parent / "templates"
_SUFFIX: Final = ".jinja"


def render_rules(values: Values, *, overview_uid: str) -> dict[str, str]:
    """Return the text of each rule file by its name.

    Args:
        values: What the operator set.
        overview_uid: The dashboard that the alerts link to.
    """
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        undefined=StrictUndefined,
        variable_start_string="<<",
        variable_end_string=">>",
        block_start_string="<%",
        block_end_string="%>",
        comment_start_string="<#",
        comment_end_string="#>",
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["seconds"] = seconds
    dashboard_url = values.dashboard_url.replace("{uid}", overview_uid)
    return {
        name.removesuffix(_SUFFIX): environment.get_template(name).render(v=values, dashboard_url=dashboard_url)
        for name in sorted(environment.list_templates(filter_func=lambda name: name.endswith(_SUFFIX)))
    }
