"""Secrets in running text, known by their shape or by the name before them.

Each pattern starts at a literal or at the first character of a run, and what it repeats without a bound it never gives
back, so a text is read a fixed number of times, whatever it holds. Groups are repeated in `(?>...)`: before Python
3.11.5 a possessive group keeps what its last, failed repetition took (cpython issue 106052).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from handoffwatch.values.secret_names import is_secret_parameter

REDACTED: Final = "[redacted]"
"""What stands where a secret stood; it says nothing of the secret, not even whether two were equal."""

_START: Final = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"
_WITH_DIGIT_OR_CAPITAL: Final = r"(?=[a-z_-]{0,40}+[A-Z0-9])"
_TOKEN: Final = r"[A-Za-z0-9._~+/=-]"
_PARAMETER: Final = r"""[\w-]++=(?:\\*+"[^"\n]*+"?|[^\s,"]*+)"""
_PARAMETERS: Final = rf"(?>{_PARAMETER}(?:,[ \t]*+{_PARAMETER})*)"

_PRIVATE_KEY: Final = (
    r"-----BEGIN [A-Z0-9 ]{0,40}?PRIVATE KEY(?: BLOCK)?-----"
    r"(?>(?:[^-]++|(?!-----END )-)*)(?:-----END [A-Z0-9 ]{0,60}+-----)?"
)
"""To its end, or to the end of the text where it was cut off. Source: RFC 7468 sections 2 and 3."""

_VENDOR_KEYS: Final = (
    rf"sk-{_WITH_DIGIT_OR_CAPITAL}[A-Za-z0-9_-]{{16,}}+",
    r"[rs]k_(?:live|test|prod)_[A-Za-z0-9]{8,}+",
    r"whsec_[A-Za-z0-9+/=]{8,}+",
    r"gh[a-z]_[A-Za-z0-9]{10,}+",
    r"github_pat_[A-Za-z0-9_]{10,}+",
    r"gl(?:pat|dt|rt|ptt|soat|cbt|ft|agent|imt|ffct)-[A-Za-z0-9_.-]{10,}+",
    r"(?:xox[a-z]|xapp)-[A-Za-z0-9-]{8,}+",
    r"A(?:KI|SI)A[A-Z0-9]{16}(?![A-Za-z0-9])",
    r"AIza[A-Za-z0-9_-]{20,}+",
    rf"pypi-{_WITH_DIGIT_OR_CAPITAL}[A-Za-z0-9_-]{{16,}}+",
    r"(?:npm|hf|gsk|r8)_[A-Za-z0-9]{16,}+",
    r"tvly-[A-Za-z0-9_-]{8,}+",
    r"(?:xai|pplx|GOCSPX)-[A-Za-z0-9_-]{16,}+",
    r"(?:dop_v1|shp(?:at|ca|pa|ss))_[a-f0-9]{16,}+",
    r"ya29\.[A-Za-z0-9_-]{16,}+",
    r"SG\.[A-Za-z0-9_-]{16,}+\.[A-Za-z0-9_-]{16,}+",
)
"""Keys known by their prefix. Source: the vendors' key formats as gitleaks lists them, with shorter least lengths."""

_JSON_WEB_TOKEN: Final = (
    r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+(?>(?:\.[A-Za-z0-9_-]*+)*)"
)
"""Source: RFC 7515 section 3.1, RFC 7516 section 3.1: dotted base64url that starts with an object."""

_URL_PASSWORD: Final = r"""(?P<keep>://[^\s/?#"'<>@:]*+:)(?!@)[^\s/?#"'<>@]*+(?>(?:@[^\s/?#"'<>@]*+(?=@))*)(?=@)"""
_URL_USER_ALONE: Final = r"""(?P<keep>://)[^\s/?#"'<>@:]++(?=:@)"""
"""A user without a password is the secret itself. Source: RFC 3986 section 3.2.1."""

_LOOKS_RANDOM: Final = rf"(?=[A-Za-z._~+/-]{{0,200}}?(?:[0-9=]|[a-z][A-Z])|{_TOKEN}{{24}})"
_CREDENTIALS: Final = rf"""(?x)
    (?P<keep> {_START} (?i: (?P<parted> digest | oauth | hawk | aws4-hmac-sha256 )
                          | (?P<base64> basic | negotiate | ntlm ) | bearer | api-?key | dpop ) [ ]++ )
    (?: (?(parted) {_PARAMETERS} | (?!))
      | {_LOOKS_RANDOM} (?(base64) [A-Za-z0-9+/]{{8,}}+ ={{0,2}}+ (?![\w\[-]) | {_TOKEN}{{6,}}+ ) )
"""
"""Credentials without the header's name: what follows must look random, so that `Basic plan` stays. Source: RFC 9110
section 11.4 and the schemes registered for it."""


def _mark(found: re.Match[str]) -> str:
    return f"{found['keep']}{REDACTED}"


_SHAPES: Final = tuple(
    (needle, re.compile(pattern, re.DOTALL))
    for needle, pattern in [
        ("-----BEGIN ", rf"(?P<keep>){_PRIVATE_KEY}"),
        ("://", _URL_PASSWORD),
        ("://", _URL_USER_ALONE),
        ("eyJ", rf"(?P<keep>){_JSON_WEB_TOKEN}"),
        ("", rf"(?P<keep>){_START}(?:{'|'.join(_VENDOR_KEYS)})"),
        (" ", _CREDENTIALS),
    ]
)
"""What a text must hold, and what matches. The private keys come first: they span lines, and names may stand before."""

_NAME: Final = re.compile(
    r"""(?x)
    (?<![\w.-]) --[\w-]++ [ \t]++ (?=[^\s-])
    | (?<![\w.-])
      (?P<name>
          (?> (?: (?i: api|access|auth|client|secret|private|signing|encryption|license|recovery ) [ ] )? )
          [\w.-]++
      )
      [\\"'`\])]{0,8}+ [ \t]{0,8}+ (?: => | := | == | = | : ) [ \t]*+
    """
)
"""A name and what stands between it and its value: `--token `, `"api_key": `, `password=`, `API key: `."""

_RUN: Final = r"""(?>(?:
    \[redacted\]
    | [^\s"'`<>()\[\]{},;&\\.:]++
    | [(<\[{]
    | [.:](?=\S)
    | ["'`)\]}>](?=\w)
    | [,;&](?![\s"']|\Z|[\w.%\[\]-]++[=:])
    | \\(?!["'])
)+)"""
"""A value without quotes: up to white space or to what closes or parts values."""


def _bracketed(levels: int) -> str:
    inner = r"[^\[\]{}]++"
    for _ in range(levels):
        inner = rf"[^\[\]{{}}]++|[\[{{](?>(?:{inner})*)[\]}}]?"
    return rf"[\[{{](?>(?:{inner})*)[\]}}]?"


_NOTHING: Final = r"(?:null|None|nil|undefined)(?![\w-])|\[\s*+\]|\{\s*+\}"
_QUOTED: Final = (
    r"""(?P<keep>(?P<escapes>\\*+)(?P<quote>"{3}|'{3}|["'`]))"""
    r"""(?>(?:[^"'`\\\n]++|(?!(?<!\\)(?P=escapes)(?P=quote))[^\n])+)"""
)
_SCHEME: Final = r"(?i:basic|bearer|digest|negotiate|ntlm|api-?key|dpop|oauth|hawk|aws4-hmac-sha256|token|key)[ \t]++"


def _value(*bare: str) -> re.Pattern[str]:
    """Return what matches a value that is in brackets, in quotes, or bare."""
    return re.compile(rf"(?!{_NOTHING})(?:{'|'.join((_bracketed(6), _QUOTED, *bare))})", re.VERBOSE)


_SCHEMED: Final = rf"(?P<scheme>{_SCHEME})(?:{_PARAMETERS}|{_RUN})"
_VALUE: Final = _value(_SCHEMED, _RUN)
_VALUES_OF: Final = {
    "authorization": _value(_SCHEMED, rf"(?:[A-Za-z-]{{1,20}}+[ \t]++)?{_RUN}"),
    "cookie": _value(rf"(?>{_RUN}(?:;[ \t]*+{_RUN})*)"),
    "phrase": _value(r"[^\r\n]++"),
    "mnemonic": _value(r"[^\r\n]++"),
}
"""Values that go on behind their first word. Source: RFC 9110 section 11.4, RFC 6265 section 4.2.1."""


def without_secrets(text: str, *, is_secret: Callable[[str], bool]) -> str:
    """Return a text with each secret in it replaced by `[redacted]`; what stands around the secrets stays.

    Found by shape: private keys in PEM, passwords in URLs, JSON Web Tokens, vendors' keys, credentials of
    authorization headers. Found by name: what follows `name=`, `name: ` and `--name `, also in quotes and brackets,
    where the name is secret. The time is linear in the length of the text.

    Args:
        text: Any text.
        is_secret: Whether a name is secret.
    """
    for needle, pattern in _SHAPES:
        if needle in text:
            text = pattern.sub(_mark, text)
    return _without_named(text, is_secret) if "=" in text or ":" in text or "--" in text else text


def _without_named(text: str, is_secret: Callable[[str], bool]) -> str:
    parts: list[str] = []
    done = at = 0
    while found := _NAME.search(text, at):
        at = found.end()
        name = found["name"] or found[0].strip()
        is_parameter = text[max(found.start() - 1, 0)] in "?&"
        if is_secret(name) or (is_parameter and is_secret_parameter(name)):
            value = _value_pattern(name).match(text, at)
            if value is not None:
                groups = value.groupdict()
                parts += (text[done:at], groups["keep"] or groups.get("scheme") or "", REDACTED)
                done = at = value.end()
    return "".join((*parts, text[done:]))


def _value_pattern(name: str) -> re.Pattern[str]:
    folded = name.casefold()
    return next((pattern for word, pattern in _VALUES_OF.items() if word in folded), _VALUE)
