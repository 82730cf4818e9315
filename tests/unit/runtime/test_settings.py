"""Settings: one strict file, the environment over it, and errors that name the place to correct."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from pydantic import BaseModel, Field, ValidationError

from handoffwatch.errors import ConfigError
from handoffwatch.recording.settings import RecordingSettings
from handoffwatch.runtime.settings import Settings, check_settings
from handoffwatch.values.settings_model import SettingsModel


class _Section(SettingsModel):
    port: int = Field(15470, ge=0, le=65_535)
    address: str = "127.0.0.1"


def _file(folder: Path, text: str) -> Path:
    path = folder / "handoffwatch.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def _errors(path: Path | None, environ: Mapping[str, str], folder: Path) -> list[tuple[str, str]]:
    found = check_settings(path, sections={"exporter": _Section}, environ=environ)
    return [(error.message.replace(f"{folder}/", ""), error.hint) for error in found]


def test_settings_have_the_documented_defaults_when_nothing_is_given() -> None:
    """The defaults are those of DESIGN section 11."""
    settings = Settings.load(environ={})

    assert settings.model_dump() == {
        "tools": {
            "attempts_max": 3,
            "base_wait_s": 2.0,
            "wait_s_max": 30.0,
            "deadline_s": 120.0,
            "grace_s": 0.5,
            "breaker_after": 3,
        },
        "handoffs": {
            "repairs_max": 2,
            "repairs_per_run_max": 10,
            "stop_identical": False,
            "hops_max": 25,
            "repeats_max": 3,
            "hold_poll_s": 2.0,
            "lease_s": 900.0,
            "seal_s": 3600.0,
            "evidence_bytes_max": 262_144,
            "keep_sample": 0.1,
            "review_sample": 0.1,
            "redact": [],
            "payload_bytes_max": 1_048_576,
            "selftest_every_s": 60,
            "routes": {},
        },
        "handoff": {
            "snapshot": {
                "enabled": False,
                "directory": "./handoff-snapshots",
                "retention_days": 14.0,
                "max_bytes": 1_073_741_824,
                "redact": (),
                "omit": (),
            },
            "validation": {
                "fail_closed": None,
                "on_failure": None,
                "schema_version": None,
                "exact_paths": (),
                "ignore_paths": (),
                "sets": (),
                "times": (),
                "transforms": {},
                "artifacts": (),
                "secret": (),
            },
            "routes": {},
        },
        "recording": {
            "otlp_endpoint": None,
            "otlp_timeout_s": 1.5,
            "exit_s": 2.0,
            "queue_max": 2048,
            "exemplars": True,
        },
        "ledger": {
            "url": "sqlite:///handoffwatch-ledger.db",
            "busy_timeout_s": 5.0,
            "cases_kept_days": 30,
            "handoffs_kept_days": 30,
        },
        "settlement": {
            "read_back_window_s": 30.0,
            "polls_s": (0.0, 1.0, 3.0, 10.0, 30.0),
            "backoff_s_max": 3600.0,
            "deadline_s": 604_800.0,
            "routine_sample": 0.1,
            "tick_s": 1.0,
            "verifier_timeout_s": 10.0,
            "batch_max": 100,
        },
        "exporter": {},
    }


def test_settings_take_the_file_when_its_path_is_given(tmp_path: Path) -> None:
    """The given path wins over HANDOFFWATCH_CONFIG; a decimal may be written with a last zero."""
    path = _file(tmp_path, "tools: {attempts_max: 5, base_wait_s: 0.50}\nsettlement:\n  polls_s: [0, 0.10, 2]\n")

    settings = Settings.load(path, environ={"HANDOFFWATCH_CONFIG": "elsewhere.yaml"})

    assert settings.tools.attempts_max == 5
    assert settings.tools.base_wait_s == 0.5
    assert settings.settlement.polls_s == (0.0, 0.1, 2.0)


def test_settings_take_the_file_of_the_environment_when_no_path_is_given(tmp_path: Path) -> None:
    """HANDOFFWATCH_CONFIG names the file."""
    path = _file(tmp_path, "handoffs: {repairs_max: 1}\n")

    assert Settings.load(environ={"HANDOFFWATCH_CONFIG": str(path)}).handoffs.repairs_max == 1


def test_settings_obey_the_environment_when_the_file_says_otherwise(tmp_path: Path) -> None:
    """A variable overrides its one key; the others of the section stay."""
    path = _file(tmp_path, "tools: {attempts_max: 5, deadline_s: 60}\nexporter: {port: 1}\n")

    settings = Settings.load(
        path,
        environ={
            "HANDOFFWATCH_TOOLS__ATTEMPTS_MAX": "7",
            "HANDOFFWATCH_TOOLS__BASE_WAIT_S": "0.10",
            "HANDOFFWATCH_LEDGER__URL": "sqlite:///a: b #c.db",
            "HANDOFFWATCH_RECORDING__EXEMPLARS": "false",
            "HANDOFFWATCH_SETTLEMENT__POLLS_S": "[0, 5]",
            "HANDOFFWATCH_EXPORTER__ADDRESS": '"::1"',
            "HANDOFFWATCH_PORT": "tcp://10.0.0.1:15470",
            "HANDOFFWATCH_EXPORTER_PORT": "tcp://10.0.0.1:15470",
            "PATH": "/bin",
        },
    )

    assert (settings.tools.attempts_max, settings.tools.base_wait_s, settings.tools.deadline_s) == (7, 0.1, 60.0)
    assert settings.ledger.url == "sqlite:///a: b #c.db"
    assert settings.recording.exemplars is False
    assert settings.settlement.polls_s == (0.0, 5.0)
    assert settings.section("exporter", _Section) == _Section(port=1, address="::1")


def test_settings_read_nothing_from_outside_when_made_in_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """`Settings()` is the defaults, whatever the environment says; only `load` reads it."""
    monkeypatch.setenv("HANDOFFWATCH_TOOLS__ATTEMPTS_MAX", "9")

    assert Settings().tools.attempts_max == 3
    assert Settings.load().tools.attempts_max == 9


def test_settings_hide_addresses_when_printed() -> None:
    """A database address may hold a password, so no printed form of the settings shows one."""
    settings = Settings.load(environ={"HANDOFFWATCH_LEDGER__URL": "sqlite:///hunter2.db"})

    assert "hunter2" not in repr(settings)


def test_settings_hide_addresses_when_one_is_refused_in_code() -> None:
    """The error of a section that is made in code is no place for a token either."""
    with pytest.raises(ValidationError, match="must hold no user name") as caught:
        RecordingSettings(otlp_endpoint="https://user:hunter2@collector:4318")

    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            "# first\ntools:\n  attempts_max: -3\n",
            "handoffwatch.yaml:3: tools.attempts_max: must be at least 1, got -3",
            "remove the key to use the default of 3",
        ),
        (
            "tools:\n  attempts_max: 2.5\n",
            "handoffwatch.yaml:2: tools.attempts_max: must be a whole number, got 2.5",
            "remove the key to use the default of 3",
        ),
        (
            "tools:\n  attempts_max: '2'\n",
            "handoffwatch.yaml:2: tools.attempts_max: must be a whole number, got a text",
            "remove the key to use the default of 3",
        ),
        (
            "tools:\n  attempts_max: true\n",
            "handoffwatch.yaml:2: tools.attempts_max: must be a whole number, got true or false",
            "remove the key to use the default of 3",
        ),
        (
            "tools:\n  deadline_s: 0\n",
            "handoffwatch.yaml:2: tools.deadline_s: must be more than 0, got 0",
            "remove the key to use the default of 120",
        ),
        (
            "settlement:\n  routine_sample: 1.5\n",
            "handoffwatch.yaml:2: settlement.routine_sample: must be at most 1, got 1.5",
            "remove the key to use the default of 0.1",
        ),
        (
            "settlement:\n  polls_s:\n  - 0\n  - x\n",
            "handoffwatch.yaml:4: settlement.polls_s.1: must be a number, got a text",
            "remove the key to use the default of [0, 1, 3, 10, 30]",
        ),
        (
            "settlement:\n  polls_s: []\n",
            "handoffwatch.yaml:2: settlement.polls_s: must have at least 1 entries",
            "remove the key to use the default of [0, 1, 3, 10, 30]",
        ),
        (
            "settlement:\n  polls_s: [3, 1]\n",
            "handoffwatch.yaml:2: settlement.polls_s: must be ascending",
            "remove the key to use the default of [0, 1, 3, 10, 30]",
        ),
        (
            "recording:\n  exemplars: no\n",
            "handoffwatch.yaml:2: recording.exemplars: must be true or false, got a text",
            "remove the key to use the default of true",
        ),
        (
            "recording:\n  otlp_endpoint: user:hunter2@collector\n",
            "handoffwatch.yaml:2: recording.otlp_endpoint: must be a URL such as http://127.0.0.1:4318",
            "remove the key to use the default of null",
        ),
        *(
            (
                f"recording:\n  otlp_endpoint: '{url}'\n",
                "handoffwatch.yaml:2: recording.otlp_endpoint: must be a URL such as http://127.0.0.1:4318",
                "remove the key to use the default of null",
            )
            for url in (
                "ftp://collector:4318",
                "http://",
                "http://:4318",
                "http://collector:99999",
                "http://collector:0",
                "http://collector:hunter2",
                "http://[::1",
                "http://coll ector:4318",
                "http://collector:4318\u00a0",
            )
        ),
        *(
            (
                f"recording:\n  otlp_endpoint: '{url}'\n",
                "handoffwatch.yaml:2: recording.otlp_endpoint: must hold no user name, password, query or fragment",
                "remove the key to use the default of null",
            )
            for url in (
                "http://user:hunter2@collector:4318",
                "http://hunter2@collector",
                "https://collector:4318/?token=hunter2",
                "https://collector:4318?",
                "https://collector:4318/#hunter2",
            )
        ),
        (
            'recording:\n  otlp_endpoint: "http://collector:4318\\nX: hunter2"\n',
            "handoffwatch.yaml:2: recording.otlp_endpoint: must be a URL such as http://127.0.0.1:4318",
            "remove the key to use the default of null",
        ),
        (
            'ledger:\n  url: "sqlite:///a\\0b.db"\n',
            "handoffwatch.yaml:2: ledger.url: must name a file in UTF-8, without NUL",
            "remove the key to use the default of sqlite:///handoffwatch-ledger.db",
        ),
        (
            'ledger:\n  url: "sqlite:///\\ud800.db"\n',
            "handoffwatch.yaml:2: ledger.url: must name a file in UTF-8, without NUL",
            "remove the key to use the default of sqlite:///handoffwatch-ledger.db",
        ),
        (
            "ledger:\n  url: [hunter2]\n",
            "handoffwatch.yaml:2: ledger.url: must be a text, got a list",
            "remove the key to use the default of sqlite:///handoffwatch-ledger.db",
        ),
        (
            "ledger:\n  url: oracle://hunter2\n",
            "handoffwatch.yaml:2: ledger.url: must be sqlite:///<file>",
            "remove the key to use the default of sqlite:///handoffwatch-ledger.db",
        ),
        (
            "\ntools:\n  atempts_max: 3\n",
            "handoffwatch.yaml:3: tools.atempts_max: unknown key",
            "did you mean attempts_max? known keys: attempts_max, base_wait_s, breaker_after, deadline_s, grace_s, "
            "wait_s_max",
        ),
        (
            "zebra: 1\n",
            "handoffwatch.yaml:1: zebra: unknown key",
            "known keys: exporter, handoff, handoffs, ledger, recording, settlement, tools",
        ),
        (
            "tools:\nhandoffs: {}\n",
            "handoffwatch.yaml:1: tools: must be a mapping of keys, got null",
            "remove the key to use the default",
        ),
        (
            "exporter:\n  port: 70000\n",
            "handoffwatch.yaml:2: exporter.port: must be at most 65535, got 70000",
            "remove the key to use the default of 15470",
        ),
        (
            "exporter: 3\n",
            "handoffwatch.yaml:1: exporter: must be a mapping of keys, got 3",
            "remove the key to use the default",
        ),
        ("- a\n", "handoffwatch.yaml:1: document: must be a mapping of sections", "start with a section: tools:"),
        (
            "tools: {}\ntools: {}\n",
            "handoffwatch.yaml:2: tools: must be given once, got it on line 1 too",
            "remove one of the two",
        ),
    ],
)
def test_settings_name_file_line_and_key_when_the_file_is_wrong(
    tmp_path: Path, text: str, message: str, hint: str
) -> None:
    """A number may be shown; of everything else only the kind is."""
    assert _errors(_file(tmp_path, text), {}, tmp_path) == [(message, hint)]


@pytest.mark.parametrize(
    ("variable", "value", "message", "hint"),
    [
        (
            "HANDOFFWATCH_TOOLS__ATTEMPTS_MAX",
            "0",
            "HANDOFFWATCH_TOOLS__ATTEMPTS_MAX: tools.attempts_max: must be at least 1, got 0",
            "unset HANDOFFWATCH_TOOLS__ATTEMPTS_MAX to use the default of 3",
        ),
        (
            "HANDOFFWATCH_TOOLS__ATEMPTS_MAX",
            "3",
            "HANDOFFWATCH_TOOLS__ATEMPTS_MAX: tools.atempts_max: unknown key",
            "did you mean attempts_max? known keys: attempts_max, base_wait_s, breaker_after, deadline_s, grace_s, "
            "wait_s_max",
        ),
        (
            "HANDOFFWATCH_TOOL__ATTEMPTS_MAX",
            "3",
            "HANDOFFWATCH_TOOL__ATTEMPTS_MAX: tool: unknown key",
            "did you mean tools? known keys: exporter, handoff, handoffs, ledger, recording, settlement, tools",
        ),
        (
            "HANDOFFWATCH_TOOLS_ATTEMPTS_MAX",
            "3",
            "HANDOFFWATCH_TOOLS_ATTEMPTS_MAX: name: needs two underscores",
            "write HANDOFFWATCH_TOOLS__ATTEMPTS_MAX",
        ),
        (
            "HANDOFFWATCH_SETTLEMENT__POLLS_S",
            "[1, -2]",
            "HANDOFFWATCH_SETTLEMENT__POLLS_S: settlement.polls_s.1: must be at least 0, got -2",
            "unset HANDOFFWATCH_SETTLEMENT__POLLS_S to use the default of [0, 1, 3, 10, 30]",
        ),
        (
            "HANDOFFWATCH_SETTLEMENT__POLLS_S",
            "[1, ",
            "HANDOFFWATCH_SETTLEMENT__POLLS_S:1: not valid YAML: expected the node content, but found '<stream end>'",
            "check indentation and quotes",
        ),
        (
            "HANDOFFWATCH_EXPORTER__PORT",
            "high",
            "HANDOFFWATCH_EXPORTER__PORT: exporter.port: must be a whole number, got a text",
            "unset HANDOFFWATCH_EXPORTER__PORT to use the default of 15470",
        ),
        (
            "HANDOFFWATCH_LEDGER__URL",
            "sqlite:///\udcff.db",
            "HANDOFFWATCH_LEDGER__URL: ledger.url: must name a file in UTF-8, without NUL",
            "unset HANDOFFWATCH_LEDGER__URL to use the default of sqlite:///handoffwatch-ledger.db",
        ),
        (
            "HANDOFFWATCH_CONFIG",
            "missing.yaml",
            "missing.yaml: file: does not exist",
            "give the path of an existing file, by argument or by HANDOFFWATCH_CONFIG",
        ),
    ],
)
def test_settings_name_the_variable_when_the_environment_is_wrong(
    tmp_path: Path, variable: str, value: str, message: str, hint: str
) -> None:
    """What the environment says is corrected in the environment, so the variable is named."""
    assert _errors(None, {variable: value}, tmp_path) == [(message, hint)]


@pytest.mark.parametrize("path", ["a\0b.yaml", "\ud800.yaml"])
def test_settings_are_refused_when_the_path_can_be_none(path: str) -> None:
    """A path that no system takes is a wrong path, whether it is given to the settings or to the Watch."""
    with pytest.raises(ConfigError) as caught:
        Settings.load(path, environ={})
    assert caught.value.message == "settings: path: must be a text without NUL and lone surrogates"
    assert caught.value.hint == "give the path of an existing file, by argument or by HANDOFFWATCH_CONFIG"


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:4318", "https://collector", "http://[::1]:4318", "http://collector:4318/otlp/"]
)
def test_settings_take_an_endpoint_when_it_is_a_base_url(url: str) -> None:
    """Scheme and host are enough; port and path may follow."""
    assert Settings.load(environ={"HANDOFFWATCH_RECORDING__OTLP_ENDPOINT": url}).recording.otlp_endpoint == url


def test_settings_blame_the_file_when_another_variable_of_the_section_is_right(tmp_path: Path) -> None:
    """The place is that of the key itself."""
    path = _file(tmp_path, "tools:\n  deadline_s: -1\n")

    found = _errors(path, {"HANDOFFWATCH_TOOLS__ATTEMPTS_MAX": "3"}, tmp_path)

    assert [message for message, _ in found] == ["handoffwatch.yaml:2: tools.deadline_s: must be more than 0, got -1"]


def test_settings_report_all_errors_at_once_when_there_are_several(tmp_path: Path) -> None:
    """One error says all, in the order of the places, and says a hint once."""
    path = _file(
        tmp_path,
        "exporter: {port: -1}\nhandoffs:\n  repairs_max: -1\n  repair: 1\ntools: {attempts_max: 0}\n",
    )

    with pytest.raises(ConfigError) as caught:
        Settings.load(path, sections={"exporter": _Section}, environ={"HANDOFFWATCH_TOOLS__DEADLINE_S": "x"})

    assert caught.value.message.replace(f"{tmp_path}/", "").splitlines() == [
        "HANDOFFWATCH_TOOLS__DEADLINE_S: tools.deadline_s: must be a number, got a text",
        "handoffwatch.yaml:3: handoffs.repairs_max: must be at least 0, got -1",
        "handoffwatch.yaml:4: handoffs.repair: unknown key",
        "handoffwatch.yaml:5: tools.attempts_max: must be at least 1, got 0",
        "handoffwatch.yaml:1: exporter.port: must be at least 0, got -1",
    ]


def test_settings_section_is_refused_when_the_owner_of_the_section_refuses_it(tmp_path: Path) -> None:
    """An opaque section is checked by whoever reads it, with the same errors."""
    settings = Settings.load(_file(tmp_path, "exporter:\n  prot: 1\n"), environ={})

    with pytest.raises(ConfigError) as caught:
        settings.section("exporter", _Section)

    assert caught.value.message == f"{tmp_path}/handoffwatch.yaml:2: exporter.prot: unknown key"
    assert caught.value.hint == "did you mean port? known keys: address, port"


def test_settings_cannot_be_changed_when_loaded() -> None:
    """Settings are values."""
    settings = Settings.load(environ={})

    with pytest.raises(ValueError, match="frozen"):
        settings.tools.attempts_max = 1  # type: ignore[misc]


def _fields(model: type[BaseModel], prefix: str = "") -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for name, field in model.model_fields.items():
        found[prefix + name] = field.description
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            found |= _fields(field.annotation, f"{prefix}{name}.")
    return found


def test_settings_describe_every_field_when_documented() -> None:
    """The documentation of the settings is rendered from the descriptions, each a sentence."""
    assert [name for name, text in _fields(Settings).items() if not text or not text.endswith(".")] == []
