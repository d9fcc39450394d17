"""Keys at the door: revoked within a second, expired, scoped, and known ones without a ledger."""

import asyncio
import time
from types import SimpleNamespace

import pytest

from gateway.auth import allowed, authenticate, token_of
from gateway.clock import Clock
from gateway.errors import RequestError
from ledger.identity.keys import LedgerUnavailable, revoke_key


def test_a_revoked_key_is_refused_within_a_second(stack, patiently) -> None:
    made = stack.key("leaving")
    assert stack.chat("own", made.token, max_tokens=2).status_code == 200
    with stack.database.begin() as connection:
        revoke_key(connection, made.key_id, now_us=Clock().wall_us())
    revoked_s = time.monotonic()
    patiently(lambda: stack.chat("own", made.token, max_tokens=2).status_code == 401)
    assert time.monotonic() - revoked_s < 10  # the news travel five times a second
    assert stack.chat("own", max_tokens=2).status_code == 200


def test_expiry_and_scope(stack, patiently) -> None:
    brief = stack.key("brief", expires_us=Clock().wall_us() + 1_500_000).token
    patiently(lambda: stack.chat("own", brief, max_tokens=2).status_code == 401)
    viewer = stack.key("viewer", scopes=("admin",)).token
    answer = stack.chat("own", viewer, max_tokens=2)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")


@pytest.mark.parametrize(
    ("scopes", "asked", "may"),
    [
        ({"usage"}, "usage", True),
        ({"usage:all"}, "usage", True),
        ({"usage"}, "inference", False),
        ({"inference"}, "usage", False),
        ({"inference:all"}, "usage", False),
    ],
)
def test_a_scope_for_all_teams_holds_the_one_for_its_own(scopes, asked: str, may: bool) -> None:
    class KeyRing:
        def recall(self, token: str, now_us: int) -> SimpleNamespace:
            return SimpleNamespace(scopes=frozenset(scopes))

    found = authenticate(KeyRing(), "t", now_us=0, scope=asked)
    if may:
        assert asyncio.run(found).scopes == scopes
    else:
        with pytest.raises(RequestError, match=f"scope `{asked}`"):
            asyncio.run(found)


def test_residency_of_a_key_keeps_it_inside(stack) -> None:
    inside = stack.key("inside", residency="internal_only").token
    assert stack.chat("own", inside, max_tokens=2).status_code == 200
    refused = stack.chat("api", inside, max_tokens=2)
    assert refused.status_code == 403
    assert "residency" in refused.json()["error"]["message"]


@pytest.mark.parametrize(
    ("headers", "token"),
    [
        ([(b"authorization", b"Bearer abc")], "abc"),
        ([(b"authorization", b"bearer  abc ")], "abc"),
        ([(b"x-api-key", b"abc")], "abc"),
        ([(b"accept", b"*/*"), (b"authorization", b"Bearer \xff")], "\xff"),
        ([(b"authorization", b"Bearer a"), (b"authorization", b"Bearer b")], "a"),
    ],
)
def test_the_token_is_found(headers, token: str) -> None:
    assert token_of(headers) == token


@pytest.mark.parametrize("headers", [[], [(b"authorization", b"Basic abc")], [(b"cookie", b"x")]])
def test_without_a_token_the_answer_says_how(headers) -> None:
    with pytest.raises(RequestError, match="Authorization: Bearer") as told:
        token_of(headers)
    assert told.value.row.status == 401


def test_with_the_ledger_away_an_unknown_key_is_503() -> None:
    class AwayLedger:
        def recall(self, token: str, now_us: int) -> None:
            return None

        async def lookup(self, token: str, now_us: int) -> None:
            raise LedgerUnavailable("gone")

    with pytest.raises(RequestError) as told:
        asyncio.run(authenticate(AwayLedger(), "t", now_us=0, scope="inference"))
    assert (told.value.row.status, told.value.retry_after_s) == (503, 1.0)


@pytest.mark.parametrize(
    ("models", "asked", "resolved", "may"),
    [
        (None, "a", "b", True),
        (("a",), "a", "b", True),
        (("b",), "a", "b", True),
        (("c",), "a", "b", False),
        ((), "a", "a", False),
        (("openai/*",), "openai/gpt", "openai/gpt", True),
        (("openai/*",), "openai/a/b", "openai/a/b", True),
        (("openai/*",), "alias", "openai/gpt", True),
        (("openai/*",), "openai-eu/gpt", "openai-eu/gpt", False),
        (("openai/*",), "openai", "openai", False),
        (("*",), "openai/gpt", "openai/gpt", False),
    ],
)
def test_a_keys_models(models, asked: str, resolved: str, *, may: bool) -> None:
    assert allowed(models, asked, resolved) is may


@pytest.mark.parametrize(("token", "hinted"), [("sk-proj-1", True), ("gw_1_2", False)])
def test_a_token_of_another_product_is_told_what_keys_look_like_here(stack, token, hinted) -> None:
    answer = stack.chat("own", token, max_tokens=2)
    assert answer.status_code == 401
    assert ("begin with `gw_`" in answer.json()["error"]["message"]) is hinted
