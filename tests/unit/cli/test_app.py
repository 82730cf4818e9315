"""The command line: what it prints, where, and with which exit code."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import pytest

from handoffwatch.cli import main
from handoffwatch.cli.report import exit_code, report
from handoffwatch.errors import ConfigError, HandoffwatchError, LedgerUnavailable, RegistrationError
from handoffwatch.exporter.settings import PORT_DEFAULT, ExporterSettings


@dataclass(frozen=True, slots=True)
class Ended:
    """What a command left behind."""

    code: object
    out: str
    err: str


Run = Callable[..., Ended]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Run a command in a folder of its own and return what it left behind."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def call(*arguments: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["handoffwatch", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return Ended(ended.value.code, said.out, said.err)

    return call


@pytest.mark.parametrize("arguments", [("--version",), ("version",)])
def test_version_prints_the_installed_version_when_asked(run: Run, arguments: tuple[str, ...]) -> None:
    """Both spellings print the same line on stdout."""
    assert run(*arguments) == Ended(0, f"handoffwatch {version('handoffwatch')}\n", "")


def test_help_lists_every_command_when_asked(run: Run) -> None:
    """The commands are those of the design."""
    ended = run("--help")

    assert ended.code == 0
    for command in (
        "serve",
        "check-config",
        "demo",
        "case",
        "compare",
        "snapshots",
        "mixin",
        "version",
        "--install-completion",
    ):
        assert command in ended.out


@pytest.mark.parametrize("arguments", [("nothing",), ("check-config",), ("serve", "--port", "x"), ("serve", "extra")])
def test_command_line_exits_2_when_used_wrongly(run: Run, arguments: tuple[str, ...]) -> None:
    """Usage errors go to stderr; stdout is data and stays empty."""
    ended = run(*arguments)

    assert ended.code == 2
    assert ended.out == ""
    assert "Usage: handoffwatch" in ended.err


def test_check_config_says_ok_when_the_file_is_right(run: Run) -> None:
    """Every section is checked, the exporter's too."""
    Path("handoffwatch.yaml").write_text("tools: {attempts_max: 2}\nexporter: {port: 0}\n", encoding="utf-8")

    assert run("check-config", "handoffwatch.yaml") == Ended(0, "ok: handoffwatch.yaml\n", "")


def test_check_config_prints_all_errors_when_the_file_is_wrong(run: Run) -> None:
    """Each error is followed by its own hint, and the exit code is that of a wrong configuration."""
    Path("handoffwatch.yaml").write_text("tools:\n  attempts_max: -3\nexporter:\n  prot: 1\n", encoding="utf-8")

    assert run("check-config", "handoffwatch.yaml") == Ended(
        2,
        "",
        "error: handoffwatch.yaml:2: tools.attempts_max: must be at least 1, got -3\n"
        "hint: remove the key to use the default of 3\n"
        "error: handoffwatch.yaml:4: exporter.prot: unknown key\n"
        "hint: did you mean port? known keys: address, drain_s, port, scrape_s_max, scrapes_max\n",
    )


@pytest.mark.parametrize(
    ("text", "code", "answer"),
    [
        ("", 0, {"file": "handoffwatch.yaml", "ok": True, "errors": []}),
        (
            "toolz: {}\n",
            2,
            {
                "file": "handoffwatch.yaml",
                "ok": False,
                "errors": [
                    {
                        "error": "handoffwatch.yaml:1: toolz: unknown key",
                        "hint": "did you mean tools? "
                        "known keys: exporter, handoff, handoffs, ledger, recording, settlement, tools",
                    }
                ],
            },
        ),
    ],
)
def test_check_config_prints_json_when_asked(run: Run, text: str, code: int, answer: object) -> None:
    """The JSON goes to stdout whether the file is right or wrong."""
    Path("handoffwatch.yaml").write_text(text, encoding="utf-8")

    ended = run("check-config", "handoffwatch.yaml", "--json")

    assert (ended.code, json.loads(ended.out), ended.err) == (code, answer, "")


def test_check_config_leaves_the_environment_out_when_it_checks(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is right or wrong by itself, wherever it is checked."""
    monkeypatch.setenv("HANDOFFWATCH_TOOLS__ATTEMPTS_MAX", "-1")
    Path("handoffwatch.yaml").write_text("tools: {attempts_max: 2}\n", encoding="utf-8")

    assert run("check-config", "handoffwatch.yaml").code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--config", "none.yaml"), "none.yaml: file: does not exist"),
        (("--config", "wrong.yaml"), "wrong.yaml:1: tools.attempts_max: must be at least 1, got 0"),
        (
            ("--config", "wrong.yaml", "--app", "shop:watch"),
            "wrong.yaml:1: tools.attempts_max: must be at least 1, got 0",
        ),
        (("--app", "shop_that_is_missing:watch"), "--app: shop_that_is_missing: no such module"),
        (("--app", "json:watch"), "--app: json:watch: the module has no attribute watch"),
        (("--app", "json:dumps"), "--app: json:dumps: must be a Watch, got a function"),
        *(
            (
                ("--address", address),
                "exporter: address: must be an IP address or a host name, got a text that can be neither",
            )
            for address in ("a" * 300, "é..x")
        ),
        (("--address", "192.0.2.1"), "exporter: 192.0.2.1 port 15470: cannot listen: cannot assign requested address"),
    ],
)
def test_serve_exits_2_when_settings_app_or_address_are_wrong(
    run: Run, arguments: tuple[str, ...], message: str
) -> None:
    """Nothing is served before everything that the command line names was found."""
    Path("wrong.yaml").write_text("tools: {attempts_max: 0}\n", encoding="utf-8")

    ended = run("serve", *arguments)

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.splitlines()[0] == f"error: {message}"
    assert ended.err.splitlines()[1].startswith("hint: ")


def test_serve_exits_2_when_the_port_is_taken(run: Run) -> None:
    """The error names the port and says how to take another."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = run("serve", "--port", str(port))

    assert ended == Ended(
        2,
        "",
        f"error: exporter: 127.0.0.1 port {port}: cannot listen: address already in use\n"
        "hint: choose another with --address or --port; --port 0 takes a free port\n",
    )


def test_serve_help_shows_the_defaults_of_the_settings_when_asked(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The help loads no settings to be fast, so its defaults are held against them here."""
    monkeypatch.setenv("COLUMNS", "200")

    ended = run("serve", "--help")

    assert f"[default: ({PORT_DEFAULT})]" in ended.out
    assert f"[default: ({ExporterSettings().address})]" in ended.out


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("a: b"), 2),
        (RegistrationError("a: b"), 2),
        (LedgerUnavailable("a: b"), 1),
        (HandoffwatchError("a: b"), 1),
    ],
)
def test_exit_code_tells_what_to_correct_from_what_failed_when_an_error_ends_a_command(
    error: HandoffwatchError, code: int
) -> None:
    """2 is for what the user must correct, 1 for the rest."""
    assert exit_code(error) == code


def test_report_prints_a_line_for_each_when_an_error_says_several(capsys: pytest.CaptureFixture[str]) -> None:
    """Every line says what it is."""
    report(ConfigError("a: 1\nb: 2", hint="c"))

    assert capsys.readouterr().err == "error: a: 1\nerror: b: 2\nhint: c\n"


def _python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)


def test_command_line_says_what_to_install_when_typer_is_missing() -> None:
    """A bare install has no command line, and says how to get it."""
    ended = _python("import sys; sys.modules['typer'] = None; from handoffwatch.cli import main; main()")

    assert ended.returncode == 2
    assert ended.stdout == ""
    assert ended.stderr == ('error: the command line is not installed\nhint: pip install "handoffwatch[exporter]"\n')


def test_command_line_loads_no_heavy_module_when_it_starts() -> None:
    """`--help` and completion are fast because each command loads what it needs when it runs."""
    heavy = ["pydantic", "uvicorn", "starlette", "sqlalchemy", "prometheus_client", "opentelemetry", "jinja2", "yaml"]

    ended = _python(f"import sys, handoffwatch.cli.app; print([name for name in {heavy!r} if name in sys.modules])")

    assert ended.stdout == "[]\n"
