"""Tokens that hold, and all that must not: each refusal is of one that differs by one thing."""

import hmac
import time

import pytest
from joserfc.jwk import KeySet
from joserfc.util import urlsafe_b64encode

from gateway.control.oidc.tokens import (
    LEEWAY_S,
    LONGEST,
    MOST_KEYS,
    NoKey,
    NotValid,
    TokenRequirements,
    claims,
    is_jwt,
    key_id,
    usable,
)

HOUR_S = 3600
OURS = "breakeven-cli"


def now() -> int:
    return int(time.time())


@pytest.fixture(scope="module")
def keys(provider) -> KeySet:
    return usable(provider.keys(), provider.rule)


@pytest.mark.parametrize("by", ["rsa", "ec"])
def test_a_signed_token_says_who_it_is(provider, keys, by) -> None:
    token = provider.token(by)
    assert is_jwt(token)
    assert key_id(token) == f"{by}-1"
    assert claims(token, keys, provider.rule, now())["email"] == "ada@example.com"
    several = provider.token(by, aud=["another", OURS])
    assert claims(several, keys, provider.rule, now())["aud"] == ["another", OURS]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"iss": "https://elsewhere.example"}, "`iss`"),
        ({"iss": None}, "iss"),
        ({"iss": ["a"]}, "`iss`"),
        ({"aud": "another"}, "`aud`"),
        ({"aud": ["another", "third"]}, "`aud`"),
        ({"aud": None}, "aud"),
        ({"aud": {OURS: 1}}, "`aud`"),
        ({"exp": -LEEWAY_S - 1}, "expired"),
        ({"exp": None}, "exp"),
        ({"exp": "never"}, "`exp`"),
        ({"nbf": LEEWAY_S + HOUR_S}, "`nbf`"),
        ({"iat": LEEWAY_S + HOUR_S}, "`iat`"),
        ({"iat": None}, "iat"),
    ],
)
def test_a_claim_that_is_wrong_is_named(provider, keys, changes, words) -> None:
    now_s = now()
    times = {name: now_s + change for name, change in changes.items() if isinstance(change, int)}
    token = provider.token(**(changes | times))
    with pytest.raises(NotValid, match=words):
        claims(token, keys, provider.rule, now())
    assert claims(provider.token(), keys, provider.rule, now()), "the control"


@pytest.mark.parametrize("typ", ["logout+jwt", "secevent+jwt", "application/dpop+jwt", ""])
def test_another_kind_of_the_issuers_tokens_is_no_sign_in(provider, keys, typ) -> None:
    with pytest.raises(NotValid, match="`typ`"):
        claims(provider.token(header={"typ": typ}), keys, provider.rule, now())
    ended = {"http://schemas.openid.net/event/backchannel-logout": {}}
    with pytest.raises(NotValid, match="`events`"):
        claims(provider.token(events=ended), keys, provider.rule, now())
    for good in ("JWT", "at+jwt", "application/at+JWT"):
        assert claims(provider.token(header={"typ": good}), keys, provider.rule, now())


def test_who_does_not_have_the_key_signs_for_nobody(provider, keys) -> None:
    """The header names the issuer's key; the signature is another's."""
    good = provider.token()
    head, body, signature = good.split(".")
    other = provider.token(email="eve@example.com").split(".")[1]
    forged = [
        provider.token("stranger"), f"{head}.{other}.{signature}", f"{head}.{body}.",
        f"{head}.{body}.{signature[:-4]}", provider.token("short"),
        provider.token(header={"kid": "nobody"}), provider.token(header={"kid": "ec-1"}),
    ]  # fmt: skip
    for token in forged:
        with pytest.raises(NotValid):
            claims(token, keys, provider.rule, now())


@pytest.mark.parametrize("alg", ["none", "None", "HS256", "RS256", "", 7])
def test_an_algorithm_that_needs_no_secret_signs_nothing(provider, keys, alg) -> None:
    with pytest.raises(NotValid):
        claims(provider.unsigned(alg), keys, provider.rule, now())


def test_the_public_key_is_no_secret_to_sign_with(provider, keys) -> None:
    """The control: whoever lets the header choose, and takes any key, is deceived by this one."""
    forged = provider.token("public")
    with pytest.raises(NotValid, match="HS256"):
        claims(forged, keys, provider.rule, now())
    lax = TokenRequirements(provider.url, (OURS,), (*provider.rule.algorithms, "HS256"))
    with pytest.raises(NotValid):
        claims(forged, usable(provider.keys(), lax), lax, now())
    public = next(key for key in keys if key.kid == "rsa-1").as_pem(private=False)
    words, _, said = forged.encode().rpartition(b".")
    assert urlsafe_b64encode(hmac.digest(public, words, "sha256")) == said


def test_an_algorithm_that_is_not_configured_is_refused(provider, keys) -> None:
    narrow = TokenRequirements(provider.url, (OURS,), ("ES256",))
    with pytest.raises(NotValid, match="RS256"):
        claims(provider.token(), keys, narrow, now())
    assert claims(provider.token("ec"), keys, narrow, now())
    with pytest.raises(NotValid):  # another hash of the same kind of key
        claims(provider.token(header={"alg": "RS512"}), keys, provider.rule, now())


def test_of_a_key_set_only_what_signs_is_kept(provider) -> None:
    """It also has a secret, a kind nobody knows, an empty one and one of 1,024 bits."""
    assert {key.kid for key in usable(provider.keys(), provider.rule)} == {"rsa-1", "ec-1"}
    narrow = TokenRequirements(provider.url, (OURS,), ("ES384",))
    tied = {"keys": [{**each_key, "alg": "RS256"} for each_key in provider.keys()["keys"]]}
    with pytest.raises(NoKey):
        usable(tied, narrow)
    for item in ({**provider.keys()["keys"][0], "use": "enc"}, {"kty": "RSA", "n": 7}, "key"):
        with pytest.raises(NoKey):
            usable({"keys": [item]}, provider.rule)


@pytest.mark.parametrize("said", [{}, {"keys": 7}, {"keys": []}, {"keys": [{}] * (MOST_KEYS + 1)}])
def test_no_key_set_is_none(provider, said) -> None:
    with pytest.raises(NoKey):
        usable(said, provider.rule)


@pytest.mark.parametrize(
    "token",
    ["eyJ.a.b", "eyJhIjo.e30.x", "eyJ" + "0" * LONGEST + ".a.b", "eyJh\xe9.a.b",
     "eyJ" + "W1tb" * 2000 + ".a.b", "bnVsbA.e30.x"],
)  # fmt: skip
def test_what_is_no_token_is_told_so(provider, keys, token) -> None:
    with pytest.raises(NotValid):
        _ = key_id(token), claims(token, keys, provider.rule, now())


def test_a_key_of_ours_is_no_token() -> None:
    assert not is_jwt("gw_0011223344556677_" + "ab" * 32)
    assert not is_jwt("eyJh.b")
