"""Names under which secrets stand: fields, headers, environment variables, query parameters."""

from __future__ import annotations

import re
from typing import Final

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W_]")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SECRET_ENDINGS: Final = (
    "password", "passwords", "passwd", "passphrase", "passcode", "pwd", "secret", "secrets", "credential",
    "credentials", "creds", "authorization", "cookie", "cookies", "mnemonic", "jwt", "totp", "cvv",
    "apikey", "apikeys", "privatekey", "secretkey", "accesskey", "signingkey", "encryptionkey", "masterkey",
    "accesstoken", "refreshtoken", "authtoken", "bearertoken", "sessiontoken",
)  # fmt: skip
"""A word that ends so makes a name secret, wherever it stands: `db_password_2`, `clientsecret`, `set-cookie`."""

_SECRET_PAIRS: Final = frozenset({
    ("api", "key"), ("access", "key"), ("secret", "key"), ("private", "key"), ("signing", "key"),
    ("encryption", "key"), ("master", "key"), ("access", "token"), ("refresh", "token"), ("auth", "token"),
    ("bearer", "token"), ("session", "token"), ("secret", "id"), ("auth", "code"), ("code", "verifier"),
    ("client", "assertion"), ("access", "code"), ("recovery", "code"), ("recovery", "codes"), ("backup", "codes"),
    ("one", "time", "code"), ("seed", "phrase"), ("recovery", "phrase"), ("connect", "sid"), ("session", "cookie"),
})  # fmt: skip
"""Words that make a name secret side by side: `api_key_v2`, `private-key-pem`."""

_OF_ACCESS: Final = _words(
    "api access auth oauth bearer refresh session secret private signing encryption master client user admin root "
    "login account app bot service device db database mysql postgres pg redis mongo smtp mail email ftp ssh proxy "
    "http basic"
)
"""What stands before `keys`, `tokens` or `pass` when those are secrets, and no members, words or success."""

_PLAIN_KEYS: Final = _words(
    "primary foreign composite natural surrogate unique candidate alternate business idempotency idempotent "
    "correlation dedup deduplication dedupe cache partition sort range hash shard lookup join index group order row "
    "column field record item entity object map dict json path state context task run handoff operation event message "
    "span trace metric label tag config setting option feature flag locale translation answer metadata attribute "
    "property public hot shortcut arrow enter escape space tab project team issue parent child input output "
    "result memory history document chunk thread checkpoint artifact any each every this that the a by first last "
    "next"
)
"""What stands before `key` when it finds or orders something and opens nothing: `primary_key`, `idempotency_key`."""

_PLAIN_TOKENS: Final = _words(
    "next page continuation sync cancellation cancel eos bos pad unk mask cls sep stop start end special first last "
    "per input output prompt completion cached reasoning max min total design"
)
"""What stands before `token` when it is a piece of text or a place in a listing: `eos_token`, `next_page_token`."""

_ABOUT: Final = _words(
    "count counts counter total used usage limit limits max min length len size budget cost price rate rates id ids "
    "name names type types kind status state version versions at on in expiry expires expiration expired ttl age days "
    "hours minutes seconds s ms policy policies rule rules requirement requirements required enabled disabled present "
    "valid invalid verified accepted consent strength score format url uri endpoint field fields path file filename "
    "arn location provider manager scheme scope scopes algorithm alg issuer audience symbol index position "
    "logprobs banner"
)
"""A last word that says something about a secret, which is not the secret: `token_count`, `password_policy`."""

_ASKS: Final = _words("has is needs requires require num max min allow allows with without missing forgot")
"""A first word that asks or counts: `has_password`, `max_secrets`."""

_FORMS: Final = _words(
    "value header pem b base hex raw plain plaintext old new current previous prod production dev test "
    "staging live confirm confirmation again env v"
)
"""Last words that say which one or in what form, and change nothing: `token_value`, `signing_key_v2`."""

_SECRET_PARAMETERS: Final = frozenset({"sig", "signature", "key", "code", "ticket", "hmac", "sid", "session"})
"""Query parameters that open what they point at. Source: Azure SAS (`sig`), RFC 6749 section 4.1.2 (`code`)."""


def is_secret_name(name: str) -> bool:
    """Return whether what stands under a name is a secret, by the words of the name.

    Words are split at punctuation, digits and capitals, so `refreshToken`, `REFRESH_TOKEN` and `x-refresh-token` are
    one name. A name with a secret word is secret, unless its last word says that it is about a secret only. `key` and
    `token` as the last word are secret unless the word before says otherwise, so that `tavily_key` of a vendor nobody
    listed is. `keys`, `tokens` and `pass` are secret only after a word of access. In doubt a name is secret.

    Source: the names that Sentry's and Logfire's scrubbers hide by default, the request headers of RFC 9110 section
    11 and RFC 6265, and, for the neighbours that stay, names of databases, queues and model APIs.
    """
    words = tuple(word.casefold() for word in _WORD.findall(name))
    if words[-2:] in _SECRET_PAIRS:
        return True
    if not words or words[-1] in _ABOUT or words[0] in _ASKS:
        return False
    return any(word.endswith(_SECRET_ENDINGS) for word in words) or _has_pair(words) or _ends_secret(words)


def is_secret_parameter(name: str) -> bool:
    """Return whether the value of a URL's query parameter is a secret."""
    return name.casefold().rpartition("-")[2] in _SECRET_PARAMETERS or is_secret_name(name)


def _has_pair(words: tuple[str, ...]) -> bool:
    return any(words[at : at + size] in _SECRET_PAIRS for at in range(len(words)) for size in (2, 3))


def _ends_secret(words: tuple[str, ...]) -> bool:
    while words and (words[-1] in _FORMS or words[-1].isdigit()):
        words = words[:-1]
    if not words:
        return False
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if last == "key":
        return before != "" and before not in _PLAIN_KEYS
    if last.endswith("token"):
        return before not in _PLAIN_TOKENS
    if last in ("keys", "tokens", "pass"):
        return before in _OF_ACCESS
    return last in ("pw", "bearer") or last.endswith(("auth", "otp"))
