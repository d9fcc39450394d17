"""The people who may look at the books, by name: one TOML file.

    [people."ada@example.com"]
    role = "admin"                   # viewer | finance | admin
    [people."*@example.com"]         # everyone else of the house
    role = "viewer"
    teams = ["search"]               # sees these teams' rows and nothing else
    keys = {team = "search", models = ["smart"], days = 90}   # makes such keys for themselves
    [people."eve@example.com"]
    role = "viewer"
    disabled = true                  # but not her

Names are compared without regard to case (`strauß` is not `strauss`); a whole name comes before a
pattern. The file is read again when it changes, so that who is struck out is out with the next
read. One that cannot be read lets nobody in. `[oidc]` says how the house's sign-in names people, to
the dashboard and to the gateway alike; `[auth]` and `[proxy]` are the dashboard's ways in. Where
one person alone uses the machine, `here = "ada@example.com"` at the top takes their place: whoever
opens a dashboard that listens on this machine alone is she.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

AHEAD_S = 300  # a provider's clock may be so far ahead of ours
_HOUR_S = 3600
_LAST_S = 1 << 53  # beyond it a float is no second


class DashboardRole(StrEnum):
    """`finance` also sees bills and changes; `admin` is for whoever runs it."""

    VIEWER = "viewer"
    FINANCE = "finance"
    ADMIN = "admin"


class KeyLeave(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Keys that a person may make for herself: of this team, with her name as the user.

    `models`: None allows every one. `scopes`: what a key may be given. `days`: after so many at the
    latest it ends. `tags` are those of each key.
    """

    team: str
    org: str = "default"
    models: tuple[str, ...] | None = None
    internal_only: bool = False
    scopes: tuple[str, ...] = ("inference", "usage")
    tags: dict[str, str] = {}
    days: int | None = None


@dataclass(frozen=True, slots=True)
class Person:
    """`teams`: whose rows are seen; None: everybody's, and the house's own figures."""

    name: str
    role: DashboardRole
    teams: tuple[str, ...] | None = None
    keys: KeyLeave | None = None


class AccessFileError(Exception):
    """The file is not there or says what it must not; the text names each fault."""


class UnnamedPerson(Exception):
    """A sign-in that names nobody; the text says what it lacks."""


class AccessEntry(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """`disabled`: let in nowhere, whatever pattern the name has. `keys`: None: she makes none."""

    role: DashboardRole
    teams: tuple[str, ...] | None = None
    disabled: bool = False
    keys: KeyLeave | None = None


class OidcAccess(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """`claim`: which one is the name in `people`. `hours`: after them a person signs in again."""

    claim: str = "email"
    hours: float = 12.0


class ProxyAccess(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A proxy that signs people in and says so in headers. `secret_file`: beside this file."""

    secret_file: str
    user_header: str = "X-Forwarded-Email"
    secret_header: str = "X-Breakeven-Proxy"  # noqa: S105 - a header's name


class AccessDocument(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    people: dict[str, AccessEntry]
    here: str | None = None
    auth: dict[str, Any] | None = None  # Streamlit's own section
    oidc: OidcAccess = OidcAccess()
    proxy: ProxyAccess | None = None

    def find(self, name: str) -> Person | None:
        """By the whole name, else by `*@domain`; None as well for who is disabled."""
        known = {key.lower(): entry for key, entry in self.people.items()}
        said = name.lower()
        if "*" in said:  # no person is called like a pattern
            return None
        if said.isascii() and not name.isascii():  # a Kelvin sign is no k
            return None
        pattern = f"*@{said.rpartition('@')[2]}" if said.count("@") == 1 else None
        entry = known.get(said)
        if entry is None and pattern is not None:
            entry = known.get(pattern)
        if entry is None or entry.disabled:
            return None
        return Person(said, entry.role, entry.teams, entry.keys)

    def name_of_sign_in(self, claims: Mapping[str, Any]) -> tuple[str, float]:
        """Find whom a sign-in vouches for, and since when (seconds). Raises `UnnamedPerson`."""
        claim = self.oidc.claim
        name, since_s = claims.get(claim), claims.get("iat")
        if not isinstance(name, str) or not name:
            raise UnnamedPerson(f"The sign-in does not say `{claim}`.")
        if claim == "email" and claims.get("email_verified") is not True:
            raise UnnamedPerson(
                f"The sign-in does not vouch for {name}: `email_verified` is not true."
            )
        if not isinstance(since_s, (int, float)) or not 0 <= since_s <= _LAST_S:
            raise UnnamedPerson("The sign-in does not say since when it holds (`iat`).")
        return name, float(since_s)

    def lasts(self, since_s: float, now_s: float) -> bool:
        """Whether a sign-in of then still holds."""
        return -AHEAD_S <= now_s - since_s <= self.oidc.hours * _HOUR_S


class AccessFile:
    """The file as it is now; parsed once for each of its states."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: tuple[tuple[int, ...], AccessDocument] | None = None

    def read(self) -> AccessDocument:
        """Raises `AccessFileError`."""
        try:
            now = self.path.stat()
            state = (now.st_mtime_ns, now.st_size, now.st_ino)
            if self._seen is None or self._seen[0] != state:
                self._seen = state, parse(self.path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            self._seen = None
            raise AccessFileError(f"{self.path.name}: {error}") from error
        return self._seen[1]

    def secret(self, name: str, least: int = 16) -> bytes:
        """Return the content of a file beside this one, without the line's end."""
        try:
            found = (self.path.parent / name).read_bytes().strip()
        except OSError as error:
            raise AccessFileError(f"{name}: {error.strerror}") from error
        if len(found) < least:
            raise AccessFileError(f"{name}: a secret has {least} bytes at least")
        return found


def parse(text: str) -> AccessDocument:
    """Raises `AccessFileError`, which says all that is wrong."""
    try:
        found = msgspec.convert(tomllib.loads(text), AccessDocument)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise AccessFileError(f"the access file: {error}") from error
    faults = list(_faults(found))
    if faults:
        raise AccessFileError("the access file: " + "; ".join(faults))
    return found


def _faults(found: AccessDocument) -> list[str]:
    faults = []
    if [found.auth, found.proxy, found.here].count(None) != 2:
        faults.append(
            "it has either [auth], for a sign-in, or [proxy], for a proxy's, or `here`, for the "
            "one person of this machine"
        )
    if found.here is not None and found.find(found.here) is None:
        faults.append(f"here: `{found.here}` is nobody of `people`")
    if found.oidc.hours <= 0:
        faults.append("oidc.hours is more than 0")
    names = [name.lower() for name in found.people]
    faults += [
        f"people: `{name}` twice" for name in sorted({n for n in names if names.count(n) > 1})
    ]
    for name, entry in found.people.items():
        if "*" in name and (not name.startswith("*@") or "*" in name[2:] or len(name) == 2):
            faults.append(f"people: `{name}`: a pattern is `*@domain`")
        if entry.teams is not None and entry.role is not DashboardRole.VIEWER:
            faults.append(f"people: `{name}`: a {entry.role} sees every team: leave `teams` out")
        keys = entry.keys
        if keys is not None and entry.teams is not None and keys.team not in entry.teams:
            faults.append(f"people: `{name}`: `keys` are of one of their teams")
        if keys is not None and keys.days is not None and keys.days < 1:
            faults.append(f"people: `{name}`: `keys.days` is 1 or more")
        if entry.teams == ():
            faults.append(f"people: `{name}`: `teams` names at least one")
    return faults
