"""The Overview as classic JSON, under the rules of Grafana's dashboard linter."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest

from handoffwatch.mixin.overview import overview
from handoffwatch.mixin.values import Values

BOARD = overview(Values())
PANELS = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
VARIABLES = {variable["name"]: variable for variable in BOARD["templating"]["list"]}
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
by_title = pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])


def _numbers(panel: dict[str, Any]) -> dict[str, int]:
    place: dict[str, int] = panel["gridPos"]
    return place


def test_overview_is_the_classic_model_when_built() -> None:
    """It can be provisioned from a file: stable uid, not editable, in UTC, without inputs to resolve."""
    assert BOARD["schemaVersion"] == 42
    assert BOARD["uid"] == "handoffwatch-overview"
    assert len(BOARD["uid"]) <= 40
    assert BOARD["editable"] is False
    assert BOARD["timezone"] == "utc"
    assert BOARD["tags"] == ["handoffwatch"]
    assert not {"__inputs", "__requires", "dashboard", "id"} & set(BOARD)


def test_overview_has_one_datasource_variable_when_built() -> None:
    """No data source is fixed: the reader chooses it once for all panels."""
    assert [name for name, variable in VARIABLES.items() if variable["type"] == "datasource"] == ["datasource"]
    assert VARIABLES["datasource"]["label"] == "Data source"
    assert VARIABLES["datasource"]["query"] == "prometheus"


def test_overview_has_its_filters_when_built() -> None:
    """Every filter selects several values, all at first, and follows the time range."""
    filters = {name: variable for name, variable in VARIABLES.items() if name != "datasource"}
    assert list(filters) == ["job", "instance", "workflow", "route"]
    for variable in filters.values():
        assert variable["datasource"] == DATASOURCE
        assert variable["multi"] is True
        assert variable["includeAll"] is True
        assert variable["allValue"] == ".+"
        assert variable["refresh"] == 2
        assert variable["current"] == {"selected": True, "text": "All", "value": "$__all"}


def test_overview_filters_offer_targets_that_are_down_when_built() -> None:
    """The jobs come from `up`, so that a target that stopped answering can still be chosen."""
    assert VARIABLES["job"]["query"]["query"] == 'label_values(up{job=~"handoffwatch.*"}, job)'
    assert VARIABLES["instance"]["query"]["query"] == (
        'label_values(up{job=~"handoffwatch.*", job=~"$job"}, instance)'
    )  # fmt: skip


def test_overview_variables_have_no_fields_of_an_interval_when_built() -> None:
    """The generator's stray fields are gone."""
    assert not [name for name, variable in VARIABLES.items() if {"auto", "auto_min", "auto_count"} & set(variable)]


def test_overview_has_the_built_in_annotations_when_built() -> None:
    """Grafana expects its own layer to be there."""
    assert [layer["builtIn"] for layer in BOARD["annotations"]["list"]] == [1]


def test_overview_links_keep_time_and_variables_when_built() -> None:
    """The way to the other dashboards keeps what the reader chose."""
    (link,) = BOARD["links"]
    assert (link["type"], link["tags"], link["asDropdown"]) == ("dashboards", ["handoffwatch"], True)
    assert (link["keepTime"], link["includeVars"]) == (True, True)
    assert "placement" not in link


def test_overview_panels_have_ids_and_titles_of_their_own_when_built() -> None:
    """No id and no title stands twice."""
    assert sorted(panel["id"] for panel in BOARD["panels"]) == list(range(1, len(BOARD["panels"]) + 1))
    assert max(Counter(panel["title"] for panel in BOARD["panels"]).values()) == 1


def test_overview_panels_do_not_overlap_when_built() -> None:
    """Each place on the grid of 24 columns belongs to one panel at most."""
    cells = Counter(
        (x, y)
        for place in map(_numbers, BOARD["panels"])
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    )
    assert max(cells.values()) == 1
    assert max(x for x, _ in cells) == 23


@by_title
def test_overview_panel_is_explained_when_shown(panel: dict[str, Any]) -> None:
    """Every panel has a title, a description, a unit, words for nothing, and thresholds."""
    defaults = panel["fieldConfig"]["defaults"]
    assert panel["title"]
    assert panel["description"].endswith(".")
    assert defaults["unit"]
    assert defaults["noValue"]
    assert defaults["thresholds"]["steps"][0]["value"] is None


@by_title
def test_overview_panel_queries_the_chosen_source_when_shown(panel: dict[str, Any]) -> None:
    """Panel and targets use the variable, and each target has a reference of its own."""
    assert panel["datasource"] == DATASOURCE
    assert [target["refId"] for target in panel["targets"]] == ["A", "B", "C"][: len(panel["targets"])]
    assert all(target["datasource"] == DATASOURCE for target in panel["targets"])


@by_title
def test_overview_panel_rates_over_the_right_window_when_shown(panel: dict[str, Any]) -> None:
    """Lines rate over $__rate_interval; single numbers grow over the whole range; nothing has a window of its own."""
    for target in panel["targets"]:
        windows = set(re.findall(r"\[(.+?)\]", target["expr"]))
        assert windows <= ({"$__rate_interval"} if target["range"] else {"$__range"})


@by_title
def test_overview_panel_is_calm_when_nothing_happens(panel: dict[str, Any]) -> None:
    """Every division guards its denominator, and every quantile drops the NaN of no traffic."""
    for target in panel["targets"]:
        assert "/ (" not in target["expr"] or "> 0)" in target["expr"]
        assert target["expr"].startswith("histogram_quantile") == target["expr"].endswith(">= 0")


@by_title
def test_overview_panel_filters_by_target_when_its_series_have_one(panel: dict[str, Any]) -> None:
    """Series of a process follow the filters for job and instance; recorded ones and alerts have neither."""
    for target in panel["targets"]:
        recorded = re.search(r"ledger:|route:|ALERTS", target["expr"]) is not None
        assert ('job=~"$job", instance=~"$instance"' in target["expr"]) != recorded
