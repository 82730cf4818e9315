"""What an exporter serves: one Watch, and what can be said about it and its ledger."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING

from handoffwatch.errors import LedgerUnavailable
from handoffwatch.exporter.landing import Landing, Table
from handoffwatch.exporter.settings import ExporterSettings
from handoffwatch.exporter.watch_source import import_watch
from handoffwatch.runtime.settings import Settings
from handoffwatch.runtime.settings_sources import CONFIG_VARIABLE
from handoffwatch.runtime.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Sequence

SECTIONS = {"exporter": ExporterSettings}
"""The opaque sections of the settings that this room owns."""


@dataclass(frozen=True, slots=True)
class Served:
    """One Watch that is served.

    Attributes:
        watch: The user's, or a bare one over the ledger.
        settings: The exporter's own section.
        app: `module:attribute` of the user's Watch; None for a bare one.
    """

    watch: Watch
    settings: ExporterSettings
    app: str | None

    @property
    def settling(self) -> str:
        """Whether this process settles or only serves, and why."""
        if self.app is None:
            return "serving ledger series only: without --app no verifier is known, so nothing is settled here"
        return f"settling with --app {self.app}"

    def ledger_problem(self) -> str:
        """Return why the ledger cannot be read, or an empty text when it can."""
        try:
            self.watch.ledger.snapshot()
        except LedgerUnavailable as error:
            return error.message
        return ""

    def landing(self) -> Landing:
        """Return what the landing page says now."""
        try:
            snapshot = self.watch.ledger.snapshot()
        except LedgerUnavailable as error:
            return Landing(version("handoffwatch"), "", error.message, self.settling, self._tables(()))
        declared = [(r.workflow, r.operation, str(r.criticality)) for r in snapshot.registrations]
        return Landing(version("handoffwatch"), snapshot.label, "", self.settling, self._tables(declared))

    def _tables(self, declared: Sequence[tuple[str, ...]]) -> list[Table]:
        in_ledger = Table("In the ledger", ("workflow", "operation", "criticality"), sorted(declared))
        if self.app is None:
            return [in_ledger]
        known = self.watch.registrations
        workflows = [
            (workflow.name, str(workflow.tools), ", ".join(sorted(workflow.operations)))
            for workflow in known.workflows.values()
        ]
        routes = [
            (route.name, str(route.mode), str(route.criticality), ", ".join(route.contracts))
            for route in self.watch.watchdog.routes
        ]
        operations = [
            (kind.name, str(kind.criticality), "yes" if kind.verifier else "no") for kind in known.operations.values()
        ]
        return [
            Table("Workflows", ("workflow", "tools", "operations"), workflows),
            Table("Routes", ("route", "mode", "criticality", "schema versions"), routes),
            Table("Operations", ("operation", "criticality", "verifier"), operations),
            in_ledger,
        ]


def find_served(*, config: str | None, app: str | None) -> Served:
    """Return what the command line asks to serve.

    Args:
        config: The settings file. With an app it also becomes HANDOFFWATCH_CONFIG before the app is imported, so that
            a plain `Watch()` reads it.
        app: `module:attribute` of the user's Watch.

    Raises:
        ConfigError: The settings are wrong, or the app cannot be found.
        HandoffwatchError: The app's own registrations are refused.
    """
    if app is None:
        settings = Settings.load(config, sections=SECTIONS)
        return Served(Watch(settings=settings), settings.section("exporter", ExporterSettings), None)
    if config is not None:
        Settings.load(config, sections=SECTIONS)
        os.environ[CONFIG_VARIABLE] = os.path.abspath(config)
    watch = import_watch(app)
    own = Settings.load(config, sections=SECTIONS) if config is not None else watch.settings
    return Served(watch, own.section("exporter", ExporterSettings), app)
