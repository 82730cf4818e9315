"""What all dashboards share: variables, links, time, and the classic JSON that Grafana provisions from files.

grafana-foundation-sdk 0.0.21 leaves these out or writes them wrongly, and they are mended here: panels without an id,
variables with the fields of an interval, no built-in annotation layer, and links and layers that hide in a menu.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models import dashboard as model

from handoffwatch.mixin.panels import DATASOURCE, Panel
from handoffwatch.mixin.values import Values

TAG: Final = "handoffwatch"
_INTERVAL_ONLY: Final = ("auto", "auto_min", "auto_count")


def dashboard(
    *,
    uid: str,
    title: str,
    description: str,
    variables: Sequence[build.QueryVariable],
    rows: dict[str, Sequence[Panel]],
) -> dict[str, Any]:
    """Return a dashboard as classic JSON.

    Args:
        uid: Stable, at most 40 characters.
        title: Its name; "handoffwatch / " comes before it.
        description: The question it answers.
        variables: Its filters, after the data source.
        rows: Panels by the heading of their row; the places of the panels leave one line for each heading.
    """
    board = build.Dashboard(f"handoffwatch / {title}").uid(uid).description(description).tags([TAG])
    board = board.readonly().timezone("utc").time("now-6h", "now").refresh("30s")
    board = board.tooltip(model.DashboardCursorSync.CROSSHAIR).link(_siblings()).annotation(_built_in_layer())
    board = board.with_variable(build.DatasourceVariable("datasource").label("Data source").type("prometheus"))
    for variable in variables:
        board = board.with_variable(variable)
    for heading, panels in rows.items():
        top = min(_top(panel) for panel in panels)
        board = board.with_row(build.Row(heading).grid_pos(model.GridPos(h=1, w=24, x=0, y=top - 1)))
        for panel in panels:
            board = board.with_panel(panel)
    plain: dict[str, Any] = json.loads(json.dumps(board.build(), cls=JSONEncoder))
    return _mended(plain)


def filters(values: Values, *extra: build.QueryVariable) -> list[build.QueryVariable]:
    """Return the variables of the scrape targets and then the dashboard's own."""
    up = f'up{{job=~"{values.jobs}"}}'
    return [
        filter_variable("job", "Job", f"label_values({up}, job)"),
        filter_variable("instance", "Instance", f'label_values({up[:-1]}, job=~"$job"}}, instance)'),
        *extra,
    ]


def filter_variable(name: str, label: str, query: str) -> build.QueryVariable:
    """Return a variable that selects several values of a label, all of them at first."""
    everything = model.VariableOption(selected=True, text="All", value="$__all")
    return (
        build.QueryVariable(name)
        .label(label)
        .query({"query": query, "refId": f"variable-{name}", "qryType": 1})
        .definition(query)
        .datasource(DATASOURCE)
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(model.VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
        .all_value(".+")
        .current(everything)
    )


def _top(panel: Panel) -> int:
    place = panel.build().grid_pos
    assert place is not None
    return place.y


def _siblings() -> build.DashboardLink:
    link = build.DashboardLink("Dashboards").type(model.DashboardLinkType.DASHBOARDS).tags([TAG]).as_dropdown(True)
    return link.icon("external link").include_vars(True).keep_time(True)


def _built_in_layer() -> build.AnnotationQuery:
    grafana = common.DataSourceRef(type_val="grafana", uid="-- Grafana --")
    layer = build.AnnotationQuery().name("Annotations & Alerts").datasource(grafana).built_in(1).type("dashboard")
    return layer.enable(True).hide(True).icon_color("rgba(0, 211, 255, 1)")


def _mended(board: dict[str, Any]) -> dict[str, Any]:
    for number, panel in enumerate(board["panels"], start=1):
        panel["id"] = number
    for variable in board["templating"]["list"]:
        for field in _INTERVAL_ONLY:
            variable.pop(field, None)
    for shown in (*board["links"], *board["annotations"]["list"]):
        shown.pop("placement", None)
    return board
