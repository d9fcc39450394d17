"""Whether a token of the issuer holds: its signature, for whom it is, and until when. No I/O.

`joserfc` reads and verifies; what is allowed is said here. A key of the issuer's is used for the
signatures of its own kind alone, and none of them can be made with what is public: a token that
names another algorithm (`none`, an HMAC with the public key as its secret) is refused before any
key is looked at. What a token's header says of keys (`jwk`, `jku`, `x5u`) is never followed.
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
_TYPES = ("jwt", "at+jwt")  # of a sign-in, and of an access token
_KINDS = ("RSA", "EC", "OKP")  # no secrets that both sides know


class NotValid(Exception):
    """The token does not hold; the text says why, and nothing of what it contains."""


class NoKey(Exception):
    """None of the issuer's keys that are of use."""


@dataclass(frozen=True, slots=True)
class TokenRequirements:
    """The requirements of a token. `audiences`: a token is for one of them."""

    issuer: str
    audiences: tuple[str, ...]
    algorithms: tuple[str, ...]


def is_jwt(token: str) -> bool:
    """Whether it is of the form of a signed JWT; no key of ours is."""
    return token.startswith("eyJ") and token.count(".") == 2


def key_id(token: str) -> str | None:
    """The `kid` that its header names, believed for nothing but finding a key."""
    if len(token) > LONGEST:
        raise NotValid(f"it is longer than {LONGEST} characters")
    try:
        header = json.loads(urlsafe_b64decode(token.partition(".")[0].encode("ascii")))
        found = header.get("kid")
    except (ValueError, binascii.Error, AttributeError, RecursionError) as error:
        raise NotValid("its header cannot be read") from error
    return found if isinstance(found, str) else None


def usable(document: Mapping[str, Any], rule: TokenRequirements) -> KeySet:
    """The keys of a JWKS that may have signed. Raises `NoKey` without one."""
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
        raise NotValid("the issuer has no such key") from error
    except JoseError as error:
        raise NotValid(_error_text(error)) from error
    except (ValueError, TypeError, RecursionError) as error:
        raise NotValid("it cannot be read") from error
    _refuse_other_kinds(decoded.header, said)
    return said


def _refuse_other_kinds(header: Mapping[str, Any], said: Mapping[str, Any]) -> None:
    """An issuer signs more than sign-ins: what tells of one that ended is none (`events`)."""
    kind = header.get("typ", "JWT")
    if not isinstance(kind, str) or kind.lower().removeprefix("application/") not in _TYPES:
        raise NotValid("its `typ` is that of another kind of token")
    if "events" in said:
        raise NotValid("it tells of `events`, and is no sign-in")


def _key(said: object, rule: TokenRequirements) -> Key | None:
    """None of one that is for something else, too short, or of no form that is known."""
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
    except (JoseError, ValueError, TypeError, KeyError):  # of one key; others may be good
        return None


def _error_text(error: JoseError) -> str:
    """The library's own, which name a claim or an algorithm."""
    claim = getattr(error, "claim", None)
    return f"`{claim}` is not as it must be" if claim else str(error.description or error.error)
