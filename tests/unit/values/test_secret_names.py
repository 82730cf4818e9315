"""Names under which secrets stand, and their harmless neighbours."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handoffwatch.values.secret_names import is_secret_name, is_secret_parameter

SECRET = [
    "pw", "db_pw", "bearer",
    "password", "Password", "PASSWORD", "passwd", "pwd", "passphrase", "user_password", "userPassword", "password2",
    "db-password", "new_password_confirmation", "password_hash", "mysqlpwd", "DB_PASS", "smtp.pass", "secret",
    "secrets", "client_secret", "clientSecret", "clientsecret", "CLIENT_SECRET", "secret_id", "SECRET_KEY_BASE",
    "secret_access_key", "aws_secret_access_key", "credential", "credentials", "credentials_json", "api_key",
    "apiKey", "APIKey", "apikey", "x-api-key", "X-Api-Key", "OPENAI_API_KEY", "api_key_v2", "api_keys",
    "tavily_key", "tavilyKey", "acme_key", "ssh_key", "private_key", "privatekey", "private-key-pem", "signing_key",
    "encryption_key_old", "AccountKey", "license_key", "access_key", "session_key", "ssh_keys_private_key", "token",
    "Token", "TOKEN", "access_token", "accessToken", "accesstoken", "refreshToken", "refresh_tokens", "id_token",
    "bot_token", "bottoken", "csrf_token", "x-csrf-token", "token_value", "token2", "API_TOKEN_PROD", "oauth_token",
    "X-Amz-Security-Token", "Authorization", "authorization", "Proxy-Authorization", "authorization_header", "auth",
    "basic_auth", "oauth", "auth_code", "authorization_code", "code_verifier", "cookie", "Cookie", "Set-Cookie",
    "session_cookie", "connect.sid", "jwt", "user_jwt", "totp", "otp", "cvv", "recovery_codes", "seed_phrase",
    "mnemonic", "one_time_code",
]  # fmt: skip

HARMLESS = [
    "key", "keys", "Key", "primary_key", "primaryKey", "foreign_key", "idempotency_key", "Idempotency-Key",
    "business_key", "businessKey", "refund_business_key", "sort_key", "partition_key", "cache_key", "group_key",
    "public_key", "publicKey", "ssh_public_key_pem", "dedup_key", "team_key", "keyboard", "keyword", "keywords",
    "key_points", "monkey", "turkey", "required_keys", "dict_keys", "key_value", "key_id", "access_key_id",
    "api_key_id", "api_key_name", "the_key", "tokens", "token_count", "tokenCount", "max_tokens", "maxTokens",
    "tokens_used", "total_tokens", "input_tokens", "completion_tokens", "token_usage", "token_limit", "token_type",
    "token_ids", "token_budget", "tokenizer", "tokenize", "next_page_token", "nextPageToken", "eos_token",
    "pad_token", "cost_per_token", "token_endpoint", "expires_in", "password_policy", "passwordless",
    "password_changed_at", "has_password", "hasPassword", "password_min_length", "requires_auth", "auth_type",
    "auth_method_name", "author", "authors", "authority", "authored_by", "cookie_consent", "cookie_policy",
    "secretary", "secret_name", "secret_version", "credential_type", "authorization_status", "allow_credentials",
    "num_secrets", "client_id", "session_id", "user", "pass", "first_pass", "pass_rate", "compass", "code",
    "status_code", "signature", "id", "name", "goal", "constraints", "", "_", "日本", "7",
]  # fmt: skip


@pytest.mark.parametrize("name", SECRET)
def test_is_secret_name_is_true_when_a_secret_stands_under_a_name(name: str) -> None:
    """BR-123: a name is secret by its words, whatever its case and punctuation and whoever the vendor is."""
    assert is_secret_name(name) is True


@pytest.mark.parametrize("name", HARMLESS)
def test_is_secret_name_is_false_when_a_name_only_resembles_one(name: str) -> None:
    """What finds, counts or describes something is no secret."""
    assert is_secret_name(name) is False


@pytest.mark.parametrize("name", ["sig", "SIG", "X-Amz-Signature", "key", "code", "token", "access_token", "sid"])
def test_is_secret_parameter_is_true_when_a_query_opens_what_it_points_at(name: str) -> None:
    """In a URL's query more names are secret than in a field."""
    assert is_secret_parameter(name) is True


@pytest.mark.parametrize("name", ["page", "q", "state", "max_tokens", "sort_key_order", "encode"])
def test_is_secret_parameter_is_false_when_a_query_only_asks(name: str) -> None:
    """Other parameters stay readable."""
    assert is_secret_parameter(name) is False


@given(
    st.sampled_from(["api key", "access token", "client secret", "db password", "primary key", "max tokens", "key id"]),
    st.sampled_from(["_", "-", ".", " ", "__"]),
    st.sampled_from([str.lower, str.upper, str.title]),
)
def test_is_secret_name_agrees_with_itself_when_only_the_spelling_differs(
    words: str, between: str, spell: object
) -> None:
    """Snake, kebab, dotted, camel and upper case are one name."""
    camel = words.title().replace(" ", "")

    assert is_secret_name(spell(words).replace(" ", between)) is is_secret_name(camel)  # type: ignore[operator]


@given(st.text(max_size=300))
def test_is_secret_name_answers_when_a_name_is_any_text(name: str) -> None:
    """Any text is a name."""
    assert is_secret_name(name) in (True, False)
