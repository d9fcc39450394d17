"""Verification of an issuer's token: signature, audience and lifetime. No I/O.

`joserfc` verifies; this module sets what is allowed. An issuer's key is used only for signatures of
its own type, and none of them can be made with public data: a token with another algorithm (`none`,
an HMAC with the public key as its secret) is refused before any key is used. Key references in a
token's header (`jwk`, `jku`, `x5u`) are never followed.
"""

import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from joserfc import jwt
from joserfc.errors import ExpiredTokenError, InvalidKeyIdError, JoseError
from joserfc.jwk import Key, KeySet, import_key
from joserfc.jws import JWSRegistry
from joserfc.util import urlsafe_b64decode

LONGEST = 16 * 1024  # characters
LEEWAY_S = 60  # clocks of two machines
MOST_KEYS = 64
LEAST_RSA_BITS = 2048
_TYPES = ("jwt", "at+jwt")  # of an ID token, and of an access token
_KINDS = ("RSA", "EC", "OKP")  # no shared secrets


class NotValid(Exception):
    """The token is not valid; the text says why, without its contents."""


class NoKey(Exception):
    """The issuer has no usable key."""


@dataclass(frozen=True, slots=True)
class TokenRequirements:
    """Requirements of a token. Its audience must be one of `audiences`."""

    issuer: str
    audiences: tuple[str, ...]
    algorithms: tuple[str, ...]


def is_jwt(token: str) -> bool:
    """Return whether the token has the form of a signed JWT; keys of the gateway do not."""
    return token.startswith("eyJ") and token.count(".") == 2


def key_id(token: str) -> str | None:
    """Return the `kid` of the token's header, unverified, used only to find a key."""
    if len(token) > LONGEST:
        raise NotValid(f"it is longer than {LONGEST} characters")
    try:
        header = json.loads(urlsafe_b64decode(token.partition(".")[0].encode("ascii")))
        found = header.get("kid")
    except (ValueError, binascii.Error, AttributeError, RecursionError) as error:
        raise NotValid("its header cannot be read") from error
    return found if isinstance(found, str) else None


def usable(document: Mapping[str, Any], rule: TokenRequirements) -> KeySet:
    """Return the keys of a JWKS that may sign tokens. Raises `NoKey` if there are none."""
    said = document.get("keys")
    if not isinstance(said, Sequence) or len(said) > MOST_KEYS:
        raise NoKey(f"`keys` is a list of at most {MOST_KEYS}")
    found: list[Key] = [key for line in said if (key := _key(line, rule)) is not None]
    if not found:
        raise NoKey("none of its keys signs by what `oidc.algorithms` allows")
    return KeySet(found)


def claims(token: str, keys: KeySet, rule: TokenRequirements, now_s: int) -> dict[str, Any]:
    """Return the verified claims of a token. Raises `NotValid`."""
    registry = JWSRegistry(algorithms=list(rule.algorithms), strict_check_header=False)
    registry.max_header_length = LONGEST  # certificates (`x5c`) stand there
    wanted = jwt.JWTClaimsRegistry(
        now=now_s,
        leeway=LEEWAY_S,
        iss={"essential": True, "value": rule.issuer},
        aud={"essential": True, "values": list(rule.audiences)},
        exp={"essential": True},
        iat={"essential": True},
    )
    try:
        decoded = jwt.decode(token, keys, registry=registry)
        said = decoded.claims
        wanted.validate(said)
    except ExpiredTokenError as error:
        raise NotValid("it has expired: sign in again") from error
    except InvalidKeyIdError as error:
        raise NotValid("the issuer publishes no key with its id") from error
    except JoseError as error:
        raise NotValid(_error_text(error)) from error
    except (ValueError, TypeError, RecursionError) as error:
        raise NotValid("it cannot be read") from error
    _refuse_other_kinds(decoded.header, said)
    return said


def _refuse_other_kinds(header: Mapping[str, Any], said: Mapping[str, Any]) -> None:
    """Refuse other tokens of the issuer, such as a logout token (`events`)."""
    kind = header.get("typ", "JWT")
    if not isinstance(kind, str) or kind.lower().removeprefix("application/") not in _TYPES:
        raise NotValid("its `typ` belongs to another kind of token")
    if "events" in said:
        raise NotValid("it contains `events`, so it is not a sign-in token")


def _key(said: object, rule: TokenRequirements) -> Key | None:
    """Return the key, or `None` if it is for another use, too short, or of an unknown form."""
    if not isinstance(said, dict) or said.get("kty") not in _KINDS or "d" in said:
        return None
    if said.get("use", "sig") != "sig":
        return None
    if said.get("alg", rule.algorithms[0]) not in rule.algorithms:
        return None
    try:
        modulus = urlsafe_b64decode(str(said.get("n", "")).encode("ascii"))
        if said["kty"] == "RSA" and len(modulus) * 8 < LEAST_RSA_BITS:
            return None
        return import_key(said)
    except (JoseError, ValueError, TypeError, KeyError):  # one bad key; others may be good
        return None


def _error_text(error: JoseError) -> str:
    """Return the library's error text, which names a claim or an algorithm."""
    claim = getattr(error, "claim", None)
    return f"`{claim}` is not as it must be" if claim else str(error.description or error.error)
