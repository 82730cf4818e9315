"""The kinds of panel that the dashboards are made of, with the same look everywhere.

Each panel gets here what grafana-foundation-sdk 0.0.21 leaves out: a data source on itself and on its targets, and a
reference of its own on each target. What it leaves out of the dashboard as a whole is added in `dashboard.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Final

from grafana_foundation_sdk.builders import bargauge, common, prometheus, stat, table, timeseries
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.models import common as common_model
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

DATASOURCE: Final = common_model.DataSourceRef(type_val="prometheus", uid="${datasource}")

GREEN: Final = "green"
ORANGE: Final = "orange"
RED: Final = "red"
BLUE: Final = "blue"

_WIDE_PX: Final = 280

Steps = Sequence[tuple[float | None, str]]
"""Thresholds: from which value on which colour; the first has no value."""

Panel = stat.Panel | bargauge.Panel | timeseries.Panel | table.Panel


@dataclass(frozen=True, slots=True)
class Place:
    """Where a panel stands on the grid of 24 columns."""

    x: int
    y: int
    w: int
    h: int


@dataclass(frozen=True, slots=True)
class About:
    """What every panel must say.

    Attributes:
        title: The name of the number.
        description: What it counts, and what to do about it; says "may be empty" where nothing is a good answer.
        unit: A unit of Grafana.
        empty: The words shown where there is no sample.
        steps: Thresholds, equal to those of the alerts where there are some.
        decimals: Digits after the point; None lets Grafana choose.
    """

    title: str
    description: str
    unit: str
    empty: str
    steps: Steps
    decimals: int | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """One PromQL expression and the name of its series."""

    expr: str
    legend: str = ""


def stat_panel(place: Place, about: About, query: Query) -> Panel:
    """Return one number per series, as it is at the end of the time range."""
    panel = stat.Panel().graph_mode(common_model.BigValueGraphMode.NONE).reduce_options(_last())
    panel = panel.text_mode(
        common_model.BigValueTextMode.VALUE_AND_NAME if query.legend else common_model.BigValueTextMode.VALUE
    )
    return _dress(panel, place, about, [query], instant=True)


def bar_panel(place: Place, about: About, query: Query, *, top: float) -> Panel:
    """Return a horizontal bar per series, from 0 to `top`."""
    panel = bargauge.Panel().orientation(common_model.VizOrientation.HORIZONTAL).reduce_options(_last())
    panel = panel.display_mode(common_model.BarGaugeDisplayMode.BASIC).min(0).max(top)
    return _dress(panel, place, about, [query], instant=True)


def time_panel(place: Place, about: About, queries: Sequence[Query]) -> Panel:
    """Return lines over time, from 0 upwards, with their names below."""
    legend = (
        common.VizLegendOptions()
        .display_mode(common_model.LegendDisplayMode.LIST)
        .placement(common_model.LegendPlacement.BOTTOM)
        .show_legend(True)
        .calcs([])
    )
    tooltip = (
        common.VizTooltipOptions()
        .mode(common_model.TooltipDisplayMode.MULTI)
        .sort(common_model.SortOrder.DESCENDING)
    )  # fmt: skip
    panel = timeseries.Panel().legend(legend).tooltip(tooltip).min(0).line_width(2).fill_opacity(10)
    panel = panel.show_points(common_model.VisibilityMode.AUTO)
    return _dress(panel, place, about, queries, instant=False)


def table_panel(
    place: Place, about: About, query: Query, *, columns: dict[str, str], sort_by: str, wide: str | None = None
) -> Panel:
    """Return a table, largest first.

    Args:
        place: Where it stands.
        about: What it says; the unit is that of the value.
        query: One instant query, aggregated to the labels that are shown.
        columns: The heading of each label, in order; `Value` is the value's, which is hidden when it is not among them.
        sort_by: The heading whose largest value comes first.
        wide: The heading of a column that holds long names.
    """
    organize = model.DataTransformerConfig(
        id_val="organize",
        options={
            "excludeByName": {"Time": True, "Value": "Value" not in columns},
            "indexByName": {name: at for at, name in enumerate(columns)},
            "renameByName": columns,
        },
    )
    panel = table.Panel().with_transformation(organize)
    panel = panel.sort_by([common.TableSortByFieldState().display_name(sort_by).desc(True)])
    if wide is not None:
        panel = panel.override_by_name(wide, [model.DynamicConfigValue("custom.width", _WIDE_PX)])
    return _dress(panel, place, about, [query], instant=True, format=PromQueryFormat.TABLE)


def _last() -> common.ReduceDataOptions:
    return common.ReduceDataOptions().calcs(["lastNotNull"]).values(False).fields("")


def _dress(
    panel: Panel,
    place: Place,
    about: About,
    queries: Sequence[Query],
    *,
    instant: bool,
    format: PromQueryFormat = PromQueryFormat.TIME_SERIES,
) -> Panel:
    """Give a panel its place, words, unit, thresholds, data source and targets."""
    steps = [model.Threshold(value=value, color=color) for value, color in about.steps]
    thresholds = build.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(steps)
    panel = panel.grid_pos(model.GridPos(h=place.h, w=place.w, x=place.x, y=place.y))
    panel = panel.title(about.title).description(about.description).unit(about.unit).no_value(about.empty)
    panel = panel.thresholds(thresholds).datasource(DATASOURCE)
    if about.decimals is not None:
        panel = panel.decimals(about.decimals)
    for ref_id, query in zip(ascii_uppercase, queries, strict=False):
        target = prometheus.Dataquery().ref_id(ref_id).expr(query.expr).datasource(DATASOURCE).format(format)
        target = (target.instant() if instant else target.range()).legend_format(query.legend or "__auto")
        panel = panel.with_target(target)
    return panel
