"""Made-up secrets in every shape, put together here so that no file holds a text that looks like a key."""

from __future__ import annotations

import base64

PEM_KINDS = ["PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "OPENSSH PRIVATE KEY", "ENCRYPTED PRIVATE KEY"]

_PREFIXES = [
    "sk-", "sk-proj-", "sk-ant-api03-", "sk_live_", "sk_test_", "rk_live_", "whsec_", "ghp_", "gho_", "ghs_",
    "github_pat_", "glpat-", "xoxb-", "xoxp-", "xapp-", "AIza", "npm_", "pypi-", "hf_", "tvly-", "gsk_", "xai-", "r8_",
    "ya29.",
]  # fmt: skip


def vendor_keys(secret: str) -> list[str]:
    """Return a key of each vendor with a secret of at least 20 letters and digits in it."""
    aws = secret.upper()[:16]
    return [*(prefix + secret for prefix in _PREFIXES), f"AKIA{aws}", f"ASIA{aws}", f"SG.{secret}.{secret}"]


def pem(kind: str, secret: str = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC") -> str:
    """Return a private key in PEM with a secret in it."""
    return f"-----BEGIN {kind}-----\n{secret}\n{secret}==\n-----END {kind}-----"


def basic(user: str, password: str) -> str:
    """Return what follows `Basic` in a header."""
    return base64.b64encode(f"{user}:{password}".encode()).decode()


def texts_with(secret: str) -> list[str]:
    """Return a text of each shape with a secret of letters and digits in it, and nothing else that must be hidden."""
    encoded = basic("bob", secret)
    return [
        *vendor_keys(secret),
        *(pem(kind, secret) for kind in PEM_KINDS),
        f"eyJhbGciOiJIUzI1NiJ9.{secret}.{secret}",
        f"Bearer {secret}",
        f"Basic {encoded}",
        f"ApiKey {secret}",
        f"Negotiate {encoded}",
        f'Digest username="bob", realm="r", response="{secret}"',
        f"Authorization: Basic {encoded}",
        f"authorization: Bearer {secret}",
        f"Proxy-Authorization: Custom {secret}",
        f"Authorization={secret}",
        f"Cookie: theme=dark; sid={secret}",
        f"Set-Cookie: sid={secret}; Path=/",
        f"X-Api-Key: {secret}",
        f"https://bob:{secret}@db.example.com:5432/x",
        f"postgres://:{secret}@db",
        f"https://{secret}:@api.example.com/v1",
        f"https://example.com/x?page=2&access_token={secret}&q=a",
        f"https://example.com/x?sig={secret}#top",
        f"password={secret}",
        f"token: {secret}",
        f"client_secret = '{secret}'",
        f'{{"refresh_token": "{secret}", "n": 1',
        f"{{'api_key': '{secret}'}}",
        f'{{\\"password\\": \\"{secret}\\"}}',
        f"credentials: {{'user': ['{secret}']}}",
        f"API key: {secret}",
        f"run --api-key {secret}",
        f"--password='{secret}'",
        f"DB_PASSWORD={secret}",
        f"AccountName=a;AccountKey={secret}==;EndpointSuffix=core",
    ]
