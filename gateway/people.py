"""People whom the dashboard vouches for: what they may do is decided here, by the access file.

What comes with a request is a name and no more (`ledger.identity.vouched`). The role is read from
the file that `dashboard.access_file` names, here, at every request: one that the dashboard
believed and the gateway does not opens nothing. Without that file the dashboard is open, nobody
has a name, and whoever sits there may look and simulate: a change needs somebody who made it.
"""

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path

from starlette.types import Message, Receive, Scope

from gateway.auth import INFERENCE
from gateway.config.settings import Settings
from gateway.errors import RequestError
from gateway.roles import ROLES
from gateway.roles import Role as KeyRole
from ledger.identity.keys import Identity
from ledger.identity.people import AccessFile, AccessFileError, Person, Role
from ledger.identity.secretfile import read_secret
from ledger.identity.vouched import HEADER, KEY_FILE, Asked, NotVouched, Vouched, heard

VIEWED = ROLES[KeyRole.VIEWER]
MAY: dict[Role, frozenset[str]] = {
    Role.VIEWER: VIEWED,
    Role.FINANCE: VIEWED | ROLES[KeyRole.FINANCE],
    Role.ADMIN: ROLES[KeyRole.ADMIN] - {INFERENCE},  # models are asked by keys, which are paid for
}
OPEN = "open dashboard"
_NAME = HEADER.encode()


class People:
    def __init__(self, access: AccessFile | None, key: Callable[[], bytes | None]) -> None:
        """`key`: None where there is none, and then nobody can be vouched for."""
        self._access = access
        self._key = key

    def named(self, scope: Scope) -> str | None:
        """The header, if a person asks; raises where it stands beside a key or another one."""
        headers: Iterable[tuple[bytes, bytes]] = scope["headers"]
        names = [name for name, _ in headers]
        if _NAME not in names:
            return None
        if names.count(_NAME) > 1 or b"authorization" in names or b"x-api-key" in names:
            raise RequestError("bad_key", f"Send `{HEADER}` once, or a key, not both.")
        return next(value for name, value in headers if name == _NAME).decode("latin-1")

    def identity(self, value: str, scope: Scope, now_us: int) -> tuple[Identity, Vouched]:
        """Who asks and what they may do. Raises 401 and 403."""
        key = self._key()
        if key is None:
            raise RequestError("bad_key", "This gateway has no key that a dashboard could use.")
        path, query = scope.get("raw_path") or scope["path"].encode(), scope["query_string"]
        target = (path + (b"?" + query if query else b"")).decode("latin-1")
        try:
            vouched = heard(key, value, Asked(scope["method"], target), now_us)
        except NotVouched as error:
            words = f"`{HEADER}` does not hold: {error}."
            raise RequestError("bad_key", words) from error
        return self._identity(vouched.name), vouched

    def _identity(self, name: str | None) -> Identity:
        if self._access is None:
            if name is not None:
                words = f"No access file here says what {name} may do: set `dashboard.access_file`."
                raise RequestError("forbidden", words)
            return _identity(None, VIEWED)
        try:
            found = None if name is None else self._access.read().find(name)
        except AccessFileError as error:
            raise RequestError("forbidden", f"Nobody is let in: {error}.") from error
        if found is None:
            words = f"{name or 'Who does not say a name'} has no role in this gateway's access file"
            raise RequestError("forbidden", f"{words}.")
        return _identity(found.name, may(found))


def may(person: Person) -> frozenset[str]:
    """Who sees single teams alone sees nothing of the house's, and there is nothing else here."""
    return frozenset() if person.teams is not None else MAY[person.role]


def people_of(settings: Settings) -> People:
    path, state = settings.dashboard.access_file, settings.state.resolve()
    access = None if path is None else AccessFile(Path(path))
    return People(access, lambda: read_secret(state / KEY_FILE))


def whole(receive: Receive, body: str) -> Receive:
    """The same body, refused at its end unless it is the one that the person's word is about."""
    seen = hashlib.sha256()

    async def checked() -> Message:
        message = await receive()
        if message["type"] == "http.request":
            seen.update(message.get("body", b""))
            if not message.get("more_body", False) and seen.hexdigest() != body:
                raise RequestError("bad_key", f"`{HEADER}` is about another body.")
        return message

    return checked


def _identity(name: str | None, scopes: frozenset[str]) -> Identity:
    """Of no team; as the books have it, whoever it is and not what asked for them."""
    return Identity(
        key_id=OPEN if name is None else "person", user_id=name, team_id="", org_id="",
        scopes=scopes, models=None, residency="any", tags=(), isolation="team",
    )  # fmt: skip
