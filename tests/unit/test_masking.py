"""What is secret is hidden before it is kept, and nothing else is changed."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.coding_agents.masking import _SECRETS, masked, masked_text, may_hold_secrets

KEY = "0123456789abcdefghijABCDEFGHIJ0123456789"
SECRETS = {
    "OpenAI's": f"export KEY=1; sk-proj-{KEY}",
    "Anthropic's": f"use sk-ant-api03-{KEY} here",
    "GitHub's": f"ghp_{KEY}",
    "GitHub's fine-grained": f"github_pat_{KEY}",
    "GitLab's": f"(glpat-{KEY})",
    "Slack's": "xoxb-1234567890-abcdefghij",
    "AWS's": "AKIAIOSFODNN7EXAMPLE",
    "Google's": "AIza" + "a" * 35,
    "Stripe's": "sk_live_" + "a" * 24,
    "a JSON web token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefghijklmnop",
    "a bearer's": "curl -H 'Authorization: Bearer abcdefghijklmnop0123'",
    "a variable's": "AWS_SECRET_ACCESS_KEY=abcdefghijklmnop/0123",
    "a quoted variable's": "export DB_PASSWORD='correct-horse'",
    "a URL's": "postgresql://me:hunter2@db/agents",
    "a URL's token": f"git push https://ghp_{KEY}@github.com/a/b",
    "a URL's token behind a user": f"https://x-access-token:ghp_{KEY}@github.com/a/b",
    "a variable of any name": f"X=ghp_{KEY}",
    "a key file's": "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "a setting's": 'api_key: "abcdefghijklmnop0123"',
    "a basic login": "curl -H 'Authorization: Basic YWRtaW46aHVudGVyMnNlY3JldA=='",
    "a header's key": "curl -H 'X-Api-Key: abcdefghijklmnop'",
    "a login": "curl -u admin:hunter2 https://example.com",
    "SendGrid's": "SG.abcdefghijklmnopqrstuv.abcdefghijklmnopqrstuvwxyz",
    "DigitalOcean's": "dop_v1_0123456789abcdef0123456789abcdef",
    "a key on one line": "-----BEGIN RSA PRIVATE KEY-----MIIEvQIBADANBgkqhkiG9w0-----END",
    "a private key": "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END",
}
HARMLESS = [
    "token = get_token()",
    "PASSWORD=$PASSWORD npm test",
    "see https://example.com/a:b@c and me@example.com",
    "sk-short, task-0123456789abcdefghijklmnop",
    "def test_the_secret(): assert API_KEY",
    "EqQBCkYIARgCKkDaskYXAsk-0123456789abcdefghijABCDEF-sk-0123456789abcdefghijABCDEF",
    "token=get_token_of_the_session(name)",
    "the key: a_very_long_name_without_numbers",
    "sudo -u postgres psql",
]


@pytest.mark.parametrize("kind", SECRETS)
def test_what_is_secret_is_hidden(kind: str) -> None:
    hidden = masked_text(SECRETS[kind])

    assert "***" in hidden
    for secret in (
        KEY,
        "hunter2",
        "MIIEv",
        "correct-horse",
        "abcdefghijklmnop",
        "AKIAIOSF",
        "wJalr",
        "YWRtaW",
    ):
        assert secret not in hidden
    assert may_hold_secrets(SECRETS[kind])


_PIECES = [
    *("sk-", "sk_live_", "ghp_", "xoxb-", "AKIA", "eyJ", "://", "me:", "@", "Bearer ", "DB_"),
    *("SECRET", "TOKEN", "PASSWORD", "ACCESS_KEY", "=", "PRIVATE KEY-----", "-----END", "-", "."),
    *(KEY, KEY.upper(), KEY[:10], " ", "x"),
]


@given(st.lists(st.sampled_from(_PIECES), max_size=8).map("".join))
def test_no_secret_is_passed_over_for_want_of_a_sign(text: str) -> None:
    assert may_hold_secrets(text) or _SECRETS.search(text) is None


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_looks_like_it_stays(text: str) -> None:
    assert masked_text(text) == text


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=10,
    ),
    st.sampled_from(sorted(SECRETS.values())),
)
def test_it_is_hidden_wherever_it_is_and_the_rest_stays(value: Any, secret: str) -> None:
    assert masked([value, {"deep": [secret]}]) == [masked(value), {"deep": [masked_text(secret)]}]
    assert masked(masked(value)) == masked(value)


def test_a_long_text_takes_no_time_that_grows_faster() -> None:
    long = "A_" * 50_000, "://" + "a" * 100_000, "sk- " * 50_000, "PRIVATE KEY-----" * 10_000
    for text in long:
        assert masked_text(text) == text
