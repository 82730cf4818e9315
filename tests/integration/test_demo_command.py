"""`handoffwatch demo` as a user starts it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections import Counter

import httpx
import pytest

from handoffwatch.demo.faults import FaultPlan

COMMAND = (sys.executable, "-c", "from handoffwatch.cli import main; main()", "demo")
WITHOUT_HTTPX = "import sys; sys.modules['httpx'] = None; from handoffwatch.cli import main; main()"


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=60, check=False)


def test_demo_prints_one_json_object_when_asked() -> None:
    """stdout is the object and nothing else; the counts follow from the plan."""
    done = _run("--runs", "12", "--seed", "1", "--json")
    assert done.returncode == 0, done.stderr
    [line] = done.stdout.splitlines()
    report = json.loads(line)
    stories = Counter(FaultPlan(1).run(index).story.name for index in range(12))
    assert report["runs"] == 12
    assert report["differences"] == []
    false = [(case["run_id"], case["cause"], case["origin"]) for case in report["false_successes"]]
    assert ("run-40001", "missing", "wrapper") in false
    assert stories["hiding_wrapper"] == sum(origin == "wrapper" for _, _, origin in false)
    assert sum(report["claimed"].values()) == 12


def test_demo_prints_tables_within_a_hundred_columns_when_run_plainly() -> None:
    """What agents said against what happened, and that it equals Northwind's record."""
    done = _run("--runs", "8", "--seed", "2")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 100
    for title in ("What the agents said, and what happened", "False successes", "Handoffs", "Failed tool calls"):
        assert any(line.startswith(title) for line in lines)
    assert re.fullmatch(
        r"All \d+ numbers, \d+ of them above 0, equal Northwind's own record of what it broke\.", lines[-1]
    )


def test_demo_goes_on_for_the_time_given_when_no_number_of_runs_is() -> None:
    """`--for` bounds the time, not the runs."""
    done = _run("--for", "2s", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["runs"] > 4


def test_demo_serves_until_it_is_told_to_end_when_kept() -> None:
    """With `--keep` the pages stay; SIGTERM ends the demo and every process of it."""
    with subprocess.Popen(
        [*COMMAND, "--runs", "2", "--keep"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        urls: list[str] = []
        assert process.stderr is not None
        for line in process.stderr:
            urls += re.findall(r"http://\S+/metrics", line)
            if "Ctrl-C" in line:
                break
        assert len(urls) == 2
        for url in urls:
            assert httpx.get(url, trust_env=False).status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    for url in urls:
        with pytest.raises(httpx.ConnectError):
            httpx.get(url, trust_env=False)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--runs", "0"), "Invalid value for '--runs'"),
        (("--for", "soon"), "must be a duration above 0 such as 60s, 2m or 1h"),
    ],
)
def test_demo_refuses_an_option_when_its_value_is_wrong(arguments: tuple[str, ...], sentence: str) -> None:
    """Usage errors exit with 2 before anything is started."""
    done = _run(*arguments)
    assert done.returncode == 2
    assert sentence in " ".join(done.stderr.replace("│", " ").split())


def test_demo_says_what_to_install_when_a_library_is_missing() -> None:
    """A bare install gets a sentence and a hint, not a traceback."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_HTTPX, "demo"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert done.stderr == 'error: demo: httpx: must be installed\nhint: pip install "handoffwatch[demo]"\n'
