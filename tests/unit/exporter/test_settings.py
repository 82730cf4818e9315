"""The exporter's own section."""

from __future__ import annotations

from handoffwatch.exporter.settings import PORT_DEFAULT, ExporterSettings


def test_exporter_settings_stay_on_this_machine_when_nothing_is_said() -> None:
    """Loopback, on a port beyond the list of known exporters and below the ports of outgoing connections."""
    assert ExporterSettings().address == "127.0.0.1"
    assert ExporterSettings().port == PORT_DEFAULT
    assert 10_000 <= PORT_DEFAULT < 32_768


def test_exporter_settings_describe_every_field_when_documented() -> None:
    """The documentation of the settings is rendered from the descriptions, each a sentence."""
    fields = ExporterSettings.model_fields
    assert [name for name, field in fields.items() if not str(field.description).endswith(".")] == []
