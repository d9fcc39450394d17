"""The access file: the people who may use the dashboard, in TOML.

    [people."ada@example.com"]
    role = "admin"                   # viewer | finance | admin
    [people."*@example.com"]         # everyone else of the organisation
    role = "viewer"
    teams = ["search"]               # sees only these teams' rows
    keys = {team = "search", models = ["smart"], days = 90}   # may make such keys for themselves
    [people."eve@example.com"]
    role = "viewer"
    disabled = true                  # has no access

Names are compared without case (`strauß` is not `strauss`); a full name takes precedence over a
pattern. A changed file is read again, so a removed person loses access at the next read. A file
that cannot be read gives nobody access. `[oidc]` states which claim names a person, for dashboard
and gateway; `[auth]` and `[proxy]` are the dashboard's sign-ins. On a machine with one user,
`here = "ada@example.com"` at the top replaces them: a dashboard that listens only on this machine
treats every visitor as that person.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

AHEAD_S = 300  # tolerated lead of an identity provider's clock
_HOUR_S = 3600
_LAST_S = 1 << 53  # larger floats are not exact to a second


class DashboardRole(StrEnum):
    """A person's role. `finance` also sees bills and changes; `admin` is for operators."""

    VIEWER = "viewer"
    FINANCE = "finance"
    ADMIN = "admin"


class KeyLeave(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Permission to make keys for oneself, in this team and with one's name as the user.

    `models` of `None` allows every model. `scopes` are the scopes that a key may have. A key lasts
    at most `days`. `tags` are set on each key.
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
    """A person with access.

    `teams` are the teams whose rows they see; `None` is all teams, and company-wide figures.
    """

    name: str
    role: DashboardRole
    teams: tuple[str, ...] | None = None
    keys: KeyLeave | None = None


class AccessFileError(Exception):
    """An access file that is missing or invalid; the message lists each fault."""


class UnnamedPerson(Exception):
    """A sign-in that names no person; the message says what is missing."""


class AccessEntry(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A person or pattern in the access file.

    `disabled` removes access, even if a pattern matches. Without `keys`, the person makes none.
    """

    role: DashboardRole
    teams: tuple[str, ...] | None = None
    disabled: bool = False
    keys: KeyLeave | None = None


class OidcAccess(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Sign-in by OIDC. `claim` is the person's name in `people`. A sign-in lasts `hours`."""

    claim: str = "email"
    hours: float = 12.0


class ProxyAccess(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A proxy that signs people in and sends their name in a header.

    `secret_file` is relative to the access file's folder.
    """

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
        """Return the person by full name, else by `*@domain`; `None` if unknown or disabled."""
        known = {key.lower(): entry for key, entry in self.people.items()}
        said = name.lower()
        if "*" in said:  # a pattern is not a person
            return None
        if said.isascii() and not name.isascii():  # such as the Kelvin sign, which lowers to k
            return None
        pattern = f"*@{said.rpartition('@')[2]}" if said.count("@") == 1 else None
        entry = known.get(said)
        if entry is None and pattern is not None:
            entry = known.get(pattern)
        if entry is None or entry.disabled:
            return None
        return Person(said, entry.role, entry.teams, entry.keys)

    def name_of_sign_in(self, claims: Mapping[str, Any]) -> tuple[str, float]:
        """Return the person's name and the start of the sign-in in seconds.

        Raises `UnnamedPerson` if a claim is missing or the e-mail address is not verified.
        """
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
        """Return whether a sign-in from `since_s` is still valid."""
        return -AHEAD_S <= now_s - since_s <= self.oidc.hours * _HOUR_S


class AccessFile:
    """The access file, parsed again after each change."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: tuple[tuple[int, ...], AccessDocument] | None = None

    def read(self) -> AccessDocument:
        """Return the current content. Raises `AccessFileError`."""
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
        """Return the stripped content of a file in the same folder, at least `least` bytes.

        Raises `AccessFileError` if the file cannot be read or is too short.
        """
        try:
            found = (self.path.parent / name).read_bytes().strip()
        except OSError as error:
            raise AccessFileError(f"{name}: {error.strerror}") from error
        if len(found) < least:
            raise AccessFileError(f"{name}: a secret has {least} bytes at least")
        return found


def parse(text: str) -> AccessDocument:
    """Return the parsed text. Raises `AccessFileError` with every fault."""
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
