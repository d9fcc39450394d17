"""Identity of people: vouched for by the dashboard, or signed in with a token (`oidc`).

Both provide only a name (`ledger.identity.vouchers`, `gateway.control.oidc`). The role is read at
every request from the file named by `dashboard.access_file`; roles claimed by the dashboard or a
token are ignored. Without that file the dashboard is open and nobody has a name: people may view
and simulate, and change nothing, since each change needs an author.
"""

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

from starlette.types import Message, Receive, Scope

from gateway.auth import INFERENCE, KEYS_OWN, OPEN, PERSON
from gateway.clock import Clock
from gateway.config.settings import Settings
from gateway.control.roles import ROLES, KeyRole
from gateway.errors import RequestError
from gateway.http.fields import KEYS
from ledger.identity.keys import Identity
from ledger.identity.people import (
    AccessDocument,
    AccessFile,
    AccessFileError,
    DashboardRole,
    KeyLeave,
    Person,
    UnnamedPerson,
)
from ledger.identity.secretfile import read_secret
from ledger.identity.vouchers import (
    HEADER,
    KEY_FILE,
    InvalidVoucher,
    VouchedRequest,
    VouchedUser,
    verify_voucher,
)

VIEWED = ROLES[KeyRole.VIEWER]
MAY: dict[DashboardRole, frozenset[str]] = {
    DashboardRole.VIEWER: VIEWED,
    DashboardRole.FINANCE: VIEWED | ROLES[KeyRole.FINANCE],
    DashboardRole.ADMIN: ROLES[KeyRole.ADMIN]
    - {INFERENCE, KEYS_OWN},  # only keys call models; own keys need an entry in the access file
}
_NAME = HEADER.encode()


class TokenVerifier(Protocol):
    """Verifier of sign-in tokens, implemented by `gateway.control.oidc.signin.OidcSignIn`."""

    def is_sign_in_token(self, token: str) -> bool: ...

    async def claims(self, token: str, now_us: int) -> dict[str, Any]: ...


class SignedInPeople:
    def __init__(
        self,
        access: AccessFile | None,
        key: Callable[[], bytes | None],
        sign_in: TokenVerifier | None = None,
    ) -> None:
        """Use an access file and a voucher key; without a key nobody can be vouched for."""
        self._access = access
        self._key = key
        self._sign_in = sign_in

    def is_sign_in_token(self, token: str) -> bool:
        """Return whether this bearer token is a person's sign-in, and not a gateway key."""
        return self._sign_in is not None and self._sign_in.is_sign_in_token(token)

    async def sign_in(self, token: str, now_us: int) -> Identity:
        """Return the signed-in identity. Raises 401, 403, or 503 if the issuer is unavailable."""
        assert self._sign_in is not None
        claims = await self._sign_in.claims(token, now_us)
        access = self._read()
        if access is None:
            words = "No access file here says what people may do: set `dashboard.access_file`."
            raise RequestError("forbidden", words)
        try:
            name, since_s = access.name_of_sign_in(claims)
        except UnnamedPerson as error:
            raise RequestError("forbidden", str(error)) from error
        if not access.lasts(since_s, now_us / 1e6):
            raise RequestError("bad_key", "This sign-in is too old. Sign in again.")
        return _find_identity(access, name)

    def vouched_header(self, scope: Scope) -> str | None:
        """Return the voucher header, or `None`. Raises if it is repeated or sent with a key."""
        headers: Iterable[tuple[bytes, bytes]] = scope["headers"]
        names = [name for name, _ in headers]
        if _NAME not in names:
            return None
        if names.count(_NAME) > 1 or b"authorization" in names or not KEYS.isdisjoint(names):
            raise RequestError("bad_key", f"Send `{HEADER}` once, or a key, not both.")
        return next(value for name, value in headers if name == _NAME).decode("latin-1")

    def identity(self, value: str, scope: Scope, now_us: int) -> tuple[Identity, VouchedUser]:
        """Return the identity of a vouched person. Raises 401 and 403."""
        key = self._key()
        if key is None:
            raise RequestError(
                "bad_key",
                "This gateway has no dashboard key. Start the dashboard with "
                "`dashboard.enabled: true` first.",
            )
        path, query = scope.get("raw_path") or scope["path"].encode(), scope["query_string"]
        target = (path + (b"?" + query if query else b"")).decode("latin-1")
        try:
            vouched = verify_voucher(key, value, VouchedRequest(scope["method"], target), now_us)
        except InvalidVoucher as error:
            words = f"`{HEADER}` does not hold: {error}."
            raise RequestError("bad_key", words) from error
        return self._identity(vouched.name), vouched

    def _identity(self, name: str | None) -> Identity:
        if self._access is None:
            if name is not None:
                words = f"No access file here says what {name} may do: set `dashboard.access_file`."
                raise RequestError("forbidden", words)
            return _identity(None, VIEWED)
        access = self._read()
        assert access is not None
        return _find_identity(access, name)

    def _read(self) -> AccessDocument | None:
        """Return the current access file, or `None` if none is configured."""
        try:
            return None if self._access is None else self._access.read()
        except AccessFileError as error:
            raise RequestError(
                "forbidden", f"The access file is invalid, so nobody can sign in: {error}."
            ) from error


def permissions_of(person: Person) -> frozenset[str]:
    """Return a person's scopes; people of single teams have none beyond own keys."""
    held: frozenset[str] = frozenset() if person.teams is not None else MAY[person.role]
    return held if person.keys is None else held | {KEYS_OWN}


def people_of(settings: Settings, clock: Clock) -> SignedInPeople:
    path, state = settings.dashboard.access_file, settings.state.resolve()
    access = None if path is None else AccessFile(Path(path))
    return SignedInPeople(access, lambda: read_secret(state / KEY_FILE), _sign_in(settings, clock))


def may_make_keys(settings: Settings) -> Callable[[str], bool]:
    """Return a check whether a person may still make keys; otherwise their keys end.

    An access file that is missing or invalid ends no keys.
    """
    path = settings.dashboard.access_file
    access = None if path is None else AccessFile(Path(path))

    def is_member(name: str) -> bool:
        if access is None:
            return True
        try:
            found = access.read().find(name)
        except AccessFileError:
            return True
        return found is not None and found.keys is not None

    return is_member


def _sign_in(settings: Settings, clock: Clock) -> TokenVerifier | None:
    if settings.oidc.issuer is None:
        return None
    from gateway.control.oidc.signin import sign_in  # noqa: PLC0415 - some MB for those who use it alone

    return sign_in(settings.oidc, clock)


def verify_body(receive: Receive, body: str) -> Receive:
    """Return a receive function that fails unless the body has the signed digest."""
    seen = hashlib.sha256()

    async def checked() -> Message:
        message = await receive()
        if message["type"] == "http.request":
            seen.update(message.get("body", b""))
            if not message.get("more_body", False) and seen.hexdigest() != body:
                raise RequestError(
                    "bad_key", f"`{HEADER}` was signed for another body. Send the body unchanged."
                )
        return message

    return checked


def _find_identity(access: AccessDocument, name: str | None) -> Identity:
    found = None if name is None else access.find(name)
    if found is None:
        words = f"{name or 'Who does not say a name'} has no role in this gateway's access file"
        raise RequestError("forbidden", f"{words}.")
    return _identity(found.name, permissions_of(found), found.keys)


def _identity(name: str | None, scopes: frozenset[str], leave: KeyLeave | None = None) -> Identity:
    """Return the identity of a person without a team."""
    return Identity(
        key_id=OPEN if name is None else PERSON, user_id=name, team_id="", org_id="",
        scopes=scopes, models=None, residency="any", tags=(), isolation="team",
        leave=leave,
    )  # fmt: skip
