"""Dashboards and rules as code: values in, the files of `dashboards/` and `deploy/prometheus/rules/` out."""

from handoffwatch.mixin.render import drift, render, write
from handoffwatch.mixin.values import Values, load_values

__all__ = ["Values", "drift", "load_values", "render", "write"]
