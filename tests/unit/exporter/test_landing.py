"""The landing page."""

from __future__ import annotations

import base64
import hashlib
import re

from handoffwatch.exporter.landing import CONTENT_SECURITY_POLICY, Landing, Table, render


def _page(**changes: object) -> Landing:
    facts: dict[str, object] = {
        "version": "0.1.0",
        "ledger": "0a1b2c3d",
        "ledger_problem": "",
        "settling": "settling with --app shop:watch",
        "tables": [Table("Routes", ("route", "mode"), [("planner->executor", "enforce")])],
    }
    return Landing(**(facts | changes))  # type: ignore[arg-type]


def test_landing_says_version_ledger_settling_and_registrations_when_rendered() -> None:
    """One look tells which ledger this exporter reads, and whether it settles."""
    html = render(_page())

    assert "<dt>Version</dt><dd>0.1.0</dd>" in html
    assert "<dt>Ledger</dt><dd><code>0a1b2c3d</code></dd>" in html
    assert "<dt>Settling</dt><dd>settling with --app shop:watch</dd>" in html
    assert "<td>planner-&gt;executor</td><td>enforce</td>" in html
    assert re.findall(r'href="([^"]+)"', html) == ["metrics", "-/healthy", "-/ready"]


def test_landing_escapes_names_when_they_hold_markup() -> None:
    """Registered names are text, whatever they look like."""
    html = render(_page(tables=[Table("Routes", ("route",), [("<script>alert(1)</script>",)])]))

    assert "<script" not in html
    assert "&lt;script&gt;" in html


def test_landing_says_why_when_the_ledger_cannot_be_read() -> None:
    """A page that cannot read the ledger says so in its place."""
    html = render(_page(ledger="", ledger_problem="ledger: database: must be read", tables=[Table("Routes", (), [])]))

    assert "<dd>not readable: ledger: database: must be read</dd>" in html
    assert "None registered." in html


def test_landing_style_is_the_one_its_policy_allows_when_rendered() -> None:
    """The policy names the hash of the very style in the page, and nothing is loaded from elsewhere."""
    html = render(_page())
    found = re.search(r"<style>(.*?)</style>", html, re.DOTALL)
    assert found is not None

    digest = base64.b64encode(hashlib.sha256(found.group(1).encode()).digest()).decode()

    assert f"style-src 'sha256-{digest}'" in CONTENT_SECURITY_POLICY
    assert "http" not in html
