"""Secrets in running text, known by their shape or by the name before them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handoffwatch.values.secret_names import is_secret_name
from handoffwatch.values.secret_shapes import without_secrets
from support.near_misses import NEAR_MISSES, near_miss
from support.secrets import PEM_KINDS, pem, vendor_keys

R = "[redacted]"


def _redacted(text: str) -> str:
    return without_secrets(text, is_secret=is_secret_name)


@pytest.mark.parametrize("key", vendor_keys("Qz7Rk2Vb9Lm4Xt6Wp3Nc8Hd5"), ids=lambda key: key[:6])
@pytest.mark.parametrize(
    "around", ["{}", "the key {} was refused", "(key:{})", '"{}"', "a\\n{}\\nb", "https://x/{}?a=b"]
)
def test_without_secrets_hides_a_key_when_a_vendors_prefix_tells_it(key: str, around: str) -> None:
    """The key goes, what stands around it stays."""
    assert _redacted(around.format(key)) == around.format(R)


@pytest.mark.parametrize(
    "text",
    [
        "task-12345678901234567890", "risk-Management-Framework-2024", "sk-learn-compatible-estimators", "sk-1",
        "npm_config_registry", "hf_hub_download", "github_pattern", "xoxo-hugs", "AKIA", "AKIAIOSFODNN7EXAMPLEXYZ",
        "SG.something.else", "eyJ", "eyJhbGciOiJIUzI1NiJ9", "a.b.c", "1.2.3", "glass-breaking2024",
        "3f5a9c1e7b2d4f6a8c0e1b3d5f7a9c1e", "d41d8cd98f00b204e9800998ecf8427e", "123e4567-e89b-12d3-a456-426614174000",
    ],
)  # fmt: skip
def test_without_secrets_keeps_a_text_when_it_only_resembles_a_key(text: str) -> None:
    """Words, versions, digests and ids stay."""
    assert _redacted(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Authorization: Basic dXNlcjpwYXNz", f"Authorization: Basic {R}"),
        ("sent Authorization: Bearer abc and got 401", f"sent Authorization: Bearer {R} and got 401"),
        ("Authorization: Custom hunter2, next", f"Authorization: {R}, next"),
        ("Authorization: hunter2", f"Authorization: {R}"),
        ("(Authorization: hunter2 )", f"(Authorization: {R} )"),
        ("authorization=Token abc", f"authorization=Token {R}"),
        ("Proxy-Authorization: Negotiate YII", f"Proxy-Authorization: Negotiate {R}"),
        ('Authorization: Digest username="Mufasa", response="6629" end', f"Authorization: Digest {R} end"),
        ('retry with Digest username="Mufasa", response="6629" now', f"retry with Digest {R} now"),
        ("AWS4-HMAC-SHA256 Credential=a/b, SignedHeaders=host, Signature=f0 x", f"AWS4-HMAC-SHA256 {R} x"),
        ("it says Bearer aB3-x_9.z here", f"it says Bearer {R} here"),
        ("it says bearer " + "a" * 24, f"it says bearer {R}"),
        ("it says Basic dXNlcjpwYXNz here", f"it says Basic {R} here"),
        ("it says ApiKey secretKeyOf here", f"it says ApiKey {R} here"),
        ("it says Negotiate YIIGhgYGKwYBBQ== here", f"it says Negotiate {R} here"),
        ("Basic plan, basic knowledge, a bearer of news", "Basic plan, basic knowledge, a bearer of news"),
        ("bearer authentication, Digest of the week", "bearer authentication, Digest of the week"),
        ("a basic 12-month plan; negotiate terms", "a basic 12-month plan; negotiate terms"),
    ],
)
def test_without_secrets_hides_credentials_when_a_text_holds_an_authorization_header(text: str, expected: str) -> None:
    """BR-123: header text inside strings; the scheme stays, and so does prose with the same words."""
    assert _redacted(text) == expected
    assert _redacted(expected) == expected


@pytest.mark.parametrize("kind", PEM_KINDS)
def test_without_secrets_hides_a_private_key_when_it_is_whole_or_cut(kind: str) -> None:
    """A key in PEM goes with its frame, escaped or not, and to the end of the text when its end was cut off."""
    key = pem(kind)

    assert _redacted(f"before\n{key}\nafter") == f"before\n{R}\nafter"
    assert _redacted("before\\n" + key.replace("\n", "\\n") + "\\nafter") == f"before\\n{R}\\nafter"
    assert _redacted(f'KEY="{key}"\nX=1') == f'KEY="{R}"\nX=1'
    assert _redacted(f"before\n{key[:90]}") == f"before\n{R}"


def test_without_secrets_keeps_a_public_key() -> None:
    """What everybody may know stays."""
    text = pem("PRIVATE KEY").replace("PRIVATE", "PUBLIC")

    assert _redacted(text) == text


def test_without_secrets_hides_a_web_token_when_it_is_signed_or_encrypted_or_cut() -> None:
    """Three parts, five parts, or what is left of them."""
    head, body, tail = "eyJhbGciOiJIUzI1NiJ9", "eyJzdWIiOiIxMjM0NTY3ODkwIn0", "dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"

    assert _redacted(f"a {head}.{body}.{tail} b") == f"a {R} b"
    assert _redacted(f"a {head}.{body}.{tail}.{tail}.{tail}, b") == f"a {R}, b"
    assert _redacted(f"a {head}.{body}") == f"a {R}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("postgres://bob:hunter2@db:5432/x", f"postgres://bob:{R}@db:5432/x"),
        ("redis://:hunter2@cache", f"redis://:{R}@cache"),
        ("a https://bob:p@ss@h/x?q=1 b", f"a https://bob:{R}@h/x?q=1 b"),
        ("https://hunter2:@api.example.com", f"https://{R}:@api.example.com"),
        ("ssh://git@example.com:22/x", "ssh://git@example.com:22/x"),
        ("http://localhost:8080/@scope/x", "http://localhost:8080/@scope/x"),
        ("https://x/y?token=abc&user=bob#top", f"https://x/y?token={R}&user=bob#top"),
        ("https://x/y?sv=1&sig=a%2Fb%3D&se=2", f"https://x/y?sv=1&sig={R}&se=2"),
        ("https://x/y?key=abc and key=abc", f"https://x/y?key={R} and key=abc"),
        ("https://x/#access_token=abc&state=s", f"https://x/#access_token={R}&state=s"),
        ("https://x/cb?code=abc&amp;state=s", f"https://x/cb?code={R};state=s"),
        ("user[password]=abc&user[name]=bob", f"user[password]={R}&user[name]=bob"),
    ],
)
def test_without_secrets_hides_credentials_when_they_stand_in_a_url(text: str, expected: str) -> None:
    """User's passwords and secret parameters go; host, path and the other parameters stay."""
    assert _redacted(text) == expected
    assert _redacted(expected) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("token=abc", f"token={R}"),
        ("password: hunter2.", f"password: {R}."),
        ("Password = hunter2, user = bob", f"Password = {R}, user = bob"),
        ("db_password:=hunter2;host=h", f"db_password:={R};host=h"),
        ("password=a,b!c&d)e", f"password={R}"),
        ("(password=abc) b", f"(password={R}) b"),
        ("f(token=abc).g", f"f(token={R}).g"),
        ("API key: abc and primary key: 5", f"API key: {R} and primary key: 5"),
        ("the key: always be kind", "the key: always be kind"),
        ("max_tokens: 10, tokens_used=5", "max_tokens: 10, tokens_used=5"),
        ("passphrase: correct horse battery\nnext", f"passphrase: {R}\nnext"),
        ("Cookie: a=b; c=d and then", f"Cookie: {R} and then"),
        ("Set-Cookie: sid=abc; Path=/; HttpOnly", f"Set-Cookie: {R}"),
        ("run --token abc --user bob --api-key=x", f"run --token {R} --user bob --api-key={R}"),
        ("--password 'a b' x", f"--password '{R}' x"),
        ("--token api password: abc", f"--token {R} password: {R}"),
        ("AccountKey=abc==;EndpointSuffix=core", f"AccountKey={R};EndpointSuffix=core"),
        ("a\\npassword=abc", f"a\\npassword={R}"),
        ("DB_PASS=x first_pass=5", f"DB_PASS={R} first_pass=5"),
        ("config: {password: abc, user: bob}", f"config: {{password: {R}, user: bob}}"),
        ("secret 'x' is not named", "secret 'x' is not named"),
    ],
)
def test_without_secrets_hides_a_value_when_a_secret_name_stands_before_it(text: str, expected: str) -> None:
    """BR-137: what a name says is a secret goes, and the text around it stays."""
    assert _redacted(text) == expected
    assert _redacted(expected) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"password": "hunter2", "user": "bob"', f'{{"password": "{R}", "user": "bob"'),
        ("{'password': 'hun\\'ter2', 'user': 'bob'}", f"{{'password': '{R}', 'user': 'bob'}}"),
        ('{\\"password\\": \\"hun\\\\\\"ter2\\", \\"user\\": 1}', f'{{\\"password\\": \\"{R}\\", \\"user\\": 1}}'),
        ('password="""hunter2""" x', f'password="""{R}""" x'),
        ("password=`hunter2` x", f"password=`{R}` x"),
        ('password="hunter2\nx', f'password="{R}\nx'),
        ("{'pin_token': 123456, 'n': 1}", f"{{'pin_token': {R}, 'n': 1}}"),
        ("credentials={'user': {'a': [1, 2]}, 'pw': 'x'} end", f"credentials={R} end"),
        ("api_keys: ['a', 'b'] end", f"api_keys: {R} end"),
        ("os.environ['API_KEY'] = 'abc' # x", f"os.environ['API_KEY'] = '{R}' # x"),
        ("curl -H 'X-Api-Key: abc' -H \"Cookie: a=b\" x", f"curl -H 'X-Api-Key: {R}' -H \"Cookie: {R}\" x"),
    ],
)
def test_without_secrets_hides_a_whole_value_when_it_is_in_quotes_or_brackets(text: str, expected: str) -> None:
    """Quotes stay where they are, whatever the language of the text."""
    assert _redacted(text) == expected
    assert _redacted(expected) == expected


@pytest.mark.parametrize(
    "text",
    [
        "password=",
        "password: ",
        'password=""',
        "password: '' x",
        "token: null",
        "token=None, x",
        "secret=[]",
        "api_key: {}",
    ],
)
def test_without_secrets_keeps_a_value_when_it_says_nothing(text: str) -> None:
    """Nothing under a secret name is no secret, and a reader must see that nothing was there."""
    assert _redacted(text) == text


@given(st.text(alphabet="ab =:;,.&\"'`\\[](){}@/-\n\u00e9tokenpasswordbearer012AZ\ud83c", max_size=200))
def test_without_secrets_answers_when_a_text_is_any_text(text: str) -> None:
    """Quotes and brackets need not match, and half of a character is one."""
    assert isinstance(_redacted(text), str)


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_without_secrets_ends_soon_when_a_text_only_comes_near(name: str) -> None:
    """BR-126: 64 KiB of near misses take well under a second, where a careless pattern takes hours."""
    text = near_miss(name, 65_536)
    started = time.thread_time()

    _redacted(text)

    assert time.thread_time() - started < 1
